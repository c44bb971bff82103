"""``network hide`` and ``network hidden``, and every command that lists, shows or exports what may be hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.log.log import Log
from autoresearch.log.repair import repair
from autoresearch.log.standing.hiding import hide
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Note
from autoresearch.record.record import DEFAULT_NETWORK
from autoresearch.trust.roster import Trust
from tests.cli.conftest import Cli
from tests.cli.filling import START_MS, Filled
from tests.cli.test_databases import pages_of, spoil
from tests.nasty import NASTY, harms

LISTS = (
    ("run", "list"),
    ("top",),
    ("note", "list"),
    ("search", "lower"),
    ("search",),
    ("node", "records", "--claims"),
    ("network", "credit"),
    ("task", "effects"),
    ("run", "claims"),
    ("run", "export"),
    ("run", "export", "--format", "jsonl"),
    ("run", "export", "--format", "csv"),
    ("best",),
    ("run", "lineage", "@"),
)


def hidden(cli: Cli) -> list[list[str]]:
    return [line.split("\t") for line in cli("network", "hidden").stdout.splitlines()]


@pytest.mark.slow
def test_a_hidden_record_is_in_no_list_and_is_shown_by_its_id(cli: Cli, filled: Filled) -> None:
    short = filled.ids[3][7:15]
    assert any("lower X again" in cli(*command).stdout for command in LISTS)
    result = cli("network", "hide", short, "--reason", f"wrong {NASTY}")
    assert result.exit_code == 0, result.output
    assert "hidden, with 1 record of this log" in result.stderr
    for command in LISTS:
        result = cli(*command)
        assert result.exit_code == 0, (command, result.output)
        assert "lower X again" not in result.stdout, command
        assert not harms(result.stdout + result.stderr)
    assert "1 run hidden here (--hidden shows them; autoresearch network hidden)" in cli("run", "list").stderr
    for command in ("run", "list"), ("top",), ("node", "records"), ("search", "lower"):
        result = cli(*command, "--hidden")
        assert any(filled.ids[3] in line.split("\t")[:3] for line in result.stdout.splitlines()), command
        assert "hidden here" not in result.stderr
    assert filled.ids[3] in cli("run", "export", "--hidden").stdout
    reply = cli("show", short)
    assert "lower X again" in reply.stdout
    assert "hidden by you: you hide it (wrong " in reply.stdout
    assert f"→ autoresearch network hide {short} --undo" in reply.stdout
    assert not harms(reply.stdout)
    [[what, thing, records, *_]] = hidden(cli)
    assert (what, thing, records) == ("run", filled.ids[3], "1")
    assert cli("network", "hide", short, "--undo").exit_code == 0
    assert hidden(cli) == []
    assert "lower X again" in cli("run", "export").stdout


def test_the_way_says_hidden_where_a_step_is(cli: Cli, filled: Filled) -> None:
    cli("network", "hide", filled.ids[1])
    way = cli("run", "lineage", filled.ids[3]).stdout
    assert "lower X\t" not in way
    assert filled.ids[1] in way
    assert "\thidden" in way


@pytest.mark.slow
def test_exports_for_other_programs_leave_it_out(cli: Cli, filled: Filled, paths: Paths, tmp_path: Path) -> None:
    cli("network", "hide", filled.ids[3])
    for number, options in enumerate(((), ("--hidden",))):
        folder = tmp_path / f"mlruns{number}"
        assert cli("run", "export", "--format", "mlflow", "-o", str(folder), *options).exit_code == 0
        names = {path.read_text() for path in folder.rglob("mlflow.runName")}
        assert len(list(folder.rglob("meta.yaml"))) == 6 + number
        assert any("lower X again" in name for name in names) is bool(number)
    pages = tmp_path / "pages"
    assert cli("task", "export", "--html", str(pages)).exit_code == 0
    texts = [path.read_text() for path in pages.glob("*.html")]
    assert texts
    assert not any("lower X again" in text for text in texts)
    bundle = json.loads(cli("run", "export", "--bundle", str(tmp_path / "log.car"), "--json").stdout)
    with Log.open(paths.log, DEFAULT_NETWORK) as log:
        assert bundle["records"] == log.records.count(), "a bundle is the log itself"


def test_words_and_keys_that_are_not_here_yet(cli: Cli, filled: Filled, paths: Paths) -> None:
    key = "ab" * 32
    for arguments in (key,), ("--words", "Nobody Wrote This"):
        result = cli("network", "hide", *arguments, "--json")
        assert (result.exit_code, json.loads(result.stdout)["records"]) == (0, 0)
    assert {(what, thing) for what, thing, *_ in hidden(cli)} == {("unknown", key), ("words", "nobody wrote this")}
    for arguments in ("abab",), ("--words", "NOBODY  wrote this"):
        assert cli("network", "hide", *arguments, "--undo").exit_code == 0
    assert hidden(cli) == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 2),
        (("me",), 6),
        (("--words", ""), 2),
        (("--words", " \u200b"), 2),
        (("nobody",), 4),
        (("nobody", "--undo"), 4),
        (("--from", "nobody"), 2),
        (("--from", "me"), 4),
        (("--from", "abcd"), 4),
        (("--from", "abcd", "--undo"), 4),
        (("abcd", "--share"), 2),
        (("abcd", "--from", "me"), 2),
        (("--words", "x" * 3000), 2),
        (("ab" * 32, "--reason", "x" * 300), 2),
        (("--share", "--reason", "x" * 300), 2),
        (("\udc80\udcff",), 4),
        (("--words", "\udc80"), 2),
        (("@~1~2",), 4),
        (("task", "--words", "--share"), 2),
    ],
)
def test_what_cannot_be_hidden_is_refused_in_a_sentence(
    cli: Cli, filled: Filled, arguments: tuple[str, ...], code: int
) -> None:
    result = cli("network", "hide", *arguments)
    assert result.exit_code == code, result.output
    assert "→" in result.stderr
    assert "bug" not in result.stderr
    assert hidden(cli) == []


def test_a_list_is_published_and_read(cli: Cli, filled: Filled) -> None:
    cli("network", "hide", "--words", "spam", "--reason", "mine alone")
    shared = json.loads(cli("network", "hide", "--share", "--reason", "spam of May", "--json").stdout)
    assert shared["things"] == 1
    listed = json.loads(cli("network", "hidden", "--of", "me", "--json").stdout)
    assert (listed["note"], listed["text"], listed["hidden"][0]["thing"]) == (shared["note"], "spam of May", "spam")
    assert cli("network", "hide", "--from", "me").exit_code == 6
    assert cli("run", "withdraw", shared["note"], "--yes").exit_code == 0
    assert cli("network", "hidden", "--of", "me").exit_code == 4


def test_a_repaired_log_hides_what_it_hid(cli: Cli, filled: Filled, paths: Paths) -> None:
    cli("network", "hide", filled.ids[3])
    cli("network", "hide", "--words", "spam")
    spoil(paths.log, pages_of(paths.log, "text_index_data")[0])
    spoil(paths.log, pages_of(paths.log, "run")[0])
    repair(paths, DEFAULT_NETWORK, Trust())
    assert {thing for _, thing, *_ in hidden(cli)} == {filled.ids[3], "spam"}
    assert "lower X again" not in cli("run", "list").stdout


def test_a_note_of_mine_that_is_hidden_is_published_and_not_listed(cli: Cli, filled: Filled, paths: Paths) -> None:
    with Notebook(paths) as notebook:
        task = notebook.log.tasks.all()[0].digest
        note = notebook.publish_note(Note(topic="insight", text="my secret", task=task), START_MS + 700_000)
        hide(notebook.log, [HiddenRow(note.id, b"", "", 0)])
    result = cli("note", "list")
    assert "my secret" not in result.stdout
    assert "1 note hidden here" in result.stderr
    assert "my secret" in cli("show", format_id(note.id)).stdout
