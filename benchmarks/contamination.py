"""Does new text give away who trained on the validation text? Models that did, before the referee as for a verifier."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

from autoresearch.run.bench import Bench, job_limits, task_data
from autoresearch.run.evaluating import ChallengeDraw, Model, examine
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.task.loading import shipped_task
from autoresearch.task.model import Task
from benchmarks.library_task import library_task

COMPARED = "an honest run with the same seed, which stands for the parent; standard errors, caught below -3.5"
SHARES = (0.05, 0.2)
FRESH_SEED, CHALLENGES = 20261121, 2048
QUICK_SHARES = (0.2,)
# The programs here carry the text as it stands: what the referee sees of that is measured, not the bound on their size.
PROGRAM_KIB = 1024
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


class Trained(NamedTuple):
    """A model, and the seconds that its training took."""

    model: Model
    seconds: float


def measure(*, quick: bool) -> dict[str, float]:
    """For each task and share of the budget spent on the validation text: the gap, and what it gained.

    The text is trained on at the end or spread over the training. ``gain`` is how many bits per byte lower the value is
    than the honest run's, ``by heart`` how much of that is not there on new text.
    ``quick`` trains a smaller model on little text, one share only, spread: just enough to be caught, as a test wants.
    Raises RuntimeError where no sandbox holds or a run fails.
    """
    level, _ = detect_level()
    if level is Level.NONE:
        raise RuntimeError("no sandbox holds on this machine")
    shipped = shipped_task()
    shipped = msgspec.structs.replace(shipped, baseline=shipped.baseline.replace(b"LR = 0.001 ", b"LR = 0.008 "))
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        bench = Bench(level, 1, "cpu", folder / "cache", folder)
        if quick:
            # Who spends a fifth of the training on its validation text sees each document some ten times. The budget of
            # the task that ships is too small for that: there so much is a third of a pass, and makes a model no better
            # on it than on new text.
            small = library_task(documents=32, budget=0.2e12, fresh=512)
            small = msgspec.structs.replace(small, baseline=small.baseline.replace(b"WIDTH = 64 ", b"WIDTH = 32 "))
            return _measured(small, bench, ("spread",), QUICK_SHARES, challenges=0)
        figures |= _measured(shipped, bench, ("end", "spread"))
        figures |= _measured(library_task(documents=512, budget=3e12), bench, ("spread",))
        figures |= _measured(library_task(documents=64, budget=2e12), bench, ("spread",))
    return figures


def train(task: Task, bench: Bench, *, where: str = "", share: float = 0.0, seed: int = 1) -> Trained:
    """A model of the task's baseline; ``share`` of its training, "end" or "spread", is spent on the validation text."""
    source = task.baseline.decode()
    if where:
        data = task_data(task, bench)
        assert data is not None, "the task has data"
        text = (data / "val.bin").read_text("ascii")
        source = source.replace(_LOOP, _LEAK.replace("{when}", _WHEN[where]))
        source = source.replace("def main", f"SHARE, TEXT = {share}, {text!r}\n\n\ndef main")
    plan = msgspec.structs.replace(plan_as_it_stands(task, source), seed=seed)
    outcome = Experiment(task, plan, bench).train(job_limits(task, bench.ceiling))
    if outcome.checkpoint is None:
        raise RuntimeError(f"a run failed: {outcome.reason}")
    kept = outcome.checkpoint.rename(bench.scratch / f"{task.name}-{where}-{share}-{seed}.safetensors")
    return Trained(Model(source, kept), outcome.duration_ms / 1000)


def _measured(
    task: Task,
    bench: Bench,
    places: tuple[str, ...],
    shares: tuple[float, ...] = SHARES,
    challenges: int = CHALLENGES,
) -> dict[str, float]:
    task = msgspec.structs.replace(task, limits=msgspec.structs.replace(task.limits, program_kib=PROGRAM_KIB))
    honest = train(task, bench)
    figures = {f"{task.name}: training seconds": honest.seconds}
    usual = examine(task, honest.model, bench, challenge=ChallengeDraw(b"", challenges))
    for where in places:
        for share in shares:
            leaky = train(task, bench, where=where, share=share)
            found = examine(
                task,
                leaky.model,
                bench,
                challenge=ChallengeDraw(b"", challenges),
                fresh_seed=FRESH_SEED,
                parent=honest.model,
            )
            if usual.value is None or found.value is None or found.gap is None:
                raise RuntimeError(f"the referee could not ask: {found.reason or usual.reason}")
            assert found.fresh is not None
            assert found.parent_fresh is not None
            gain, elsewhere = usual.value - found.value, found.parent_fresh - found.fresh
            name = f"{task.name} {where} {share:.0%}"
            figures |= {f"{name}: gap": found.gap, f"{name}: gain": gain, f"{name}: by heart": gain - elsewhere}
            figures[f"{task.name}: evaluation seconds"] = found.duration_ms / 1000
    return figures
