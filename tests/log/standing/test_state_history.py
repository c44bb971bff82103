"""What a run was before: a function of the records in their own order, whatever the order of arrival."""

from __future__ import annotations

import random

import pytest

from autoresearch.ask.lookup import find_task
from autoresearch.ask.runs.boards import best_answer
from autoresearch.ask.show import show_answer
from autoresearch.log.log import Log
from autoresearch.log.standing import jobs
from autoresearch.log.standing.jobs import confirmed_until, states_over_time
from autoresearch.log.standing.verification import judge_reports
from autoresearch.record.encoding import format_id
from autoresearch.words import RunState
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, DOT, EVE, TRUST
from tests.record.making import NETWORK, pairs


def demote(village):
    """A run that two replicate, that a third comes to another number of, and that the larger committee refutes."""
    run = village.run(1.2, "not for long")
    village.confirm(run, 2.0, 1.3)
    doubt = village.evaluate(run, 1.9, EVE)[0]
    village.evaluate(run, 1.9, ANN, BEN, CEM, DOT, number=1)
    return run, doubt


@pytest.mark.slow
def test_a_confirmed_run_that_is_refuted_was_confirmed_until_somebody_came_to_another_number(village):
    run, doubt = demote(village)
    states = [change.state for change in states_over_time(village.log, run.id)]
    assert states == [
        RunState.REPORTED,
        RunState.PROVISIONAL,
        RunState.CONFIRMED,
        RunState.DISPUTED,
        RunState.REFUTED,
    ]
    end = confirmed_until(village.log, run.id)
    assert (end.record, end.time_ms) == (doubt.id, doubt.time)


@pytest.mark.slow
def test_who_says_the_same_again_changes_no_state_and_costs_no_time(village, monkeypatch):
    run = village.run(1.2, "good")
    village.confirm(run, 2.0, 1.2)
    before, looks = states_over_time(village.log, run.id), []
    village.replicate(run, 2.0, 9.0, *[ANN] * 20)
    monkeypatch.setattr(jobs, "judge_reports", lambda *arguments: looks.append(arguments) or judge_reports(*arguments))
    assert states_over_time(village.log, run.id) == before
    assert len(looks) == 1 + 3 + 2


def test_what_is_confirmed_or_never_was_has_no_end(village):
    good, result = village.run(1.2, "good"), village.run(1.1, "said")
    village.confirm(good, 2.0, 1.2)
    assert confirmed_until(village.log, good.id) is None
    assert confirmed_until(village.log, result.id) is None
    village.refute(result, 1.9)
    assert confirmed_until(village.log, result.id) is None


def test_what_a_dispute_clears_is_confirmed_again_and_has_no_end(village):
    run = village.run(1.2, "doubted")
    village.confirm(run, 2.0, 1.2)
    doubt = village.evaluate(run, 1.9, EVE)[0]
    assert confirmed_until(village.log, run.id).record == doubt.id
    village.evaluate(run, 1.2, ANN, BEN, CEM, number=1)
    states = [change.state for change in states_over_time(village.log, run.id)]
    assert states[-3:] == [RunState.CONFIRMED, RunState.DISPUTED, RunState.CONFIRMED]
    assert confirmed_until(village.log, run.id) is None


@pytest.mark.slow
def test_a_demotion_is_told_beside_the_best_that_is_left(village):
    steady = village.run(1.5, "steady", by=ANN)
    village.confirm(steady, 2.0, 1.5)
    run, doubt = demote(village)
    task = find_task(village.log)
    answer = best_answer(village.log, task)
    assert answer.confirmed.id == answer.run.id == format_id(steady.id)
    assert (answer.demoted.id, answer.demoted.state) == (format_id(run.id), "refuted")
    assert answer.demoted.confirmed_until_ms == doubt.time
    better = village.run(1.1, "better", by=AUTHOR)
    village.confirm(better, 2.0, 1.1)
    assert best_answer(village.log, task).demoted is None, "it would not lead any more"


def test_the_record_itself_tells_its_past_and_what_its_children_need(village):
    run, doubt = demote(village)
    child = village.run(1.1, "child", parent=run)
    standing = show_answer(village.log, run.id).verification
    assert [change.state for change in standing.changes][-2:] == ["disputed", "refuted"]
    assert standing.changes[-2].id == format_id(doubt.id)
    assert not standing.retest
    assert show_answer(village.log, child.id).verification.retest


@pytest.mark.parametrize("seed", range(5))
def test_the_past_does_not_depend_on_the_order_of_arrival(village, tmp_path, seed):
    run, _ = demote(village)
    batch = pairs(village.log.records.newest(limit=1000))
    random.Random(seed).shuffle(batch)
    with Log.open(tmp_path / "other.sqlite", NETWORK, trust=TRUST) as other:
        other.writer.ingest(batch, now_ms=village.now_ms)
        assert states_over_time(other, run.id) == states_over_time(village.log, run.id)
