"""An honest model of the small task, hardly trained, and a way to ask models about its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from autoresearch.run.bench import Bench, known_cost, remember_cost
from autoresearch.run.evaluating import ChallengeDraw, Examined, Model, examine
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import Level
from autoresearch.task.model import Task
from tests.conftest import Once
from tests.run.refereeing.small_task import TRAIN, small_task
from tests.run.sandbox.conftest import level
from tests.walls import best_level

__all__ = ["level"]  # the fixture

BUDGET_SHARE = 0.01
DRAW = bytes(range(32))


@dataclass(frozen=True, slots=True)
class Trained:
    """An honest model of the small task, hardly trained."""

    task: Task
    bench: Bench
    checkpoint: Path
    value: float


@pytest.fixture(scope="session")
def trained(once: Once) -> Trained:
    task, level = small_task(), best_level()

    def train(folder: Path) -> None:
        for parent in folder.parents[:2]:
            parent.chmod(0o755)
        bench = Bench(level, 1, "cpu", folder / "cache", folder)
        plan = plan_as_it_stands(task, TRAIN)
        plan = msgspec.structs.replace(plan, budget=plan.budget * BUDGET_SHARE)
        outcome = Experiment(task, plan, bench).measure()
        assert outcome.checkpoint is not None, (outcome.reason, outcome.log)
        assert outcome.value is not None
        outcome.checkpoint.rename(folder / "honest.safetensors")
        (folder / "value").write_text(repr(outcome.value))

    folder = once("referee", train)
    bench = Bench(level, 1, "cpu", folder / "cache", folder)
    return Trained(task, bench, folder / "honest.safetensors", float((folder / "value").read_text()))


def with_known_cost(trained: Trained, task: Task) -> Task:
    """A task that differs from that of ``trained`` by its limits alone, and by the budget that the model had.

    What the baseline costs was measured when it was trained: nobody has to measure that for this task as well.
    """
    budget = float(task.budget.amount)
    cost = known_cost(trained.task, trained.bench, budget)
    assert cost is not None
    remember_cost(task, trained.bench, budget, cost)
    return task


Ask = Callable[..., Examined]


@pytest.fixture
def ask(trained: Trained, tmp_path: Path) -> Ask:
    """Asks a model with the honest model's weights, or with others."""
    tmp_path.chmod(0o755)

    def ask(
        source: str,
        *,
        level: Level = trained.bench.level,
        checkpoint: Path | None = None,
        fresh_seed: int | None = None,
    ) -> Examined:
        bench = replace(trained.bench, scratch=tmp_path, level=level or trained.bench.level)
        model = Model(source, checkpoint or trained.checkpoint)
        return examine(trained.task, model, bench, challenge=ChallengeDraw(DRAW, 2048), fresh_seed=fresh_seed)

    return ask
