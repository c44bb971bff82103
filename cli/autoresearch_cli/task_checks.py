"""Whether this machine can run a task: its files, its limits, the device, the data, and the baseline's first step."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import psutil

from autoresearch.errors import AutoresearchError
from autoresearch.figures import counted
from autoresearch.packages import is_installed, task_python
from autoresearch.research import (
    Bench,
    Ceiling,
    device_name,
    forget_runs,
    missing_imports,
    preflight,
    task_data,
    way_to_packages,
)
from autoresearch.running import Level, detect_level, scratch_folder
from autoresearch.tasks import Task, load_task
from autoresearch_cli import here
from autoresearch_cli.checks import FAILED, OK, WARNING, guarded
from autoresearch_cli.models import Check


def task_checks(folder: str) -> Iterator[Check]:
    """One check after the other; the first that fails is the last, because the others need it."""
    task = load_task(here.task_folder(folder))
    yield Check(name="task", result=OK, detail=f"{task.name} in {task.folder}")
    ceiling = Ceiling.of(here.settings().work)

    def limits() -> Check:
        ceiling.check(task)
        return Check(
            name="limits", result=OK, detail=f"{task.limits.memory_mib} MiB of memory and the rest are allowed"
        )

    checks = [guarded("limits", limits), _memory(task), _device(task)]
    level, _ = detect_level()
    checks.append(_sandbox(level))
    yield from checks
    if any(check.result == FAILED for check in checks):
        return
    with scratch_folder(here.paths().spool) as scratch:
        bench = Bench(
            Level(level), here.settings().work.threads, here.first_device(), here.paths().task_data, scratch.folder,
            ceiling, foreign=level >= Level.LANDLOCK,
        )  # fmt: skip
        found = guarded("packages", lambda: _packages(task))
        yield found
        if found.result == FAILED:
            return
        bench = replace(bench, python=task_python(task, here.paths().environments, may_install=lambda: False))
        for name, check in (("imports", _imports), ("data", _data), ("baseline", _baseline)):
            found = guarded(name, partial(check, task, bench))
            yield found
            if found.result == FAILED:
                return


def _sandbox(level: Level) -> Check:
    if level >= Level.LANDLOCK:
        return Check(name="sandbox", result=OK, detail=level.sentence)
    return Check(
        name="sandbox", result=WARNING, detail="there is none, so only your own programs run",
        fix="apt install bubblewrap",
    )  # fmt: skip


def _memory(task: Task) -> Check:
    free = psutil.virtual_memory().available >> 20
    most = task.limits.memory_mib
    if free >= most:
        return Check(name="memory", result=OK, detail=f"{free} MiB are free")
    return Check(
        name="memory", result=WARNING, detail=f"a run may use {most} MiB, and {free} MiB are free now",
        fix="end other programs first, or a run may run out of memory",
    )  # fmt: skip


def _device(task: Task) -> Check:
    device = here.first_device()
    wants = b"cuda" in task.baseline.lower() and b"cpu" not in task.baseline.lower()
    if device == "cpu" and wants:
        return Check(
            name="device", result=WARNING, detail="the program speaks of CUDA alone, and runs here are on the CPU",
            fix="nvidia-smi shows whether there is a card; then: autoresearch config set work.device cuda",
        )  # fmt: skip
    return Check(name="device", result=OK, detail=f"{device}: {device_name(device)}")


def _packages(task: Task) -> Check:
    place = here.paths().environments
    if task.python is None:
        return Check(name="packages", result=OK, detail=f"those of the node's own Python, {sys.executable}")
    if task.packages and not is_installed(task, place):
        return Check(
            name="packages", result=FAILED, detail=f"{counted(len(task.packages), 'package')} not installed here yet",
            fix=f"autoresearch task allow {task.folder}",
        )  # fmt: skip
    python = task_python(task, place, may_install=lambda: False)
    assert python is not None, "the task names one"
    return Check(name="packages", result=OK, detail=f"Python {python.version}, {python.executable}")


def _imports(task: Task, bench: Bench) -> Check:
    if missing := missing_imports(task, bench):
        return Check(
            name="imports", result=FAILED, detail=f"not installed: {', '.join(missing)}",
            fix=way_to_packages(task, " ".join(missing)),
        )  # fmt: skip
    return Check(name="imports", result=OK, detail="every module at the top of the files is here")


def _data(task: Task, bench: Bench) -> Check:
    place = task_data(task, bench)
    detail = "the task has none" if place is None else f"{counted(len(task.data), 'file')} in {place}"
    return Check(name="data", result=OK, detail=detail)


def _baseline(task: Task, bench: Bench) -> Check:
    forget_runs(task, bench)
    try:
        preflight(task, bench)
    except AutoresearchError as error:
        return Check(name="baseline", result=FAILED, detail=str(error), fix=error.hint)
    return Check(name="baseline", result=OK, detail=f"it imports and takes its first step on {bench.device}")
