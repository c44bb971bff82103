"""A task and its definition in bytes. Written to ``tasks.json`` by ``making.py``."""

from __future__ import annotations

from pathlib import Path

from autoresearch.record.encoding import encode
from autoresearch.task.model import USUAL, Budget, Evaluation, Limits, Metric, Recipe, Task
from autoresearch.task.program import join_files, source_digest

PREPARE = b"print('tea')\n"
BASELINE = "x = 1  # tea"


FILES = {"bench.cpp": "int main() {}  \r\n\n", "model.py": BASELINE}


def task(budget: Budget, evaluation: Evaluation | None = None, recipe: Recipe = USUAL) -> Task:
    """A task whose numbers are whole wherever they may be."""
    return Task(
        name="tea",
        summary="",
        metric=Metric(name="val_bpb", direction="minimize", floor=1.0, noise=2.0),
        budget=budget,
        limits=Limits(program_kib=64 if evaluation is None else 128),
        harness={"prepare.py": PREPARE},
        baseline=BASELINE.encode(),
        data={"text.bin": b"t" * 32},
        mounts={},
        folder=Path(),
        program=BASELINE.encode(),
        evaluation=evaluation,
        recipe=recipe,
    )


def everything() -> dict[str, object]:
    evaluation = Evaluation(
        text="text.bin", vocabulary=128, length=256, values=1000, tolerance=1.0, fresh=True, world=True
    )
    built = Recipe(command="./bench", build="g++ -o bench bench.cpp", edit=tuple(FILES))
    tasks = [
        task(Budget(unit="seconds", amount=300.0)),
        task(Budget(unit="work", amount=2.0**40), evaluation),
        task(Budget(unit="seconds", amount=300.0), recipe=built),
    ]
    program = join_files(FILES)
    return {
        "prepare.py": PREPARE.hex(),
        "baseline": {"source": BASELINE, "digest": source_digest(BASELINE).hex()},
        "program": {"files": FILES, "source": program, "digest": source_digest(program).hex()},
        "tasks": [{"definition": encode(made.definition()).hex(), "digest": made.digest.hex()} for made in tasks],
    }
