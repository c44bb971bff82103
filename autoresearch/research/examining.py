"""A trained model before the referee: its value on the task's own text and, for a verifier, on new text."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from autoresearch.errors import AutoresearchError
from autoresearch.research.bench import Bench, job_limits, task_data
from autoresearch.running import write_fresh
from autoresearch.tasks import ENTRY, Task
from autoresearch.tasks import Evaluation as Asked
from autoresearch.verification import GAP_ERRORS, gap
from autoresearch.words import RunStatus

if TYPE_CHECKING:
    from autoresearch.refereeing import Evaluation, Floats, Subject, Tokens

# How many tolerances below the floor a value is impossible.
FLOOR_TOLERANCES = 4
_AUTHORS = "the task's author has to mend that"
_FRESH, _FRESH_BITS, _TEXT_BITS = "fresh.bin", "fresh.bits", "text.bits"


@dataclass(frozen=True, slots=True)
class Model:
    """A trained model: the ``train.py`` that builds it, and its checkpoint."""

    source: str
    checkpoint: Path


@dataclass(frozen=True, slots=True)
class Examined:
    """What the referee found of a model. Only with status ok there is a ``value``, in bits for each token.

    ``fresh`` is the value on text that was made after the model, ``gap`` how many standard errors worse the task's own
    text is than that (far below zero: the model has seen it), both None when that was not asked. ``parent_fresh`` is
    the parent's value on the new text, when the parent was asked too.
    """

    status: RunStatus
    reason: str
    value: float | None = None
    fresh: float | None = None
    gap: float | None = None
    parent_fresh: float | None = None
    challenges: int = 0
    mismatches: int = 0
    mean_difference: float = 0.0
    duration_ms: int = 0
    cpu_ms: int = 0


def examine(
    task: Task,
    model: Model,
    bench: Bench,
    *,
    draw: bytes,
    challenges: int,
    fresh_seed: int | None = None,
    parent: Model | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Examined:
    """Have the referee measure a model on the task's text.

    ``draw`` is bytes that the author could not know; at most ``challenges`` documents are asked again. With
    ``fresh_seed``, where the task can write more text, the model is asked about that as well, and ``parent`` too.

    Raises:
        AutoresearchError: the task's data can't be made here, or hold something else than the task says.
    """
    # The daemon imports this room too, and goes without numpy.
    import numpy as np

    from autoresearch.refereeing import referee

    began, evaluation, data = time.monotonic(), task.evaluation, task_data(task, bench)
    assert evaluation is not None, "asked only of tasks that have a referee"
    assert data is not None, "the text is among the task's data"
    documents = own = _documents(evaluation, evaluation.text, (data / evaluation.text).read_bytes())
    floors = None
    if fresh_seed is not None and evaluation.fresh:
        new, floors = _fresh(task, fresh_seed, bench)
        documents = np.concatenate([own, _documents(evaluation, _FRESH, new)])
        if floors is not None and [len(bits) for bits in floors] != [8 * len(own), 8 * (len(documents) - len(own))]:
            raise AutoresearchError(
                f"the task's prepare.py wrote {_TEXT_BITS} and {_FRESH_BITS} for other texts", hint=_AUTHORS
            )
    found = referee(
        _subject(task, model, bench),
        documents,
        evaluation.vocabulary,
        draw=draw,
        challenges=challenges,
        own=len(own),
        cancelled=cancelled,
    )
    examined, cpu_ms = _examined(task, found, len(own)), found.cpu_ms
    if examined.status is RunStatus.OK and len(documents) > len(own):
        against = None
        if parent is not None:
            against = referee(
                _subject(task, parent, bench),
                documents,
                evaluation.vocabulary,
                draw=draw,
                challenges=0,
                cancelled=cancelled,
            )
            cpu_ms += against.cpu_ms
        examined = _compared(examined, found.bits, len(own), evaluation.length, floors, against)
    return replace(examined, duration_ms=round(1000 * (time.monotonic() - began)), cpu_ms=cpu_ms)


def _documents(evaluation: Asked, name: str, content: bytes) -> Tokens:
    from autoresearch.refereeing import as_documents

    try:
        return as_documents(content, evaluation.length, evaluation.vocabulary)
    except ValueError as error:
        raise AutoresearchError(f"the task's {name} can't be asked about: {error}", hint=_AUTHORS) from error


def _subject(task: Task, model: Model, bench: Bench) -> Subject:
    from autoresearch.refereeing import Subject

    assert task.evaluation is not None
    hidden = {task.evaluation.text, *task.evaluation.withheld}
    seen = {name: text for name, text in task.harness.items() if name not in hidden}
    return Subject(
        files={**seen, ENTRY: model.source.encode()},
        checkpoint=model.checkpoint,
        values=task.evaluation.values,
        level=bench.level,
        limits=job_limits(task),
        scratch=bench.scratch,
        threads=bench.threads,
        device=bench.device,
    )


def _examined(task: Task, found: Evaluation, own: int) -> Examined:
    assert task.evaluation is not None
    tolerance, floor = task.evaluation.tolerance, task.metric.floor
    examined = Examined(
        found.status,
        found.reason,
        challenges=found.challenges,
        mismatches=found.mismatches,
        mean_difference=found.mean_difference,
    )
    if found.status is not RunStatus.OK:
        return examined
    value = float(found.bits[:own].mean() / task.evaluation.length)
    if floor is not None and value < floor - FLOOR_TOLERANCES * tolerance:
        reason = f"{value:.4f} bits is below the entropy of the text, {floor}"
        return replace(examined, status=RunStatus.INVALID, reason=reason)
    return replace(examined, value=value)


def _compared(
    examined: Examined,
    bits: Floats,
    own: int,
    length: int,
    floors: tuple[bytes, bytes] | None,
    parent: Evaluation | None,
) -> Examined:
    """With how the model does on the new text, and whether it does better on the task's own than it should.

    It is held against what a perfect model needs, where that is known, and against the parent; the worse of the two
    counts. The parent is a stranger's too: one that is itself odd on the task's own text would hide or accuse a child.
    """
    import numpy as np

    def seen(costs: Floats) -> float:
        return gap(costs[:own].tolist(), costs[own:].tolist())

    best = np.concatenate([np.frombuffer(floors[0]), np.frombuffer(floors[1])]) if floors else np.zeros(len(bits))
    found = seen(bits - best)
    examined = replace(examined, fresh=float(bits[own:].mean() / length))
    if parent is not None and parent.status is RunStatus.OK:
        examined = replace(examined, parent_fresh=float(parent.bits[own:].mean() / length))
        if abs(seen(parent.bits - best)) < GAP_ERRORS:
            found = min(found, seen(bits - parent.bits))
    return replace(examined, gap=found)


def _fresh(task: Task, seed: int, bench: Bench) -> tuple[bytes, tuple[bytes, bytes] | None]:
    """New text, and what a perfect model would need for each document of the task's own and of the new one."""
    names = (_FRESH, _FRESH_BITS, _TEXT_BITS)
    made = write_fresh(task.harness, names, seed, bench.scratch, level=bench.level, limits=job_limits(task))
    if _FRESH not in made:
        raise AutoresearchError("the task's prepare.py wrote no fresh.bin", hint=_AUTHORS)
    known = _FRESH_BITS in made and _TEXT_BITS in made
    return made[_FRESH], (made[_TEXT_BITS], made[_FRESH_BITS]) if known else None
