"""A program gains nothing by training where nobody counts, nor by knowing the task's world."""

from __future__ import annotations

import msgspec
import pytest

from autoresearch.judging.statistics import Findings, has_learned_nothing
from autoresearch.run.bench import Bench, Cost, job_limits, remember_cost, task_data
from autoresearch.run.evaluating import ChallengeDraw, Model, examine
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import JobOutcome
from autoresearch.run.texts import drawn_world
from autoresearch.task.model import Task
from autoresearch.words import RunStatus
from tests.conftest import Once
from tests.run.refereeing.programs import OVERTIME, carrying
from tests.run.refereeing.small_task import SHIPPED, TRAIN, small_task
from tests.walls import best_level

pytestmark = pytest.mark.slow

SHARE = 0.02


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, once: Once) -> Bench:
    folder = tmp_path_factory.mktemp("bench")
    for place in (folder, *folder.parents[:2]):
        place.chmod(0o755)
    return Bench(best_level(), 1, "cpu", once("budget-cache", lambda _: None), folder / "scratch")


def short(share: float = SHARE, program: str = TRAIN) -> Task:
    task = small_task(program)
    return msgspec.structs.replace(task, budget=msgspec.structs.replace(task.budget, amount=task.budget.amount * share))


def run(task: Task, source: str, bench: Bench, world_seed: int | None = None, *, own: bool = False) -> JobOutcome:
    bench.scratch.mkdir(exist_ok=True)
    world = None if world_seed is None else drawn_world(task, world_seed, bench)
    return Experiment(task, plan_as_it_stands(task, source), bench, world=world).measure(own=own)


def test_who_trains_where_nobody_counts_is_over_budget(bench: Bench) -> None:
    outcome = run(short(program=SHIPPED), OVERTIME, bench)

    assert (outcome.status, outcome.value) == (RunStatus.OVER_BUDGET, None), outcome.reason
    assert "the baseline takes" in outcome.reason


def test_who_carries_the_tasks_own_world_loses_in_another(bench: Bench) -> None:
    task = short(0.04)  # the baseline's 4.2 bits lie between the cheat's 3.1 at home and its 5.2 elsewhere
    data = task_data(task, bench)
    assert data is not None
    cheat = carrying(data)

    # What the cheat costs is another test's: here it may cost more than the baseline, which is measured after it.
    remember_cost(task, bench, float(task.budget.amount), Cost(training_ms=120_000, workload=1024))
    cheats = [run(task, cheat, bench, world, own=True) for world in (None, 5)]
    at_home, elsewhere = (
        (run(task, TRAIN, bench, world), cheated) for world, cheated in zip((None, 5), cheats, strict=True)
    )

    for outcome in (*at_home, *elsewhere):
        assert outcome.value is not None, outcome.reason
    parent, child = (outcome.value for outcome in at_home)
    assert parent is not None
    assert child is not None
    assert child < parent - 0.3
    parent, child = (outcome.value for outcome in elsewhere)
    assert parent is not None
    assert child is not None
    assert child > parent + 0.1


def test_a_program_that_is_too_large_is_not_run(bench: Bench) -> None:
    outcome = run(short(), TRAIN + "#" * (64 << 10), bench)

    assert (outcome.status, outcome.duration_ms) == (RunStatus.INVALID, 0)
    assert "the task allows 64 KiB" in outcome.reason


def test_where_there_is_no_other_world_a_model_must_need_what_it_learned(bench: Bench) -> None:
    task = short(0.01)
    assert task.evaluation is not None
    real = msgspec.structs.replace(task, evaluation=msgspec.structs.replace(task.evaluation, world=False, fresh=False))
    data = task_data(real, bench)
    assert data is not None

    def findings_of(source: str) -> Findings:
        bench.scratch.mkdir(exist_ok=True)
        plan, limits = plan_as_it_stands(real, source), job_limits(real, bench.ceiling)
        outcome = Experiment(real, plan, bench).train(limits)
        assert outcome.checkpoint is not None, outcome.reason
        evaluation = examine(real, Model(source, outcome.checkpoint), bench, challenge=ChallengeDraw(bytes(32), 64))
        assert evaluation.value is not None, evaluation.reason
        assert evaluation.unigram is not None
        return Findings(
            evaluation.value, evaluation.challenges, shuffled=evaluation.shuffled, unigram=evaluation.unigram
        )

    assert not has_learned_nothing(findings_of(TRAIN))
    assert has_learned_nothing(findings_of(carrying(data)))
