"""One run of a task folder in this process, without a daemon: walled in, measured and published like any other."""

from __future__ import annotations

from collections.abc import Callable

from autoresearch.ideas import Idea, plan_of_idea
from autoresearch.notebook import Notebook
from autoresearch.packages import may_install, task_python
from autoresearch.paths import Paths
from autoresearch.records import format_id
from autoresearch.research import Bench, Ceiling, measure, preflight, remember_run, task_data
from autoresearch.running import Level, Progress, detect_level, permit, scratch_folder, sweep
from autoresearch.tasks import shipped_task
from autoresearch.views import is_own_program, own_keys
from autoresearch.words import RunStatus


def run_once(
    idea: Idea,
    paths: Paths,
    *,
    now_ms: Callable[[], int],
    ceiling: Ceiling,
    threads: int = 1,
    device: str = "cpu",
    allow_packages: str = "own",
    progress: Callable[[float, str], None] | None = None,
) -> str:
    """Run an idea once, in this process, and publish the run. Returns the record's id, as text.

    Raises:
        Locked: a daemon or another command works with this device key.
        Refused: the task asks for more than the ceiling, or others wrote some of it and there is no sandbox.
        PackagesNotAllowed: the task's packages have to be installed, and nobody allowed it.
        AutoresearchError: the task can't be run; how the program ends is no error but the record's status.
    """
    task = idea.task
    ceiling.check(task)
    with Notebook(paths) as notebook:
        notebook.publish_identity(now_ms())
        level, _ = detect_level()
        own = own_keys(notebook.log, notebook.author, now_ms())
        plan = plan_of_idea(notebook.log, notebook.blobs, idea, author=notebook.author)
        foreign = level >= Level.LANDLOCK or not is_own_program(
            notebook.log, task, plan.source, plan.parent, own, shipped=shipped_task()
        )
        permit(level, foreign=foreign)
        paths.spool.mkdir(parents=True, exist_ok=True)
        for place in (None, paths.spool, paths.task_data):
            sweep(place)

        def tell(step: Progress) -> None:
            if progress:
                progress(step.fraction, "" if step.loss is None else f"loss {step.loss:.3f}")

        def allowed() -> bool:
            return may_install(task, paths.allowed_packages, allow_packages, notebook.log, notebook.author, now_ms())

        python = task_python(task, paths.environments, may_install=allowed)
        with scratch_folder(paths.spool) as scratch:
            bench = Bench(
                Level(level), threads, device, paths.task_data, scratch.folder, ceiling, foreign=foreign, python=python
            )
            task_data(task, bench)
            preflight(task, bench)
            measurement, outcome = measure(task, plan, bench, own=True, on_progress=tell)
            if measurement.status is RunStatus.OK:
                remember_run(task, bench)
            notebook.publish_task(task, now_ms())
            published = notebook.publish_run(
                plan, measurement, now_ms(), log=outcome.log, checkpoint=outcome.checkpoint
            )
    return format_id(published.record.id)
