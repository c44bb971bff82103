"""Publishing a kept run of a project: it is measured here, by the task of its environment, then signed and told."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from autoresearch.ask.records import ShowAnswer
from autoresearch.errors import AutoresearchError, NotFound, Refused
from autoresearch.face.columns.column import short
from autoresearch.project.components.installing import is_unlocked, locked_packages, package_files
from autoresearch.project.components.trusting import foreign_components
from autoresearch.project.exchange.flat_files import record_of, remember_published
from autoresearch.project.exchange.publishing import BENCHMARK_EPISODES, flat_program
from autoresearch.project.learned import pack_learned
from autoresearch.project.model import Project, load_project
from autoresearch.project.runs import records
from autoresearch.project.runs.kept import DATA, LocalRun, find_run, head_run
from autoresearch.record.encoding import format_id, parse_id
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.run.bench import Ceiling
from autoresearch.run.experiment import EVALUATION_SEED, Plan, plan_as_it_stands
from autoresearch.run.folder import CHECKPOINT, Conditions, RunReply, RunRequest, new_run
from autoresearch.run.packages import ALLOWED
from autoresearch.run.runner import RunSite, make_bench_with_data, outcome_of, run_here
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.run.sandbox.scratch import scratch_folder
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.task.needs import Package
from autoresearch.text import value
from autoresearch.words import RunStatus
from autoresearch_cli import home
from autoresearch_cli.acts.task_folders import cached_folder
from autoresearch_cli.agent.models import agree, python_with
from autoresearch_cli.local_log import open_desk
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
    prepared, paths = records.prepare_run(project, run), home.paths()
    existing = _known_task(project, run, prepared, task)
    program = flat_program(prepared.project, _packages_of_agent(project, prepared))
    paths.spool.mkdir(parents=True, exist_ok=True)
    with scratch_folder(paths.spool) as scratch:
        published_on = existing or _new_task(prepared, scratch.folder / "task")
        say(f"measuring what run {run.id} had learned: {BENCHMARK_EPISODES} episodes in a sandbox")
        with _measured(
            published_on,
            plan_as_it_stands(published_on, program),
            partial(pack_learned, run.folder / DATA),
            foreign=bool(foreign_components(project)),
        ) as (folder, ended):
            request = records.request_of(prepared, published_on, program, folder / CHECKPOINT, outcome_of(ended))
            answer = home.ask(records.publish_run, msgspec.structs.replace(request, title=title) if title else request)
    remember_published(project, run, answer.record.id)
    return answer, published_on.name


@contextmanager
def _measured(
    task: Task, plan: Plan, model: Callable[[Path], object], *, foreign: bool, may_install: int = ALLOWED
) -> Iterator[tuple[Path, RunReply]]:
    """What a task's evaluator measures of a model, which ``model`` writes into a file. Its folder is gone afterwards.

    ``may_install``: the bytes of packages that the agent brings; a person was asked about those of the task.
    """
    paths, work = home.paths(), home.settings().work
    level, _ = detect_level()
    conditions = Conditions(
        ceiling=Ceiling.of(work),
        threads=work.threads,
        device=home.first_device(),
        foreign=foreign or level >= Level.LANDLOCK,
        may_install=ALLOWED,
        programs_may_install=may_install,
    )
    request = RunRequest(run=new_run("run"), task=task, conditions=conditions, plan=plan, has_model=True)
    site = RunSite(level, paths.task_data, paths.environments, paths.allowed)
    with run_here(request, site, paths.spool, model=model, ready=make_bench_with_data) as ended:
        yield ended


def measured_again(record: Record, task: Task, program: str, learned: Path, *, own: bool) -> float:
    """The value of a published agent, measured again from the seed of its record: the same episodes.

    Raises:
        Refused: its record says no seed.
        AutoresearchError: it can't be measured here.
    """
    body, name = record.body_as(Run), short(format_id(record.id))
    seed = body.metrics.get(EVALUATION_SEED)
    if not isinstance(seed, int) or task.evaluator is None or not 0 <= seed < 2**63:
        raise Refused(
            f"{name} does not say from which seed its episodes were drawn, so they can't be repeated",
            hint=f"autoresearch verify {name} measures it in new episodes",
        )
    if task.packages:
        python_with(task.name, task.packages)
    plan = msgspec.structs.replace(plan_as_it_stands(task, program), evaluation_seed=seed)
    with _measured(task, plan, partial(shutil.copyfile, learned), foreign=not own, may_install=0) as (_, ended):
        outcome = outcome_of(ended)
    if outcome.status != RunStatus.OK or outcome.value is None:
        raise AutoresearchError(f"{name} can't be measured here: {outcome.reason}", hint="autoresearch node doctor")
    return round(outcome.value, records.VALUE_DIGITS)


def say_published(answer: ShowAnswer, task: str) -> None:
    """What was published, its state, and how others get it."""
    assert answer.run is not None
    run = answer.run.run
    name, reason = short(answer.record.id), answer.verification.reason if answer.verification else ""
    say(f"{name} is published, on the task {task}: {run.title}")
    say(f"mean reward {value(run.value)}, {answer.record.state}: {reason}")
    say(f"→ others have it by: autoresearch get {name}")


def _packages_of_agent(project: Project, prepared: records.PublishableRun) -> Mapping[str, bytes]:
    """The files of the packages that a project's agent brings; none where its environment asks for all that it needs.

    They are those that the project is locked to.

    Raises:
        CannotRunHere: no versions fit together, or a package can't be installed.
        PackagesNotAllowed, Refused: they have to be installed, and nobody agrees.
    """
    if not prepared.brings_packages:
        return {}
    from autoresearch.run.package_locks import lock_meets

    packages = [] if is_unlocked(project) else locked_packages(project)
    if not lock_meets(list(prepared.requirements), packages):
        packages = _resolved(prepared.requirements)
    python_with(project.folder.name, packages)
    return package_files(prepared.requirements, packages)


def _resolved(requirements: Mapping[str, str]) -> list[Package]:
    from autoresearch.run.package_locks import resolve_packages

    packages, _ = resolve_packages(list(requirements), what="the packages of this agent don't fit")
    agree(packages)
    return packages


def _new_task(prepared: records.PublishableRun, folder: Path) -> Task:
    """The task of an environment that nobody has published, with the packages that fit what it asks for."""
    requirements = prepared.asked_by_environment
    return records.new_task(
        prepared, package_files(requirements, _resolved(requirements)) if requirements else {}, folder
    )


def _known_task(project: Project, run: LocalRun, prepared: records.PublishableRun, named: str) -> Task | None:
    """The published task of the run's environment, or the one that was ``named``; None where there is none.

    Raises:
        NotFound: there is no task of this name.
        Refused: the run is published already; the task has another environment.
        PackagesNotAllowed, Refused: another participant's task has packages, and nobody agrees to install them.
    """
    with open_desk() as desk:
        record = record_of(project, run)
        if record and desk.log.records.find(parse_id(record)) is not None:
            raise Refused(
                f"run {run.id} is published already, as {short(record)}", hint=f"autoresearch show {short(record)}"
            )
        digests = records.tasks_of_run(desk.log, desk.blobs, prepared, author=desk.me)
        if named:
            named_task = desk.task(named)
            if named_task.digest not in digests:
                raise Refused(
                    f"the task {named_task.name} has another environment than this project, or other packages",
                    hint="leave out --task",
                )
            digests = [named_task.digest]
        else:
            digests = [digest for digest in digests if records.is_current(desk.log.tasks.definition(digest) or {})]
        task = load_task(cached_folder(desk, digests[0])) if digests else None
    if task is not None and task.packages:
        python_with(task.name, task.packages)
    return task
