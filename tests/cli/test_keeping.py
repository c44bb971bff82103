"""Stars, archived tasks, notes and --task, as a person types them; with a daemon and without."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from autoresearch_cli.models import ArchivedAnswer

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.discussion import NoteAnswer, NotesAnswer
from autoresearch.ask.node import Event, StatusAnswer
from autoresearch.ask.records import LogAnswer, ShowAnswer, StarAnswer
from autoresearch.ask.runs.answers import BestAnswer, TasksAnswer
from autoresearch.paths import Paths
from autoresearch.run.experiment import plan_as_it_stands
from tests.cli.conftest import Cli, Process
from tests.cli.filling import START_MS, TRAIN, Filled, measured, write_folder
from tests.cli.test_completion import completed
from tests.cli.test_json import strictly
from tests.daemon.daemons import wait_for
from tests.daemon.toy import write_toy_task


@pytest.fixture
def second(filled: Filled, paths: Paths, tmp_path: Path) -> str:
    """A second task here, on which this machine ran last; its run."""
    folder = tmp_path / "second"
    task = write_folder(folder)
    with Notebook(paths) as notebook:
        notebook.publish_task(task, START_MS + 700_000)
        plan = plan_as_it_stands(task, TRAIN.format(x=1.2), title="of the second task")
        run = notebook.publish_run(plan, measured(1.2), START_MS + 800_000)
    return str(run.data["id"])


def test_a_starred_run_is_found_again(cli: Cli, filled: Filled) -> None:
    assert "nothing is starred" in cli("node", "records", "--starred").stderr
    for changed in (True, False):
        answer = strictly(cli("run", "star", "@", "--json").stdout, StarAnswer)
        assert (answer.id, answer.starred, answer.changed) == (filled.best, True, changed)
    assert cli("run", "star", filled.ids[0]).exit_code == 0
    starred = strictly(cli("node", "records", "--starred", "--json").stdout, LogAnswer).records
    assert [record.id for record in starred] == [filled.best, filled.ids[0]]
    assert all(record.starred for record in starred)
    assert strictly(cli("show", "@", "--json").stdout, ShowAnswer).record.starred
    assert "starred\ton this machine" in cli("show", "@").stdout
    lines = cli("node", "records").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines if line.endswith("\tstarred")] == [filled.best, filled.ids[0]]
    assert cli("node", "records", "--starred", "--kind", "note").stdout == ""
    assert cli("run", "unstar", "@").exit_code == 0
    assert not strictly(cli("show", "@", "--json").stdout, ShowAnswer).record.starred
    assert cli("run", "star", "aaaaaaaa").exit_code == 4


def test_a_damaged_file_of_stars_is_a_sentence(cli: Cli, filled: Filled, paths: Paths) -> None:
    paths.home_local.parent.mkdir(parents=True, exist_ok=True)
    paths.home_local.write_bytes(b"no database " * 100)
    result = cli("node", "records")
    assert result.exit_code == 6
    assert "autoresearch node repair" in result.stderr
    assert cli("node", "repair").exit_code == 0
    assert cli("node", "records").exit_code == 0
    assert paths.home_local.with_name("local.sqlite.damaged-1").read_bytes() == b"no database " * 100


def test_notes_are_published_found_by_words_shown_at_their_run_and_withdrawn(cli: Cli, filled: Filled) -> None:
    assert "no note" in cli("note", "list").stderr
    hasty = strictly(cli("note", "add", "@", "Lower Y helps", "--json").stdout, NoteAnswer).note
    edited = cli("note", "add", "Lower X always helps", "--instead-of", hasty.id, "--json")
    first = strictly(edited.stdout, NoteAnswer).note
    assert "withdrawn already" in cli("note", "add", "once more", "--instead-of", hasty.id).stderr
    assert (first.topic, first.evidence) == ("insight", [filled.best])
    result = cli("note", "add", filled.ids[0], "a larger step would help", "--topic", "hypothesis")
    assert (result.exit_code, "is published: hypothesis" in result.stderr) == (0, True)
    both = strictly(cli("note", "list", "--json").stdout, NotesAnswer)
    assert [(note.topic, note.text) for note in both.notes] == [
        ("hypothesis", "a larger step would help"),
        ("insight", "Lower X always helps"),
    ]
    assert [note.id for note in strictly(cli("note", "list", "HELPS", "x", "--json").stdout, NotesAnswer).notes] == [
        first.id
    ]
    assert "no note on my-task has these words" in cli("note", "list", "nothing").stderr
    assert "insight: Lower X always helps" in cli("show", "@").stdout
    assert cli("run", "withdraw", first.id, "--yes").exit_code == 0
    assert [note.topic for note in strictly(cli("note", "list", "--json").stdout, NotesAnswer).notes] == ["hypothesis"]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("note", "add", "@", "  "), 2, "the note has no text"),
        (("note", "add", "@", "x" * 2049), 2, "2049 characters, of 2048 at most"),
        (("note", "add", "aaaaaaaa", "text"), 4, "aaaaaaaa"),
        (("note", "add", "@", "text", "--topic", "history"), 2, "'history' is not one of"),
        (("note", "list", "--task", "nothing"), 4, "There is no task nothing here"),
        (("task", "archive", "nothing"), 4, "There is no task nothing here"),
        (("network", "credit", "--task", "nothing"), 4, "There is no task nothing here"),
        (("status", "--task", "nothing"), 4, "There is no task nothing here"),
        (("top", "--task", "/home/ada/my-task/"), 4, "did you mean my-task?"),
    ],
)
def test_wrong_words_are_refused_with_a_sentence(
    cli: Cli, filled: Filled, words: tuple[str, ...], status: int, message: str
) -> None:
    done = cli(*words)
    assert done.exit_code == status
    assert message in done.stderr


def test_a_note_needs_a_run(cli: Cli, filled: Filled) -> None:
    note = strictly(cli("note", "add", "@", "text", "--json").stdout, NoteAnswer).note.id
    done = cli("note", "add", note, "a note on a note")
    assert (done.exit_code, "is a note, not a run" in done.stderr) == (2, True)


def test_commands_follow_the_task_worked_on_last_and_name_it_and_the_others(
    cli: Cli, filled: Filled, second: str
) -> None:
    for command in ("best", "top"):
        done = cli(command)
        assert "second" in done.stdout + done.stderr
        assert "other tasks: my-task (--task NAME)" in done.stderr
    first = ("--task", "my-task", "--json")
    assert strictly(cli("best", *first).stdout, BestAnswer).task.name == "my-task"
    assert strictly(cli("status", *first).stdout, StatusAnswer).task.name == "my-task"  # type: ignore[union-attr]
    assert strictly(cli("show", "@", "--json").stdout, ShowAnswer).record.id == second
    assert strictly(cli("show", "@", *first).stdout, ShowAnswer).record.id == filled.best
    assert [row["runs"] for row in json.loads(cli("network", "credit", "--json").stdout)["participants"]] == [6, 1]
    assert [row["runs"] for row in json.loads(cli("network", "credit", *first).stdout)["participants"]] == [5, 1]
    steps = json.loads(cli("run", "lineage", "@", *first).stdout)["steps"]
    assert [step["run"]["id"] for step in steps] == [filled.ids[0], filled.ids[1], filled.best]


def test_an_archived_task_leaves_lists_completion_and_defaults_until_it_is_restored(
    cli: Cli, process: Process, filled: Filled, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for changed in (True, False):
        answer = strictly(cli("task", "archive", "second", "--json").stdout, ArchivedAnswer)
        assert (answer.name, answer.archived, answer.changed) == ("second", True, changed)

    def listed(*words: str) -> list[tuple[str, bool]]:
        tasks = strictly(cli("task", "list", "--json", *words).stdout, TasksAnswer).tasks
        return [(task.name, task.archived) for task in tasks]

    assert listed() == [("my-task", False)]
    assert listed("--all") == [("my-task", False), ("second", True)]
    assert strictly(cli("show", "@", "--json").stdout, ShowAnswer).record.id == filled.best
    assert "other tasks" not in cli("best").stderr
    assert strictly(cli("best", "--task", "second", "--json").stdout, BestAnswer).task.name == "second"
    assert completed(process, monkeypatch, "autoresearch best --task ") == ["my-task"]
    assert completed(process, monkeypatch, "autoresearch work s") == []
    assert completed(process, monkeypatch, "autoresearch task restore ") == ["second"]
    monkeypatch.delenv("_AUTORESEARCH_COMPLETE")
    assert cli("task", "archive", "my-task").exit_code == 0
    everything = cli("best")
    assert (everything.exit_code, "All tasks here are archived" in everything.stderr) == (4, True)
    assert "task list --all" in cli("task", "list").stderr
    assert strictly(cli("task", "restore", "second", "--json").stdout, ArchivedAnswer).changed
    assert listed() == [("second", False)]


@pytest.fixture
def daemon(tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A daemon with a task of its own; its folder."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    folder = write_toy_task(tmp_path / "toy")
    assert process("node", "config", "set", "work.task", str(folder)).returncode == 0
    assert process("node", "config", "set", "work.nice", "15").returncode == 0
    assert process("up").returncode == 0
    yield folder
    assert process("down").returncode == 0


def events(process: Process) -> list[Event]:
    return [msgspec.json.decode(line, type=Event) for line in process("node", "events", "--json").stdout.splitlines()]


@pytest.mark.slow
def test_beside_a_daemon_it_is_the_same(process: Process, daemon: Path) -> None:
    assert process("work").returncode == 0
    wait_for(lambda: process("show", "@").returncode == 0)
    node = psutil.Process(strictly(process("status", "--json").stdout, StatusAnswer).pid)
    workers = [child for child in node.children() if "autoresearch_daemon.workers.assignment" in child.cmdline()]
    assert {worker.nice() for worker in workers} == {15}
    ended = [event for event in events(process) if event.kind == "run_finished"]
    assert {event.data["task"] for event in ended} == {"toy"}
    first, *later = ended
    assert (first.data["parent"], first.data["status"]) == (None, "ok")
    assert all(event.data["gain_reported"] is not None for event in later)
    logged = process("node", "logs", "-n", "1000").stdout
    assert all(f'"event": "{kind}"' in logged for kind in ("started", "run_started", "run_finished"))
    assert process("note", "add", "@", "it runs").returncode == 0
    assert process("run", "star", "@").returncode == 0
    assert "it runs" in process("note", "list").stdout
    assert process("task", "archive", "toy").returncode == 0
    wait_for(lambda: strictly(process("status", "--json").stdout, StatusAnswer).state == "idle")
    refused = process("work")
    assert (refused.returncode, "autoresearch task restore toy" in refused.stderr) == (6, True)
    assert process("task", "restore", "toy").returncode == 0
    assert process("work", "--runs", "1").returncode == 0
