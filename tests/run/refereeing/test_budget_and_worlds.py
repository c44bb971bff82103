"""A program gains nothing by knowing the task's world, nor by being larger than it may."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from autoresearch.judging.statistics import Findings, has_learned_nothing
from autoresearch.run.bench import Bench, job_limits, task_data
from autoresearch.run.evaluating import ChallengeDraw, Model, examine
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.texts import drawn_world, own_text
from autoresearch.words import RunStatus
from tests.run.refereeing.conftest import BUDGET_SHARE, Trained
from tests.run.refereeing.programs import bigram_nats, carrying
from tests.run.refereeing.small_task import TRAIN

pytestmark = pytest.mark.slow


@pytest.fixture
def bench(trained: Trained, tmp_path: Path) -> Bench:
    tmp_path.chmod(0o755)
    return replace(trained.bench, scratch=tmp_path)


def test_who_knows_the_tasks_own_world_knows_no_other(trained: Trained, bench: Bench) -> None:
    world = drawn_world(trained.task, 5, bench)
    assert world is not None
    assert world.data is not None
    assert world.text is not None
    data = task_data(trained.task, bench)
    assert data is not None
    own, other = (bigram_nats((folder / "train.bin").read_bytes()) for folder in (data, world.data))

    def bits(nats: NDArray[np.float64], text: NDArray[np.uint8]) -> float:
        return float(nats[text[:, :-1], text[:, 1:]].mean()) / np.log(2)

    texts = own_text(trained.task, bench), world.text.documents
    assert bits(own, texts[0]) == pytest.approx(bits(other, texts[1]), abs=0.2)
    assert bits(own, texts[0]) < bits(other, texts[0]) - 1
    assert bits(other, texts[1]) < bits(own, texts[1]) - 1


def test_a_program_that_is_too_large_is_not_run(trained: Trained, bench: Bench) -> None:
    plan = plan_as_it_stands(trained.task, TRAIN + "#" * (64 << 10))
    outcome = Experiment(trained.task, plan, bench).measure()

    assert (outcome.status, outcome.duration_ms) == (RunStatus.INVALID, 0)
    assert "the task allows 64 KiB" in outcome.reason


def test_where_there_is_no_other_world_a_model_must_need_what_it_learned(trained: Trained, bench: Bench) -> None:
    task = trained.task
    assert task.evaluation is not None
    real = msgspec.structs.replace(task, evaluation=msgspec.structs.replace(task.evaluation, world=False, fresh=False))
    data = task_data(real, bench)
    assert data is not None
    plan = plan_as_it_stands(real, carrying(data))
    plan = msgspec.structs.replace(plan, budget=plan.budget * BUDGET_SHARE)
    outcome = Experiment(real, plan, bench).train(job_limits(real, bench.ceiling))
    assert outcome.checkpoint is not None, outcome.reason

    def findings_of(model: Model) -> Findings:
        evaluation = examine(real, model, bench, challenge=ChallengeDraw(bytes(32), 0))
        assert evaluation.value is not None, evaluation.reason
        assert evaluation.unigram is not None
        return Findings(evaluation.value, shuffled=evaluation.shuffled, unigram=evaluation.unigram)

    honest = findings_of(Model(TRAIN, trained.checkpoint))
    assert not has_learned_nothing(honest)
    carried = findings_of(Model(plan.source, outcome.checkpoint))
    assert has_learned_nothing(carried)
