"""The table of recorded trainings has a value for each point of its space, and each is that of its training."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from autoresearch.propose.program.edits import set_constants
from benchmarks.proposer_methods import Measured, shipped_space
from benchmarks.proposer_runs import Trainer
from benchmarks.recorded import GRID, WORK, Drawn, trainings


def test_every_point_of_the_space_has_a_value() -> None:
    question = trainings()
    levels = [
        parameter.range.choices or range(int(parameter.range.low), int(parameter.range.high) + 1)
        for parameter in question.space.parameters.values()
    ]
    points = [dict(zip(question.space.parameters, point, strict=True)) for point in itertools.product(*levels)]

    values = [question.evaluate(point) for point in points]

    assert len(values) == 1680
    assert question.optimum == min(values) < question.evaluate(question.space.default()) < max(values)


@pytest.mark.parametrize(
    ("rate", "below", "above"), [(0.004, 0.004, 0.004), (0.004 * 2**0.5, 0.004, 0.008), (0.1, 0.03, 0.03)]
)
def test_a_drawn_task_differs_as_the_recorded_trainings_do(rate: float, below: float, above: float) -> None:
    space, question, drawn = shipped_space(), trainings(), Drawn(3)
    point = {"DEPTH": 2, "WIDTH": 64, "BATCH_DOCS": 8, "EMBED_LR_MULT": 1.0}
    places = {name: value if name == "WIDTH" else GRID[name].index(value) for name, value in point.items()}
    first, low, high = (question.evaluate({**places, "LR": GRID["LR"].index(at)}) for at in (0.0005, below, above))

    values = [drawn.value(Measured("", {**space.default(), **point, "LR": at}, 0, None)) for at in (0.0005, rate)]

    assert values[1] - values[0] == pytest.approx((low + high) / 2 - first, abs=1e-9), "the noise is the program's"


@pytest.mark.slow
def test_a_value_is_that_of_its_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    point = {"DEPTH": 2, "WIDTH": 32, "BATCH_DOCS": 4, "LR": 0.008, "EMBED_LR_MULT": 1.0}
    places = {name: value if name == "WIDTH" else GRID[name].index(value) for name, value in point.items()}
    program = set_constants(shipped_space().source, {"HEAD_DIM": 16, **point})

    with capsys.disabled():  # the training says its value on the standard output of its own process
        trained = Trainer(budget=WORK, data=tmp_path).value(program, seed=0)

    assert trained == pytest.approx(trainings().evaluate(places), abs=0.01)
