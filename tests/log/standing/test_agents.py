"""Agents of an environment: what is measured is a learned state, so runs with every budget rank and are verified."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from autoresearch.ask.show import show_answer
from autoresearch.log.standing.bases import next_base, preferred
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.jobs import job_for, next_job
from autoresearch.log.standing.queries import board, leaderboard
from autoresearch.log.standing.trials import trials
from autoresearch.log.standing.verification import judgement
from autoresearch.words import RunState
from tests.log.standing.village import ANN, BEN, CEM, DOT, EVE, Village
from tests.record.making import BLOB, DEFINITION

FULL = 1e12
AGENTS = DEFINITION | {
    "metric": {"name": "mean_reward", "direction": "maximize", "source": "evaluator"},
    "evaluation": {"command": "examine", "answers": "answer", "artifact": "learned.zip", "tolerance": 0.5},
}


@pytest.fixture
def corridor(tmp_path: Path) -> Iterator[Village]:
    made = Village.at(tmp_path, definition=AGENTS)
    yield made
    made.log.close()


def test_more_training_of_one_program_is_a_run_of_its_own(corridor: Village) -> None:
    parent = corridor.run(5.0, "agent", mode="train", budget=300.0)
    child = corridor.run(7.0, "agent", by=EVE, parent=parent, mode="train", budget=400.0, replicate=1)
    rows = leaderboard(corridor.log, corridor.task)
    assert [row.reported for row in rows] == [7.0, 5.0, 2.0]

    for run in (parent, child):
        job = next_job(corridor.log, corridor.task, DOT.public, bytes(DOT.key), corridor.now_ms)
        assert job is not None
        assert job_for(corridor.log, run.id, DOT.public, bytes(DOT.key), corridor.now_ms) is not None
        corridor.evaluate(run, 5.0 if run is parent else 7.0, ANN, BEN, CEM)
        assert judgement(corridor.log, run.id).state is RunState.CONFIRMED
    result = board(corridor.log, corridor.task, trust_context(corridor.log), limit=10)
    assert [(row.reported, row.state) for row in result[:2]] == [(7.0, "confirmed"), (5.0, "confirmed")]


def test_the_child_of_a_confirmed_agent_is_verified_and_on_the_board(corridor: Village) -> None:
    parent = corridor.run(7.0, "agent", mode="train", budget=300.0)
    corridor.evaluate(parent, 7.0, ANN, BEN, CEM)
    child = corridor.run(6.5, "agent", by=EVE, parent=parent, mode="train", budget=400.0, replicate=1)
    rows = board(corridor.log, corridor.task, trust_context(corridor.log), limit=10)
    assert {(row.reported, row.state) for row in rows} >= {(7.0, "confirmed"), (6.5, "reported")}
    job = next_job(corridor.log, corridor.task, DOT.public, bytes(DOT.key), corridor.now_ms)
    assert job is not None
    assert job.run == child.id
    assert not any(row.copy_of for row in rows)


@pytest.mark.parametrize(("value", "state"), [(477.4, RunState.CONFIRMED), (477.3, RunState.DISPUTED)])
def test_what_is_measured_in_other_episodes_may_differ_by_chance(
    corridor: Village, value: float, state: RunState
) -> None:
    fields = {"budget": 300.0, "checkpoint": BLOB, "metrics": {"standard_error": 3e9}}
    run = corridor.run(500.0, "agent", mode="train", **fields)
    corridor.evaluate(run, value, ANN, BEN, CEM, error=4.0)
    result = judgement(corridor.log, run.id)
    assert (result.state, result.value) == (state, value)
    verification = show_answer(corridor.log, run.id).verification
    assert verification is not None
    assert verification.tolerance == 0.5, "what the task allows"
    assert [each.allowed for each in verification.measured] == pytest.approx([4 * 32**0.5] * 3)


def test_a_change_is_made_to_what_was_trained_as_long(corridor: Village) -> None:
    context = trust_context(corridor.log)
    longer = corridor.run(9.0, "agent", mode="train", budget=FULL + 400.0)
    changed = corridor.run(1.0, "other", by=EVE, parent=longer, budget=FULL + 400.0)
    assert next_base(corridor.log, corridor.task, context).row.first == corridor.baseline.id  # type: ignore[union-attr]
    whole = corridor.run(4.0, "agent", by=EVE, parent=longer, mode="train", budget=FULL)
    corridor.run(3.0, "other", parent=changed, budget=FULL)
    assert preferred(corridor.log, corridor.task, context).row.first == longer.id  # type: ignore[union-attr]
    assert next_base(corridor.log, corridor.task, context).row.first == whole.id  # type: ignore[union-attr]
    assert [
        trial.row.id for trial in trials(corridor.log, corridor.task, context, device=EVE.public) if trial.preferred
    ] == [whole.id]


def test_a_measurement_without_an_error_is_held_to_the_tolerance(corridor: Village) -> None:
    run = corridor.run(500.0, "agent", mode="train", budget=300.0)
    corridor.evaluate(run, 499.6, ANN, BEN, CEM, error=0.0)
    assert judgement(corridor.log, run.id).state is RunState.CONFIRMED


def test_of_a_task_without_answers_only_the_full_budget_ranks(village: Village) -> None:
    village.run(1.0, "short", budget=1.0)
    assert [row.reported for row in leaderboard(village.log, village.task)] == [2.0]
