"""What sandbox and referee cost: a run of the shipped task, measured, over ``python train.py`` typed by hand."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from autoresearch.run.bench import Bench, task_data
from autoresearch.run.experiment import Experiment, Plan, plan_as_it_stands
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, JobLimits, Level
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.task.loading import shipped_task
from autoresearch.task.model import Task
from autoresearch.task.program import ENTRY

COMPARED = "the same train.py, data, seed, budget and threads by hand, where it measures itself; alternating runs"
# The task, pairs of runs and the share of the budget; the quick version has no torch and no referee.
_FULL = ("", 5, 1.0)
_QUICK = ("moons", 1, 0.1)
_QUICK_SECONDS = 6.0
_STARTS = 9
_SPARE = JobLimits()


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the wall clock and on the processor."""

    wall: float
    processor: float


def measure(*, quick: bool) -> dict[str, float]:
    """Median ratios over pairs of runs; ``quick`` trains another task for a moment, so start-up weighs more.

    ``ratio`` is wall-clock time, ``cpu_ratio`` processor time (steadier on a busy machine), ``start_ms`` what an empty
    program takes longer. Raises RuntimeError where no sandbox holds or a run fails.
    """
    name, pairs, share = _QUICK if quick else _FULL
    task = shipped_task(name)
    level, _ = detect_level()
    if level is Level.NONE:
        raise RuntimeError("no sandbox holds on this machine")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        (folder / "out").mkdir()
        bench = Bench(level, 1, "cpu", folder / "cache", folder / "out")
        plan = plan_as_it_stands(task, task.baseline.decode())
        plan = msgspec.structs.replace(plan, budget=plan.budget * share, seed=0)
        by_hand, measured = _hand_runner(task, plan, bench, folder / "hand"), _measured_runner(task, plan, bench)
        costs = _alternate(by_hand, measured, pairs, _QUICK_SECONDS if quick else math.inf)
        empty = Job({ENTRY: b""}, limits=_SPARE, metric_source="stdout")
        (folder / "hand" / ENTRY).write_bytes(b"")
        starts = _alternate(by_hand, _sandbox_runner(empty, level), _STARTS, _QUICK_SECONDS / 3)
    return {
        "ratio": median(sandbox.wall / hand.wall for hand, sandbox in costs),
        "cpu_ratio": median(sandbox.processor / hand.processor for hand, sandbox in costs),
        "start_ms": 1000 * median(sandbox.wall - hand.wall for hand, sandbox in starts),
        "by_hand_seconds": median(hand.wall for hand, _ in costs),
        "level": float(level),
        "pairs": float(len(costs)),
    }


def _hand_runner(task: Task, plan: Plan, bench: Bench, folder: Path) -> Callable[[], Cost]:
    """A checkout of the task with its data in place, as a person has it."""
    folder.mkdir()
    if data := task_data(task, bench):
        shutil.copytree(data, folder / "data")
    for name, content in {**task.harness, ENTRY: task.baseline}.items():
        (folder / name).write_bytes(content)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("AUTORESEARCH_")}
    variables = {**plain, "AUTORESEARCH_BUDGET": repr(plan.budget)}

    def run() -> Cost:
        begun = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, ENTRY],
            cwd=folder,
            env=variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"the run by hand ended with status {process.returncode}")
        return Cost(wall, used.ru_utime + used.ru_stime)

    return run


def _measured_runner(task: Task, plan: Plan, bench: Bench) -> Callable[[], Cost]:
    def run() -> Cost:
        own = time.thread_time()  # the supervisor's and the referee's own work count as well
        begun = time.monotonic()
        outcome = Experiment(task, plan, bench).measure()
        wall = time.monotonic() - begun
        if outcome.status != "ok":
            raise RuntimeError(f"the run in the sandbox failed: {outcome.reason}")
        return Cost(wall, outcome.cpu_ms / 1000 + time.thread_time() - own)

    return run


def _sandbox_runner(job: Job, level: Level) -> Callable[[], Cost]:
    def run() -> Cost:
        own = time.thread_time()  # the supervisor's own work counts as well
        begun = time.monotonic()
        outcome = execute(job, level=level)
        wall = time.monotonic() - begun
        if outcome.status != "ok":
            raise RuntimeError(f"the run in the sandbox failed: {outcome.reason}")
        return Cost(wall, outcome.cpu_ms / 1000 + time.thread_time() - own)

    return run


def _alternate(
    first: Callable[[], Cost], second: Callable[[], Cost], pairs: int, seconds: float
) -> list[tuple[Cost, Cost]]:
    """Pairs of costs; every other pair runs in the other order, so that a drift of the machine cancels.

    After ``seconds`` no further pair starts.
    """
    costs: list[tuple[Cost, Cost]] = []
    deadline = time.monotonic() + seconds
    for number in range(pairs):
        if costs and time.monotonic() > deadline:
            break
        if number % 2:
            later = second()
            costs.append((first(), later))
        else:
            costs.append((first(), second()))
    return costs
