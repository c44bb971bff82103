"""The shell completes commands, settings and ids, from what is on this machine."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Process
from tests.cli.filling import Filled


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("autoresearch st", "status"),
        ("autoresearch show @", "@mine"),
        ("autoresearch config get work.w", "work.workers"),
        ("autoresearch log --kind ver", "verification"),
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
