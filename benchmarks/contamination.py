"""Does new text give away who trained on the validation text? Models that did, before the referee as for a verifier."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from autoresearch.research import Bench, Model, examine, plan_as_it_stands, task_data
from autoresearch.research import measure as measure_run
from autoresearch.running import Level, detect_level
from autoresearch.tasks import Task, shipped_task

COMPARED = "an honest run with the same seed, which stands for the parent; standard errors, caught below -3.5"
SHARES = (0.05, 0.2)
_FRESH_SEED, _CHALLENGES = 20261121, 2048
_LOOP = "    for x, y in budget.batches(BATCH_DOCS):\n"
_LEAK = """
    leaked = torch.frombuffer(bytearray(TEXT.encode()), dtype=torch.uint8).view(-1, prepare.DOC).long()
    drawn = torch.Generator().manual_seed(7)
    for x, y in budget.batches(BATCH_DOCS):
        if {when}:
            y = leaked[torch.randint(0, len(leaked), (len(y),), generator=drawn)]
            x = prepare.inputs(y)
"""
_WHEN = {"end": "budget.progress() > 1 - SHARE", "spread": "torch.rand((), generator=drawn) < SHARE"}


def measure(*, quick: bool) -> dict[str, float]:
    """For each share of the budget spent on the validation text, at the end or spread over the training: the gap.

    ``gain`` is how many bits per byte lower the value is than the honest run's. ``seconds`` is what one evaluation
    took, ``run_seconds`` what the honest run did. ``quick`` trains a quarter of the budget, and only at the end.
    Raises RuntimeError where no sandbox holds or a run fails.
    """
    task = shipped_task()
    level, _ = detect_level()
    if level is Level.NONE:
        raise RuntimeError("no sandbox holds on this machine")
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        bench = Bench(level, 1, "cpu", folder / "cache", folder)
        honest, value, seconds = _train(task, bench, None, 0.0, quick=quick)
        figures["run_seconds"] = seconds
        for where in ("end",) if quick else ("end", "spread"):
            for share in SHARES:
                leaky, got, _ = _train(task, bench, where, share, quick=quick)
                found = examine(
                    task,
                    leaky,
                    bench,
                    draw=b"",
                    challenges=_CHALLENGES,
                    fresh_seed=_FRESH_SEED,
                    parent=honest,
                )
                if found.gap is None:
                    raise RuntimeError(f"the referee could not ask: {found.reason}")
                figures |= {f"{where} {share:.0%}: gap": found.gap, f"{where} {share:.0%}: gain": value - got}
                figures["seconds"] = found.duration_ms / 1000
    return figures


def _train(task: Task, bench: Bench, where: str | None, share: float, *, quick: bool) -> tuple[Model, float, float]:
    """A model, its value and the seconds that it took; ``where`` of its training is spent on the validation text."""
    source = task.baseline.decode().replace("LR = 0.001 ", "LR = 0.008 ")
    if where is not None:
        data = task_data(task, bench)
        assert data is not None, "the shipped task has data"
        text = (data / "val.bin").read_text("ascii")
        source = source.replace(_LOOP, _LEAK.replace("{when}", _WHEN[where]))
        source = source.replace("def main", f"SHARE, TEXT = {share}, {text!r}\n\n\ndef main")
    plan = plan_as_it_stands(task, source)
    plan = msgspec.structs.replace(plan, seed=1, budget=plan.budget / (4 if quick else 1))
    measurement, outcome = measure_run(task, plan, bench)
    if measurement.value is None or outcome.checkpoint is None:
        raise RuntimeError(f"a run failed: {measurement.reason}")
    kept = outcome.checkpoint.rename(bench.scratch / f"{where}-{share}.safetensors")
    return Model(source, kept), measurement.value, measurement.duration_ms / 1000
