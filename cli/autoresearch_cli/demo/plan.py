"""What a demo asks of its daemons: first runs of seconds, so that a gain is soon on the screen, then the usual task."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from autoresearch.ask.node import TaskStatus
from autoresearch.ask.requests import WorkRequest
from autoresearch.log.standing.answers import leading
from autoresearch.task.loading import default_task, load_task, shipped_task
from autoresearch.task.model import Task
from autoresearch.text import percent
from autoresearch_cli import home
from autoresearch_cli.rendering.output import say

# The search finds a gain within the first few of them.
QUICK_RUNS = 8
# So long the processors are watched for how busy they are.
LOOK_SECONDS = 0.5


def free_cores() -> int:
    """How many of the cores that this process may use are free now, at least one: half a free core counts as one."""
    import psutil

    allowed = os.sched_getaffinity(0)
    busy = psutil.cpu_percent(interval=LOOK_SECONDS, percpu=True)
    return max(1, round(sum(1 - share / 100 for core, share in enumerate(busy) if core in allowed)))


def parts_of(request: WorkRequest, *, quick: bool) -> list[WorkRequest]:
    """The requests that follow one another: with ``quick`` first runs of seconds, then those of the task of minutes.

    A number of runs is kept: of three all are on it.
    """
    if not quick:
        return [request]
    runs = QUICK_RUNS if request.runs is None else min(QUICK_RUNS, request.runs)
    first = msgspec.structs.replace(request, task=str(default_task().folder), runs=runs)
    left = None if request.runs is None else request.runs - runs
    second = msgspec.structs.replace(request, task=str(shipped_task().folder), runs=left)
    return [first] if left == 0 else [first, second]


def ending(request: WorkRequest, until_ms: int | None) -> WorkRequest:
    """A part of a demo that ends at a time."""
    left_ms = None if until_ms is None else max(1000, until_ms - home.now_ms())
    return msgspec.structs.replace(request, for_ms=left_ms)


def is_late(until_ms: int | None) -> bool:
    """Whether the time of a demo is over."""
    return until_ms is not None and home.now_ms() >= until_ms


def task_of(request: WorkRequest) -> Task:
    """The task that a part of the demo is on."""
    return load_task(Path(request.task) if request.task else home.task_folder(""))


def say_part(request: WorkRequest) -> None:
    """Say which task a part of the demo is on."""
    task = task_of(request)
    say(f"task {task.name}: {task.summary}" if task.summary else f"task {task.name}")


def task_to_name(tasks: Iterable[TaskStatus]) -> TaskStatus | None:
    """Of the tasks of a demo the last one with a gain that was seen, else the last one with a value."""
    valued = [task for task in tasks if task.best]
    gained = [task for task in valued if task.best and leading(task.best).value != task.baseline]
    return next(reversed(gained or valued), None)


def say_dropped(in_hand: Iterable[tuple[str, float]]) -> None:
    """Name the runs that end with a demo, unfinished: what is run, and its share of the way."""
    for run, fraction in in_hand:
        say(f"stopped at {percent(fraction)}, unfinished: {run}")
