"""Publishing a kept run of a project: it is measured here, by the task of its environment, then signed and told."""

from __future__ import annotations

from pathlib import Path

import msgspec

from autoresearch.ask.records import ShowAnswer
from autoresearch.errors import NotFound, Refused
from autoresearch.face.columns.column import short
from autoresearch.project.components.requirements import LOCK, LOOSE, package_files
from autoresearch.project.components.trusting import foreign_components
from autoresearch.project.exchange.flat_files import record_of, remember_published
from autoresearch.project.exchange.publishing import BENCHMARK_EPISODES
from autoresearch.project.model import Project, load_project
from autoresearch.project.runs.kept import Run, find_run, head_run
from autoresearch.project.runs.records import (
    KnownTask,
    Prepared,
    measure_run,
    new_task,
    prepare_run,
    publish_run,
    request_of,
    tasks_of_run,
)
from autoresearch.record.encoding import parse_id
from autoresearch.run.bench import Bench, Ceiling
from autoresearch.run.sandbox.execute import permit
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.layout import Interpreter
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.run.sandbox.scratch import scratch_folder, sweep
from autoresearch.task.loading import load_task
from autoresearch.text import value
from autoresearch_cli import here
from autoresearch_cli.acts.task_folders import cached_folder
from autoresearch_cli.agent.models import agree, python_with
from autoresearch_cli.reading import open_desk
from autoresearch_cli.rendering.output import say


def publish_project_run(path: Path, name: str, *, task: str, title: str) -> tuple[ShowAnswer, str]:
    """Publish a kept run, the newest without a name. Returns its record and the name of its task.

    Raises:
        NotFound: the project has no such run, or there is no such task.
        Refused: it is published already, its code was changed, or the task has another environment.
        AutoresearchError: it can't be measured.
    """
    project = load_project(path)
    run = find_run(project, name) if name else head_run(project)
    if run is None:
        raise NotFound("this project has no run to publish", hint="autoresearch train, or autoresearch list --runs")
    prepared = prepare_run(project, run)
    known = _known_tasks(project, run, prepared, task)
    prepared, python = _with_packages(prepared, known)
    paths, work = here.paths(), here.settings().work
    level, _ = detect_level()
    permit(level, foreign=is_foreign(project))
    paths.spool.mkdir(parents=True, exist_ok=True)
    for place in (paths.spool, paths.task_data):
        sweep(place)
    with scratch_folder(paths.spool) as scratch:
        foreign = level >= Level.LANDLOCK or is_foreign(project)
        bench = Bench(
            Level(level),
            work.threads,
            here.first_device(),
            paths.task_data,
            scratch.folder / "bench",
            Ceiling.of(work),
            foreign=foreign,
            python=python,
        )
        say(f"measuring what run {run.id} had learned: {BENCHMARK_EPISODES} episodes in a sandbox")
        measured = measure_run(prepared, bench, scratch.folder)
        if known:
            with open_desk() as desk:
                published_on = load_task(cached_folder(desk, known[0].digest))
        else:
            published_on = new_task(prepared, scratch.folder)
        request = request_of(prepared, published_on, measured, bench)
        shown = here.ask(publish_run, msgspec.structs.replace(request, title=title) if title else request)
    remember_published(project, run, shown.record.id)
    return shown, published_on.name


def is_foreign(project: Project) -> bool:
    """Whether another participant wrote some of a project, and nobody here trusts that."""
    return bool(foreign_components(project))


def say_published(shown: ShowAnswer, task: str) -> None:
    """What was published, its state, and how others get it."""
    assert shown.run is not None
    run = shown.run.run
    name, reason = short(shown.record.id), shown.verification.reason if shown.verification else ""
    say(f"{name} is published, on the task {task}: {run.title}")
    say(f"mean reward {value(run.value)}, {shown.record.state}: {reason}")
    say(f"→ others have it by: autoresearch get {name}")


def _with_packages(prepared: Prepared, known: list[KnownTask]) -> tuple[Prepared, Interpreter | None]:
    """The run with the packages of its environment's task, and the Python that has them; else the node's own.

    Raises:
        PackagesNotAllowed: another participant's task has them, and nobody can be asked here.
        Refused: the answer is no.
        CannotRunHere: no versions fit together, or a package can't be installed.
    """
    if not prepared.asked:
        return prepared, None
    from autoresearch.run.package_locks import resolve_packages

    if known:
        with open_desk() as desk:
            task = load_task(cached_folder(desk, known[0].digest))
        packages, files = task.packages, {name: task.harness[name] for name in (LOOSE, LOCK)}
    else:
        packages, _ = resolve_packages(prepared.asked, what="the packages of this agent don't fit")
        files = package_files(prepared.asked, packages)
        agree(packages)
    python = python_with(prepared.project.folder.name, packages)
    return msgspec.structs.replace(prepared, packages=files), python


def _known_tasks(project: Project, run: Run, prepared: Prepared, task: str) -> list[KnownTask]:
    """The tasks of the run's environment, the preferred first; of a ``task`` that is named that alone."""
    with open_desk() as desk:
        record = record_of(project, run)
        if record and desk.log.records.find(parse_id(record)) is not None:
            raise Refused(
                f"run {run.id} is published already, as {short(record)}", hint=f"autoresearch show {short(record)}"
            )
        found = tasks_of_run(desk.log, desk.blobs, prepared, author=desk.me)
        if not task:
            return found
        named = desk.task(task)
        if kept := [each for each in found if each.digest == named.digest]:
            return kept
        raise Refused(
            f"the task {named.name} has another environment than this project, or other packages",
            hint="leave out --task",
        )
