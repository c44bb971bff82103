"""A question asks the database a few times, however many rows it answers with."""

from __future__ import annotations

import pytest

from autoresearch.ask.lookup import find_task
from autoresearch.ask.runs.boards import best_answer, task_status, top_answer
from autoresearch.log.derive.driver import settle
from autoresearch.log.log import Log
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, DOT, PEOPLE, STRANGER, TRUST, Village
from tests.record.making import NETWORK

ROWS = 50
COLD, WARM = 40, 30


@pytest.fixture
def filled(village: Village) -> Village:
    """More programs than fit: confirmed, refuted, reported, and of one whom nobody attested."""
    runs = [village.run(1.9 - number / 100, f"run {number}", by=PEOPLE[number % 5]) for number in range(ROWS)]
    for run in runs[:10]:
        village.confirm(run, 2.0, run.body.value)  # type: ignore[union-attr]
    village.refute(village.run(0.5, "false", by=ANN, parent=runs[3]), 1.9)
    for number in range(5):
        village.run(1.0, f"stranger {number}", by=STRANGER, parent=runs[number])
    return village


def count_statements(log: Log, question) -> int:
    """How many statements a question makes."""
    statements: list[str] = []
    log.reader.connection.set_trace_callback(statements.append)
    question(log)
    log.reader.connection.set_trace_callback(None)
    return len(statements)


@pytest.mark.slow
def test_an_answer_takes_a_few_statements(filled: Village) -> None:
    for is_settled in (False, True):
        if is_settled:
            settle(filled.log, seconds=60)
        for me in (AUTHOR, BEN, CEM, DOT):
            _check_statements(filled, me)


def _check_statements(filled: Village, me) -> None:
    with Log.open(filled.log.path, NETWORK, read_only=True, trust=TRUST) as log:
        task = find_task(log, None, author=me.public)

    def top(log: Log) -> None:
        assert len(top_answer(log, task, limit=ROWS, author=me.public).programs) == ROWS

    def best(log: Log) -> None:
        assert best_answer(log, task, author=me.public).confirmed

    for question in (top, best):
        with Log.open(filled.log.path, NETWORK, read_only=True, trust=TRUST) as log:
            assert count_statements(log, question) <= COLD
            assert count_statements(log, question) <= WARM
            assert count_statements(log, lambda log: task_status(log, task, author=me.public)) <= 3, "it is kept"


def test_an_answer_follows_a_record_that_comes(village: Village) -> None:
    task = find_task(village.log, None, author=AUTHOR.public)
    before = task_status(village.log, task, author=AUTHOR.public)
    village.run(1.0, "more")
    assert task_status(village.log, task, author=AUTHOR.public).runs == before.runs + 1
