"""The task's own evaluator: it measures what a program left, where nothing else of the program is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from autoresearch.research.bench import Bench, command_words, job_limits, program_files, runs_library, task_data
from autoresearch.research.ceiling import MIB
from autoresearch.running import Job, Outcome, Talk, execute, without
from autoresearch.tasks import Task, parse_summary
from autoresearch.words import RunStatus


def evaluate(
    task: Task,
    source: str,
    artifact: Path,
    bench: Bench,
    seed: int,
    cancelled: Callable[[], bool] | None = None,
) -> Outcome:
    """Run the task's evaluator on an artifact, in a sandbox with the pinned files and all data of the task.

    The program's process, its folder and what it printed are not there. The value is what the evaluator prints. Where
    the task says that the program ``source`` answers, that runs beside it in a sandbox of its own. What ends it before
    its time is the reason that is told.

    Raises:
        AutoresearchError: the task's data can't be made here.
    """
    assert task.evaluator is not None, "asked only of tasks that have an evaluator"
    words = command_words(task.evaluator.command)
    job = _job(task, artifact, bench, seed, task.harness, words)
    job = replace(
        job,
        data=task_data(task, bench),
        metric_source="stdout",
        metric_name=task.metric.name,
        parse=lambda text: parse_summary(text, task.metric.name),
    )
    if task.evaluator.answers:
        outcome = _asked(task, source, artifact, job, bench, cancelled)
    else:
        outcome = _ended(execute(job, level=bench.level, cancelled=cancelled))
    if outcome.status is RunStatus.OK:
        return replace(outcome, reason="measured by the task's evaluator")
    return outcome


def _ended(outcome: Outcome) -> Outcome:
    reason = f"the task's evaluator did not end well: {outcome.reason}"
    return outcome if outcome.status is RunStatus.OK else replace(outcome, reason=reason)


def _asked(
    task: Task, source: str, artifact: Path, job: Job, bench: Bench, cancelled: Callable[[], bool] | None
) -> Outcome:
    """What came of the evaluator, with what the program that it asked used and printed; that is ended with it.

    Where neither ended well, the one that ended first is the cause: the other heard that nobody was there any more.
    """
    assert task.evaluator is not None
    files = {name: content for name, content in task.harness.items() if name not in task.hidden}
    words = command_words(task.evaluator.answers)
    partner = _job(task, artifact, bench, 0, {**program_files(source), **files}, words)
    data, ended = job.data, threading.Event()
    if data is not None and task.hidden:
        data = without(data, task.hidden)
    ours, theirs = Talk.pair()

    def stopped() -> bool:
        return ended.is_set() or (cancelled is not None and cancelled())

    try:
        with ThreadPoolExecutor(1) as pool:
            partner = replace(partner, data=data, talk=theirs, metric_source="stdout", parse=lambda _: {})
            answering = pool.submit(_timed, partner, bench, stopped)
            try:
                outcome, at = _timed(replace(job, talk=ours), bench, cancelled)
            finally:
                ours.close()
                ended.set()
            answered, before = answering.result()
    finally:
        theirs.close()
    outcome = _ended(outcome)
    if outcome.status is not RunStatus.OK and before < at and answered.status is not RunStatus.OK:
        reason = f"the program that the task's evaluator asked did not end well: {answered.reason}"
        outcome = replace(outcome, status=answered.status, reason=reason)
    mark = b"--- the program that it asked ---\n"
    return replace(
        outcome,
        log=outcome.log + (mark + answered.log if answered.log else b""),
        cpu_ms=outcome.cpu_ms + answered.cpu_ms,
        peak_memory_bytes=max(outcome.peak_memory_bytes, answered.peak_memory_bytes),
    )


def _timed(job: Job, bench: Bench, cancelled: Callable[[], bool] | None) -> tuple[Outcome, float]:
    """What came of a job, and when it had ended."""
    return execute(job, level=bench.level, cancelled=cancelled), time.monotonic()


def _job(
    task: Task, artifact: Path, bench: Bench, seed: int, files: Mapping[str, bytes], command: tuple[str, ...]
) -> Job:
    assert task.evaluator is not None
    name = task.evaluator.artifact
    return Job(
        files={**files, name: artifact.read_bytes()},
        command=command,
        copied=tuple(files),
        linked=(name,),
        foreign=bench.foreign,
        python=bench.python,
        library=runs_library(command),
        limits=job_limits(task, bench.ceiling),
        seed=seed,
        threads=bench.threads,
        device=bench.device,
    )


def fault_of_artifact(task: Task, artifact: Path) -> str | None:
    """Why a stranger's artifact is not evaluated, as a sentence, or None: it is too large."""
    assert task.evaluator is not None, "asked only of tasks that have an evaluator"
    most = task.evaluator.artifact_mib
    return None if artifact.stat().st_size <= most * MIB else f"its artifact is larger than {most} MiB"
