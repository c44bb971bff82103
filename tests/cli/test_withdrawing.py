"""A run or note of one's own is withdrawn: it stays in the log, and counts nowhere."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Note, Verification
from tests.cli.conftest import Cli
from tests.cli.filling import START_MS, Filled
from tests.nasty import NASTY, harms


def best(cli: Cli) -> str:
    return str(json.loads(cli("best", "--json").stdout)["task"]["best"]["id"])


def test_a_withdrawn_run_ranks_nowhere_and_says_why(cli: Cli, filled: Filled) -> None:
    assert best(cli) == filled.best
    result = cli("run", "withdraw", filled.best[7:15], "--reason", f"wrong data {NASTY}", "--yes", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert (answer["schema"], answer["id"], answer["kind"]) == ("autoresearch.withdrawn/1", filled.best, "run")
    assert best(cli) != filled.best
    assert filled.best not in cli("top").stdout
    reply = cli("show", filled.best)
    assert "its author withdrew it, " in reply.stdout
    assert "“wrong data " in reply.stdout
    assert not harms(reply.stdout)
    document = json.loads(cli("show", filled.best, "--json").stdout)
    assert document["withdrawn"]
    assert document["withdrawn_reason"].startswith("wrong data")
    assert json.loads(cli("show", answer["withdrawal"], "--json").stdout)["links"] == [filled.best]


def test_at_may_be_of_a_named_task(cli: Cli, filled: Filled) -> None:
    assert cli("run", "withdraw", "@", "--task", "no-such-task", "--yes").exit_code == 4
    result = cli("run", "withdraw", "@", "--task", filled.task.name, "--yes", "--json")
    assert json.loads(result.stdout)["id"] == filled.best


def test_a_page_that_is_not_there_is_no_page(cli: Cli, filled: Filled) -> None:
    result = cli("run", "list", "--page", "9999")
    assert (result.exit_code, "there is no page 9999" in result.stderr) == (2, True)


def test_only_own_runs_and_notes_can_be_withdrawn_once(cli: Cli, filled: Filled, paths: Paths) -> None:
    with Notebook(paths) as notebook:
        note = notebook.publish_note(Note(topic="insight", text="lower is better"), START_MS + 700_000)
        run = notebook.log.records.resolve(filled.ids[0])
        verified = Verification(run=run, stage="evaluate", verdict="error")
        verification = notebook.publish_verification(verified, START_MS + 700_000)
        task = notebook.log.records.newest(kind="task")[0]
        count = notebook.log.records.count()
    for record, why in (
        (format_id(verification.id), "is a verification, which can't be withdrawn: others rely on it"),
        (format_id(task.id), "is a task, which can't be withdrawn: others may work on it"),
        (filled.stranger, "was published by another participant"),
    ):
        refused = cli("run", "withdraw", record, "--yes")
        assert refused.exit_code == 6, refused.output
        assert why in refused.stderr
    assert cli("run", "withdraw", "ezzzzzzz").exit_code == 4
    assert cli("run", "withdraw", filled.crash, "--yes", "--reason", "x" * 3000).exit_code == 2
    with Notebook(paths) as notebook:
        assert notebook.log.records.count() == count
    assert cli("run", "withdraw", format_id(note.id), "--yes").exit_code == 0
    again = cli("run", "withdraw", format_id(note.id), "--yes")
    assert (again.exit_code, "is withdrawn already" in again.stderr) == (6, True)


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "code"), [("n\n", 130), ("y\n", 0)])
def test_on_a_terminal_it_asks_first(cli: Cli, filled: Filled, typed: str, code: int) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "autoresearch_cli", "run", "withdraw", filled.crash]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    os.write(ours, typed.encode())
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment) as asking:
        os.close(theirs)
        assert asking.stderr
        question = asking.stderr.read().decode()
        assert asking.wait(60) == code
    os.close(ours)
    assert "Withdraw the run " in question
    assert "raise X: crashed" in question
    assert json.loads(cli("show", filled.crash, "--json").stdout)["withdrawn"] == (code == 0)
