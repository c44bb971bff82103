"""The shell completes commands, settings and ids, from what is on this machine."""

from __future__ import annotations

import pytest

from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Note
from autoresearch.record.record import DEFAULT_NETWORK
from tests.cli.conftest import Process
from tests.cli.filling import Filled
from tests.record.making import NOW_MS, key


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("autoresearch st", "status"),
        ("autoresearch show @", "@mine"),
        ("autoresearch node config get work.w", "work.workers"),
        ("autoresearch node records --kind ver", "verification"),
        ("autoresearch network use com", "commons"),
        ("autoresearch work --executor s", "slurm"),
    ],
)
def test_words_are_completed(
    process: Process, filled: Filled, monkeypatch: pytest.MonkeyPatch, line: str, expected: str
) -> None:
    assert expected in completed(process, monkeypatch, line)


def test_ids_are_completed_from_the_log(process: Process, filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    short = filled.best[7:15]
    assert short in completed(process, monkeypatch, f"autoresearch show {short[:3]}")


def test_completion_says_nothing_when_there_is_no_log(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed(process, monkeypatch, "autoresearch show abc") == []


def completed(process: Process, monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """What bash would offer at the end of a line."""
    words = line.split(" ")
    monkeypatch.setenv("_AUTORESEARCH_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    result = process()
    assert result.stderr == ""
    return result.stdout.split()


def test_what_strangers_wrote_means_nothing_to_the_shell(
    process: Process, filled: Filled, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "x \\$(touch owned) `touch owned` \"';touch owned;' [/b] \x1b[2J \u202e"
    with Log.open(paths.log, DEFAULT_NETWORK) as log:
        run = log.writer.append(key(70), "note", Note(topic="insight", text=evil), now_ms=NOW_MS)
    short = format_id(run.id)[7:15]
    monkeypatch.setenv("_AUTORESEARCH_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"autoresearch show {short}")
    output = process().stdout
    assert f'"{short}":"insight x touch owned touch owned touch owned b 2J"' in output.replace("\\\\:", ":")
