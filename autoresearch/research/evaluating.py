"""The task's own evaluator: it measures what a program left, where nothing else of the program is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from autoresearch.research.bench import Bench, command_words, job_limits, task_data
from autoresearch.research.ceiling import MIB
from autoresearch.running import Job, Outcome, execute
from autoresearch.tasks import Task, parse_summary
from autoresearch.words import RunStatus


def evaluate(
    task: Task, artifact: Path, bench: Bench, seed: int, cancelled: Callable[[], bool] | None = None
) -> Outcome:
    """Run the task's evaluator on an artifact, in a sandbox with the pinned files and all data of the task.

    The program's process, its folder and what it printed are not there. The value is what the evaluator prints.

    Raises:
        AutoresearchError: the task's data can't be made here.
    """
    assert task.evaluator is not None, "asked only of tasks that have an evaluator"
    name = task.evaluator.artifact
    job = Job(
        files={**task.harness, name: artifact.read_bytes()},
        command=command_words(task.evaluator.command),
        copied=tuple(task.harness),
        linked=(name,),
        foreign=bench.foreign,
        python=bench.python,
        data=task_data(task, bench),
        limits=job_limits(task, bench.ceiling),
        seed=seed,
        threads=bench.threads,
        device=bench.device,
        metric_source="stdout",
        metric_name=task.metric.name,
        parse=lambda text: parse_summary(text, task.metric.name),
    )
    outcome = execute(job, level=bench.level, cancelled=cancelled)
    if outcome.status is RunStatus.OK:
        return replace(outcome, reason="measured by the task's evaluator")
    return replace(outcome, reason=f"the task's evaluator did not end well: {outcome.reason}")


def fault_of_artifact(task: Task, artifact: Path) -> str | None:
    """Why a stranger's artifact is not evaluated, as a sentence, or None: it is too large."""
    assert task.evaluator is not None, "asked only of tasks that have an evaluator"
    most = task.evaluator.artifact_mib
    return None if artifact.stat().st_size <= most * MIB else f"its artifact is larger than {most} MiB"
