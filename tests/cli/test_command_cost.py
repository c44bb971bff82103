"""What a command costs before it answers: the modules that it loads, and the statements of SQL of its answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from autoresearch_cli.local_log import open_desk

from autoresearch.ask import questions, requests
from tests.cli.conftest import Process
from tests.cli.filling import Filled
from tests.cli.test_help import LISTING

HELP = {"ask.commands", "errors", "version"}
# What shows an answer of the daemon: types, words, columns. What reads a log, signs or runs anything is not among it.
SHOWING = HELP | {
    *(
        "ask.challenges.answers",
        "ask.client",
        "ask.discussion",
        "ask.node",
        "ask.node_acts",
        "ask.operation",
        "ask.people.participants",
    ),
    *("ask.questions", "ask.records", "ask.registry.components", "ask.requests", "ask.runs.answers", "extensions"),
    *("face.columns.column", "face.columns.node", "face.columns.people", "face.columns.runs", "judging.places"),
    *("log.standing.answers", "paths", "record.encoding", "record.kinds", "services.presence", "settings", "hours"),
    *("task.release", "text", "words"),
}
THIRD = {"annotated_doc", "autoresearch", "autoresearch_cli", "libipld", "msgspec", "shellingham", "typer"}
THIRD |= {"typing_extensions"}  # which msgspec loads
# Large parts of Python's own library: each takes some hundredths of the time of a command.
LARGE = {"asyncio", "concurrent", "csv", "email", "hashlib", "http", "logging", "random", "sqlite3", "ssl", "tarfile"}
LARGE |= {"tomllib", "zipfile"}
# Of an environment, and of the test: not loaded by a command.
BESIDE = {"__main__", "_distutils_hack", "sitecustomize"}


def loaded(process: Process, *words: str) -> tuple[set[str], set[str]]:
    """The modules of ours without their packages, and all packages that a command loaded."""
    names = set(json.loads(process(*words, python=("-c", LISTING)).stderr.splitlines()[-1]))
    inner = {name for name in names if any(other.startswith(f"{name}.") for other in names)}
    ours = {name.partition(".")[2] for name in names - inner if name.startswith("autoresearch.")}
    return ours, {name.partition(".")[0] for name in names} - BESIDE


def test_help_loads_typer_and_the_list_of_commands(process: Process) -> None:
    ours, packages = loaded(process, "--help")
    assert ours == HELP
    assert packages - sys.stdlib_module_names <= THIRD - {"msgspec", "libipld"}
    assert not packages & LARGE


def test_what_converts_words_and_what_suggests_is_loaded_where_it_is_needed(process: Process, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    for words in (
        ("search", "warm", "up"),
        ("note", "list", "warm"),
        ("run", missing, "LR=1"),
        ("run", "propose", missing),
        ("run", "vary", missing, "--set", "LR=1,2"),
        ("run", "wait", "a-run"),
    ):
        assert loaded(process, *words)[1].isdisjoint({"numpy", "pydantic"}), words


def test_the_best_run_takes_few_statements(filled: Filled) -> None:
    with open_desk() as desk:
        statements: list[str] = []
        desk.log.reader.connection.set_trace_callback(statements.append)
        answer = questions.best(desk, requests.OfTask())
        desk.log.reader.connection.set_trace_callback(None)
    assert answer.task.name == filled.task.name
    assert 0 < len(statements) <= 41, "\n".join(statements)
