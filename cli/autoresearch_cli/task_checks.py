"""Whether this machine can run a task: its files, its limits, the device, the data, and the baseline's first step."""

from __future__ import annotations

from collections.abc import Iterator

from autoresearch.errors import AutoresearchError
from autoresearch.research import Bench, Ceiling, forget_runs, preflight, task_data
from autoresearch.running import Level, detect_level, scratch_folder
from autoresearch.tasks import Task, load_task
from autoresearch_cli import here
from autoresearch_cli.checks import FAILED, OK, WARNING, guarded
from autoresearch_cli.models import Check
from autoresearch_cli.rendering.figures import counted


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

    checks = [guarded("limits", limits)]
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
        data = guarded("data", lambda: _data(task, bench))
        yield data
        if data.result != FAILED:
            yield _baseline(task, bench)


def _sandbox(level: Level) -> Check:
    if level >= Level.LANDLOCK:
        return Check(name="sandbox", result=OK, detail=level.sentence)
    return Check(
        name="sandbox", result=WARNING, detail="there is none, so only your own programs run",
        fix="apt install bubblewrap",
    )  # fmt: skip


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
