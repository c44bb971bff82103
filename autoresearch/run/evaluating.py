"""Measures what a program left, where nothing else of the program is: by the task's evaluator or the referee.

The referee measures on the task's own text and, for a verifier, on new text.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from autoresearch.judging.statistics import GAP_ERRORS, gap
from autoresearch.run import bench as run_bench
from autoresearch.run.data import without
from autoresearch.run.packages import program_python
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, JobChannel, JobOutcome
from autoresearch.run.texts import NewText, new_text, own_text
from autoresearch.task.inputs import sources
from autoresearch.task.model import Task
from autoresearch.words import RunStatus

if TYPE_CHECKING:
    from autoresearch.run.referee import Examinee, Floats, RefereeEvaluation, Tokens


def evaluate(
    task: Task,
    source: str,
    artifact: Path,
    bench: run_bench.Bench,
    seed: int,
    *,
    purse: run_bench.Purse | None = None,
) -> JobOutcome:
    """Run the task's evaluator on an artifact, in a sandbox with the pinned files and all data of the task.

    The program's process, its folder and what it printed are not there. The value is what the evaluator prints. Where
    the task says that the program ``source`` answers, that runs beside it in a sandbox of its own. What ends it before
    its time is the reason that is told. ``purse`` is what both may cost together.

    Raises:
        AutoresearchError: the task's data can't be made here.
    """
    assert task.evaluator is not None, "asked only of tasks that have an evaluator"
    words, purse = run_bench.command_words(task.evaluator.command), purse or run_bench.Purse()
    job = _job(task, artifact, bench, seed, task.harness, words)
    job = replace(job, data=run_bench.task_data(task, bench), metric_source="stdout", metric_name=task.metric.name)
    if task.evaluator.answers:
        outcome = _run_evaluator(task, source, artifact, job, bench, purse)
    else:
        job = replace(job, limits=purse.question_limits(job.limits, workload=1))
        outcome = _ended(execute(job, level=bench.level, cancelled=bench.cancelled))
        purse.pay_question(outcome, workload=1)
    if outcome.status is RunStatus.OK:
        return msgspec.structs.replace(outcome, reason="measured by the task's evaluator")
    return outcome


def _ended(outcome: JobOutcome) -> JobOutcome:
    reason = f"the task's evaluator did not end well: {outcome.reason}"
    return outcome if outcome.status is RunStatus.OK else msgspec.structs.replace(outcome, reason=reason)


def _run_evaluator(
    task: Task,
    source: str,
    artifact: Path,
    job: Job,
    bench: run_bench.Bench,
    purse: run_bench.Purse,
) -> JobOutcome:
    """What came of the evaluator, with what the program that it asked used and printed; that is ended with it.

    Where neither ended well, the one that ended first is the cause: the other heard that nobody was there any more.
    """
    assert task.evaluator is not None
    files = {name: content for name, content in task.harness.items() if name not in task.hidden}
    words = run_bench.command_words(task.evaluator.answers)
    partner = _job(task, artifact, bench, 0, {**run_bench.program_files(source), **files}, words)
    partner = replace(
        partner, inputs={place: path for place, path in partner.inputs.items() if place not in task.hidden}
    )
    data, ended = job.data, threading.Event()
    if data is not None and task.hidden:
        data = without(data, task.hidden)
    ours, theirs = JobChannel.pair()

    def stopped() -> bool:
        return ended.is_set() or bench.cancelled()

    try:
        with ThreadPoolExecutor(1) as pool:
            python = program_python(source, bench)
            partner = replace(partner, data=data, talk=theirs, metric_source="stdout", python=python)
            answering = pool.submit(execute, partner, level=bench.level, cancelled=stopped)
            try:
                outcome = execute(replace(job, talk=ours), level=bench.level, cancelled=bench.cancelled)
            finally:
                ended.set()
            answered = answering.result()
    finally:
        ours.close()
        theirs.close()
    outcome, playing_ms = _ended(outcome), outcome.cpu_ms
    if outcome.status is not RunStatus.OK and theirs.closed_at < ours.closed_at and answered.status is not RunStatus.OK:
        reason = f"the program that the task's evaluator asked did not end well: {answered.reason}"
        outcome = msgspec.structs.replace(outcome, status=answered.status, reason=reason)
    mark = b"--- the program that it asked ---\n"
    outcome = msgspec.structs.replace(
        outcome,
        log=outcome.log + (mark + answered.log if answered.log else b""),
        **msgspec.structs.asdict(outcome.used.with_others(answered.used)),
    )
    purse.pay_question(outcome, workload=max(playing_ms, 1))
    return outcome


def _job(
    task: Task, artifact: Path, bench: run_bench.Bench, seed: int, files: Mapping[str, bytes], command: tuple[str, ...]
) -> Job:
    assert task.evaluator is not None
    name = task.evaluator.artifact
    return Job(
        files={**files, name: artifact.read_bytes()},
        command=command,
        copied=tuple(files),
        linked=(name,),
        inputs=sources(task),
        foreign=bench.foreign,
        python=bench.python,
        library=run_bench.runs_library(command),
        limits=run_bench.job_limits(task, bench.ceiling),
        seed=seed,
        threads=bench.threads,
        device=bench.device,
    )


def fault_of_artifact(task: Task, artifact: Path) -> str | None:
    """Why a stranger's artifact is not evaluated, as a sentence, or None: it is too large."""
    assert task.evaluator is not None, "asked only of tasks that have an evaluator"
    most = task.evaluator.artifact_mib
    return None if artifact.stat().st_size <= most * run_bench.MIB else f"its artifact is larger than {most} MiB"


# So many documents are asked about with shuffled weights: what that gives is far from the value, or should be.
SHUFFLED_DOCUMENTS = 64
# How many tolerances below the floor a value is impossible.
FLOOR_TOLERANCES = 4


@dataclass(frozen=True, slots=True)
class Model:
    """A trained model: the program that builds it, and its checkpoint."""

    source: str
    checkpoint: Path


@dataclass(frozen=True, slots=True)
class Examined:
    """What the referee found of a model. Only with status ok there is a ``value``, in bits for each token.

    ``fresh`` is the value on text that was made after the model, where it is known what each text costs at best as if
    that were as hard as the task's own; ``gap`` how many standard errors worse the task's own text is than the new (far
    below zero: the model has seen it). Both are None when that was not asked. ``parent_fresh`` is the parent's value
    on the new text, when the parent was asked too. ``shuffled`` is the value with the weights in another order, without
    what the model learned, and ``unigram`` that of the text by the frequencies of its tokens alone: asked of tasks that
    have no other worlds.
    """

    status: RunStatus
    reason: str
    value: float | None = None
    fresh: float | None = None
    gap: float | None = None
    parent_fresh: float | None = None
    shuffled: float | None = None
    unigram: float | None = None
    challenges: int = 0
    mismatches: int = 0
    mean_difference: float = 0.0
    duration_ms: int = 0
    cpu_ms: int = 0


class ChallengeDraw(NamedTuple):
    """How answers are tested: at most so many ``documents`` are asked again, drawn from bytes unknown to the author."""

    draw: bytes
    documents: int


def examine(
    task: Task,
    model: Model,
    bench: run_bench.Bench,
    challenge: ChallengeDraw,
    *,
    fresh_seed: int | None = None,
    parent: Model | None = None,
    purse: run_bench.Purse | None = None,
) -> Examined:
    """Have the referee measure a model on the task's text.

    With ``fresh_seed``, where the task can write more text, the model is asked about that as well, and ``parent`` too.
    ``purse`` is what all questions to the model may cost; those to the parent have one like it.

    Raises:
        AutoresearchError: the task's data can't be made here, or hold something else than the task says.
    """
    # The daemon imports this room too, and goes without numpy.
    import numpy as np

    if (fault := run_bench.fault_of_program(task, model.source)) is not None:
        return Examined(RunStatus.INVALID, fault)
    began, own = time.monotonic(), own_text(task, bench)
    new = None
    if fresh_seed is not None and task.evaluation is not None and task.evaluation.fresh:
        new = new_text(task, fresh_seed, bench, own=len(own))
    documents = own if new is None else np.concatenate([own, new.documents])
    purse = purse or run_bench.Purse()
    examinee, as_much = _examinee(task, model, bench, purse), replace(purse)
    evaluation = _ask_examinee(task, examinee, documents, challenge, own=len(own))
    floor = task.metric.floor
    examined, cpu_ms = (
        _examined(task, evaluation, lambda bits: float(bits[: len(own)].mean()), floor),
        evaluation.cpu_ms,
    )
    if examined.status is RunStatus.OK and new is not None:
        against = None
        if parent is not None:
            # Challenged like the child: what it made up would be held against the child.
            beside = _examinee(task, parent, bench, as_much)
            against = _ask_examinee(task, beside, documents, challenge, own=len(own))
            cpu_ms += against.cpu_ms
        examined = _compared(examined, task, evaluation.bits, new, against)
    if examined.status is RunStatus.OK and task.evaluation is not None and not task.evaluation.world:
        shuffled = replace(examinee, shuffled=int.from_bytes(challenge.draw, "big"))
        without = _ask_examinee(task, shuffled, own[:SHUFFLED_DOCUMENTS], challenge._replace(documents=0))
        cpu_ms += without.cpu_ms
        if without.status is RunStatus.OK:
            length = task.evaluation.length
            examined = replace(examined, shuffled=float(without.bits.mean()) / length, unigram=_unigram(own))
    return replace(examined, duration_ms=round(1000 * (time.monotonic() - began)), cpu_ms=cpu_ms)


def examine_on_new_text(
    task: Task,
    model: Model,
    bench: run_bench.Bench,
    challenge: ChallengeDraw,
    *,
    new: NewText,
    purse: run_bench.Purse | None = None,
) -> Examined:
    """Have the referee measure a model on new text alone: what it knows of the task's own by heart is no help.

    The other arguments are those of :func:`examine`, the value is what that calls ``fresh``.

    Raises:
        AutoresearchError: as there.
    """
    began = time.monotonic()
    examinee = _examinee(task, model, bench, purse or run_bench.Purse())
    evaluation = _ask_examinee(task, examinee, new.documents, challenge)
    # What is impossible on the task's own text may be luck on an easier one.
    floor = task.metric.floor if new.level is not None else None
    examined = _examined(task, evaluation, new.cost, floor)
    return replace(examined, duration_ms=round(1000 * (time.monotonic() - began)), cpu_ms=evaluation.cpu_ms)


def _ask_examinee(
    task: Task,
    examinee: Examinee,
    documents: Tokens,
    challenge: ChallengeDraw,
    *,
    own: int | None = None,
) -> RefereeEvaluation:
    from autoresearch.run.referee import referee

    assert task.evaluation is not None
    vocabulary = task.evaluation.vocabulary
    return referee(examinee, documents, vocabulary, draw=challenge.draw, challenges=challenge.documents, own=own)


def _unigram(documents: Tokens) -> float:
    """What a token costs by the frequencies of the tokens alone, in bits."""
    import numpy as np

    shares = np.bincount(documents.ravel()) / documents.size
    return float(-(shares[shares > 0] * np.log2(shares[shares > 0])).sum())


def _examinee(task: Task, model: Model, bench: run_bench.Bench, purse: run_bench.Purse) -> Examinee:
    from autoresearch.run.referee import Examinee

    assert task.evaluation is not None
    seen = {name: text for name, text in task.harness.items() if name not in task.hidden}
    return Examinee(
        files={**run_bench.program_files(model.source), **seen},
        checkpoint=model.checkpoint,
        values=task.evaluation.values,
        bench=replace(bench, python=program_python(model.source, bench)),
        limits=run_bench.job_limits(task, bench.ceiling),
        purse=purse,
    )


def _examined(
    task: Task, evaluation: RefereeEvaluation, cost: Callable[[Floats], float], floor: float | None
) -> Examined:
    """What the referee found as a value of the task: ``cost`` is how many bits a document costs by it."""
    assert task.evaluation is not None
    tolerance = task.evaluation.tolerance
    examined = Examined(
        evaluation.status,
        evaluation.reason,
        challenges=evaluation.challenges,
        mismatches=evaluation.mismatches,
        mean_difference=evaluation.mean_difference,
    )
    if evaluation.status is not RunStatus.OK:
        return examined
    value = cost(evaluation.bits) / task.evaluation.length
    if floor is not None and value < floor - FLOOR_TOLERANCES * tolerance:
        reason = f"{value:.4f} bits is below the entropy of the text, {floor}"
        return replace(examined, status=RunStatus.INVALID, reason=reason)
    return replace(examined, value=value)


def _compared(examined: Examined, task: Task, bits: Floats, new: NewText, parent: RefereeEvaluation | None) -> Examined:
    """With how the model does on the new text, and whether it does better on the task's own than it should.

    It is held against what a perfect model needs, where that is known, and against the parent; the worse of the two
    counts. The parent is a stranger's too: one that is itself odd on the task's own text would hide or accuse a child.
    """
    import numpy as np

    assert task.evaluation is not None
    length, own = task.evaluation.length, len(bits) - len(new.documents)

    def seen(costs: Floats) -> float:
        return gap(costs[:own].tolist(), costs[own:].tolist())

    has_best = new.best is not None and new.own_best is not None
    best = np.concatenate([new.own_best, new.best]) if has_best else np.zeros(len(bits))
    bound = seen(bits - best)
    examined = replace(examined, fresh=new.cost(bits[own:]) / length)
    if parent is not None and parent.status is RunStatus.OK:
        examined = replace(examined, parent_fresh=new.cost(parent.bits[own:]) / length)
        if abs(seen(parent.bits - best)) < GAP_ERRORS:
            bound = min(bound, seen(bits - parent.bits))
    return replace(examined, gap=bound)
