"""A table of recorded trainings, one for each point of a grid: real values that a search may ask at no cost.

    python -m benchmarks.recorded DIR    trains them again, into DIR: an hour of one core; stop and start it at will

Each is the shipped task's program, trained once at a fortieth of its budget by seed 0. A training that failed is null.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autoresearch.propose.program.edits import set_constants
from autoresearch.propose.program.space import space_of
from autoresearch.task.program import source_digest
from benchmarks.proposer_methods import Measured, shipped_space
from benchmarks.proposer_runs import Trainer
from benchmarks.search_spaces import Question

TABLE = Path(__file__).parent / "recorded.jsonl"
WORK = 5e10
GRID: dict[str, tuple[Any, ...]] = {
    "DEPTH": (1, 2, 3, 4),
    "WIDTH": (32, 48, 64, 96),
    "BATCH_DOCS": (1, 2, 4, 8, 16),
    "LR": (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.03),
    "EMBED_LR_MULT": (0.3, 1.0, 3.0),
}
# What a search turns: the places of values in the grid, from small to large; a width is one of some, as in the program.
SPACE = """
DEPTH = 2          # int [0, 3]
WIDTH = 64         # one of 32 48 64 96
BATCH_DOCS = 3     # int [0, 4]
LR = 1             # int [0, 6]
EMBED_LR_MULT = 1  # int [0, 2]
"""


def trainings() -> Question:
    """The recorded trainings as a question; its optimum is the lowest value of the table."""
    values = [json.loads(line) for line in TABLE.read_text().splitlines()]
    table = dict(zip(itertools.product(*GRID.values()), values, strict=True))

    def evaluate(genome: Mapping[str, Any]) -> float:
        value = table[tuple(genome[name] if name == "WIDTH" else levels[genome[name]] for name, levels in GRID.items())]
        if value is None:
            raise ValueError("a training that failed")
        return float(value)

    return Question(
        "trainings", "table", space_of(SPACE), evaluate, min(value for value in values if value is not None)
    )


class Drawn:
    """The shipped task without training: recorded values, and an effect for each setting that was not recorded.

    Between two recorded rates it interpolates; beyond the grid the nearest point counts. The effects are drawn: a bowl
    for a number, about -0.05 for a patch. A value has the noise of its program and replicate.
    """

    NOISE = 0.02

    def __init__(self, draw: int) -> None:
        values = [json.loads(line) for line in TABLE.read_text().splitlines()]
        self._table = dict(zip(itertools.product(*GRID.values()), values, strict=True))
        self._space, self._draw, dice = shipped_space(), draw, np.random.default_rng([7, draw])
        self._gains: dict[str, float] = {}
        self._bowls: dict[str, tuple[float, float]] = {}
        for name in (name for name in self._space.parameters if name not in GRID):
            if name.startswith("+"):
                self._gains[name] = float(dice.normal(-0.05, 0.1))
            else:
                self._bowls[name] = float(dice.gamma(0.5, 0.4)), float(dice.uniform(0.05, 0.95))

    def value(self, run: Measured) -> float:
        """What a run of a program measures."""
        corners = itertools.product(*(_between(GRID[name], float(run.genome[name])) for name in GRID))
        total = sum(
            math.prod(share for _, share in corner) * self._table[tuple(point for point, _ in corner)]
            for corner in corners
        )
        total += sum(gain * bool(run.genome[name]) for name, gain in self._gains.items())
        for name, (height, best) in self._bowls.items():
            total += height * (2 * (self._space.parameters[name].place(run.genome[name]) - best)) ** 2
        digest = hashlib.sha256(source_digest(run.source) + bytes([run.replicate % 256, self._draw])).digest()
        return float(total + self.NOISE * np.random.default_rng(list(digest)).normal())


def _between(grid: tuple[Any, ...], value: float) -> list[tuple[Any, float]]:
    """The points of the grid beside a value, with the share of each: by its logarithm for a rate, else the nearest."""
    value = min(max(value, grid[0]), grid[-1])
    if not isinstance(grid[0], float):
        return [(min(grid, key=lambda point: abs(point - value)), 1.0)]
    at = min(sum(point <= value for point in grid), len(grid) - 1)
    share = math.log(value / grid[at - 1]) / math.log(grid[at] / grid[at - 1])
    return [(grid[at - 1], 1.0 - share), (grid[at], share)]


def record(folder: Path) -> None:
    """Train each point of the grid that the folder's table does not have yet, and write its value, a line for each."""
    trainer, source = Trainer(budget=WORK, data=folder / "data"), shipped_space().source
    points, table = list(itertools.product(*GRID.values())), folder / TABLE.name
    done = len(table.read_text().splitlines()) if table.exists() else 0
    with table.open("a") as file:
        for point in points[done:]:
            program = set_constants(source, {"HEAD_DIM": 16, **dict(zip(GRID, point, strict=True))})
            file.write(f"{json.dumps(trainer.value(program, seed=0))}\n")
            file.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train every point of the recorded table again.")
    parser.add_argument("folder", type=Path, help="for the data and the table")
    record(parser.parse_args().folder)
