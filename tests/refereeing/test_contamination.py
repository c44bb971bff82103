"""Who trains on the validation text is found out by text that was written after the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from autoresearch.research import Bench, Model, examine, measure, plan_as_it_stands, task_data
from autoresearch.running import detect_level
from autoresearch.tasks import Task, shipped_task
from autoresearch.verification import GAP_ERRORS, Findings, passes

pytestmark = pytest.mark.slow

# The validation text is no file of the run, but nobody can keep a stranger from writing it into the program.
LEAK = """
    leaked = torch.frombuffer(bytearray(TEXT.encode()), dtype=torch.uint8).view(-1, prepare.DOC).long()
    drawn = torch.Generator().manual_seed(7)
    for x, y in budget.batches(BATCH_DOCS):
        if budget.progress() > 1 - SHARE:
            y = leaked[torch.randint(0, len(leaked), (len(y),), generator=drawn)]
            x = prepare.inputs(y)
"""
LOOP = "    for x, y in budget.batches(BATCH_DOCS):\n"


@pytest.fixture(scope="module")
def task() -> Task:
    return shipped_task()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("contamination")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    return Bench(detect_level()[0], 1, "cpu", folder / "cache", folder)


Train = Callable[[float, int], Model]


@pytest.fixture(scope="module")
def train(task: Task, bench: Bench) -> Train:
    """Trains with this share of the budget, at its end, spent on the validation text, and this seed."""
    source = task.baseline.decode().replace("LR = 0.001 ", "LR = 0.008 ")
    data = task_data(task, bench)
    assert data is not None
    text = (data / "val.bin").read_text("ascii")

    def train(share: float, seed: int) -> Model:
        program = source
        if share:
            program = source.replace(LOOP, LEAK).replace("def main", f"SHARE, TEXT = {share}, {text!r}\n\n\ndef main")
        folder = bench.scratch / f"{share}-{seed}"
        folder.mkdir()
        plan = msgspec.structs.replace(plan_as_it_stands(task, program), seed=seed)
        _, outcome = measure(task, plan, replace(bench, scratch=folder))
        assert outcome.checkpoint is not None, (outcome.reason, outcome.log)
        return Model(program, outcome.checkpoint)

    return train


def test_validation_text_in_training_is_caught(task: Task, bench: Bench, train: Train) -> None:
    honest, leaky = train(0.0, 1), train(0.2, 1)

    def gap(model: Model, parent: Model | None) -> float:
        found = examine(task, model, bench, draw=b"", challenges=64, fresh_seed=4242, parent=parent)
        assert found.value is not None
        assert found.gap is not None
        findings = Findings(found.value, found.challenges, found.mismatches, found.mean_difference, found.gap)
        assert passes(found.value, findings, tolerance=0.0005, noise=0.02) == (found.gap > -GAP_ERRORS)
        return found.gap

    assert gap(honest, None) > -GAP_ERRORS
    assert gap(leaky, honest) < -2 * GAP_ERRORS
