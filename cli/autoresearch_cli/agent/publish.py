"""``publish`` hands others a project's run, or a component; ``get`` makes a published run a folder to go on from.

``yank`` advises against a release of one's own.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from autoresearch.ask import publishing, questions
from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.desk import Desk
from autoresearch.ask.node_acts import Node
from autoresearch.ask.registry import releases
from autoresearch.ask.registry.components import ReleaseAnswer
from autoresearch.ask.registry.preparing import read_registry
from autoresearch.ask.requests import OneRecord, PublishRequest, PublishTaskRequest, YankRequest
from autoresearch.ask.runs.diffs import open_checkpoint, run_checkpoint
from autoresearch.errors import AutoresearchError, DaemonNotRunning, NotFound, Refused, UsageError
from autoresearch.face.columns.column import short
from autoresearch.log.standing.context import own_keys
from autoresearch.paths import typed_path
from autoresearch.project.components.trusting import reaches_of
from autoresearch.project.exchange.fetching import write_run
from autoresearch.project.exchange.flat_files import ENVIRONMENT_INI
from autoresearch.project.exchange.publishing import BENCHMARK_EPISODES
from autoresearch.project.model import is_project, load_project
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Release, Run
from autoresearch.record.record import Record
from autoresearch.run.bench import fault_of_program
from autoresearch.run.consent import allow_reaches
from autoresearch.run.sandbox.scratch import scratch_folder
from autoresearch.task.folders import is_taken
from autoresearch.task.loading import MANIFEST, load_task
from autoresearch.task.model import Task as TaskFolder
from autoresearch.text import figure, size, value
from autoresearch.words import with_article
from autoresearch_cli import home
from autoresearch_cli.acts.attacks import attacked_before
from autoresearch_cli.acts.task_folders import cached_folder, get_task
from autoresearch_cli.agent.models import GotAnswer
from autoresearch_cli.agent.projects import project_path
from autoresearch_cli.agent.publishing import measured_again, publish_project_run, say_published
from autoresearch_cli.catalogue import (
    Answered,
    Attacked,
    CommandApp,
    Folder,
    Json,
    Reference,
    Task,
    Yes,
    complete_reference,
    examples,
)
from autoresearch_cli.local_log import open_desk, with_blobs
from autoresearch_cli.models import ImportedRelease, RegistryAnswer
from autoresearch_cli.rendering.output import confirm, print_json, print_rows, print_text, say

if TYPE_CHECKING:
    from typer._click import Context

RUN = "run"


class RunGroup(TyperGroup):
    """Takes what is no command of the group for a run: ``publish 3fa1`` means ``publish run 3fa1``."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Put the command in front where it is left out."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [RUN, *args]
        return super().parse_args(ctx, args)


app = CommandApp()
publish_app = CommandApp("Publish a project's run, or a component.", no_args_is_help=False)
publish_app.info.cls = RunGroup
app.add_typer(publish_app, name="publish")


@publish_app.callback(
    epilog=examples(
        ("autoresearch publish", "the newest run of the project in this folder"),
        ("autoresearch publish 3fa1", "a run that `list --runs` shows"),
        ("autoresearch publish component .", "the component in this folder"),
        see="get, top, search, show, agent yank",
    )
)
def publish() -> None:
    """Publish for all to read. Nothing else leaves this machine without being asked for."""


@publish_app.command(
    RUN,
    ("autoresearch publish", "the newest run of the project in this folder"),
    ("autoresearch publish 3fa1 --title 'longer corridor'", "a run that `list --runs` shows, with a title"),
    ("autoresearch publish --json | jq -r .record.id", "the same for a program"),
    see="get, top, train, run, list",
)
def run(
    name: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A run of the project: the beginning of its id. Left out: the newest."),
    ] = "",
    *,
    file: Annotated[str, typer.Option("--file", "-f", metavar="INI", help="A project's agent.ini.")] = "",
    task: Annotated[
        str,
        typer.Option("--task", metavar="TASK", help="The task to publish it on. Left out: that of its environment."),
    ] = "",
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Left out: policy, trainer, episodes.")] = "",
) -> Answered:
    """Publish a run of a project. The task of its environment measures what it learned.

    Others get the agent, its parameters and what it learned. An environment without a task gets one.
    """
    if name and (typed_path(name) / MANIFEST).is_file():
        raise UsageError(f"{name} is a task folder", hint=f"autoresearch publish task {shlex.quote(name)}")
    answer, named = publish_project_run(project_path(file), name, task=task, title=title)
    yield answer
    say_published(answer, named)


@publish_app.command(
    "component",
    ("autoresearch publish component . --type policy --version 1.0.0", "a folder or a git repository"),
    ("autoresearch publish component sarsa.py --type trainer --version 0.2.0 --class sarsa:Sarsa", "one file"),
    ("autoresearch publish component --from registry.yaml", "all releases of a registry file"),
    see="search, show, agent yank",
)
def component(  # noqa: PLR0913 - one for each thing that can be said
    place: Annotated[str, typer.Argument(metavar="DIR|FILE", help="A folder, a git repository or a file.")] = "",
    *,
    kind: Annotated[str, typer.Option("--type", metavar="TYPE", help="environment, policy, trainer, …")] = "",
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Left out: the folder's or the file's.")] = "",
    version: Annotated[str, typer.Option("--version", metavar="VERSION", help="Such as 1.0.0.")] = "",
    class_name: Annotated[
        str, typer.Option("--class", metavar="MODULE:CLASS", help="Left out: the only class there is.")
    ] = "",
    description: Annotated[str, typer.Option("--description", metavar="TEXT", help="What it is.")] = "",
    requirements: Annotated[
        str, typer.Option("--requirements", metavar="FILE", help="Left out: requirements.txt, pyproject.toml.")
    ] = "",
    needs: Annotated[
        list[str] | None, typer.Option("--needs", metavar="TYPE/NAME", help="Another component; may be given again.")
    ] = None,
    license_name: Annotated[str, typer.Option("--license", metavar="NAME", help="Such as MIT.")] = "",
    registry: Annotated[
        str, typer.Option("--from", metavar="FILE", help="Publish all releases of a registry.yaml.")
    ] = "",
    json: Json = False,
) -> None:
    """Publish a component: its files, signed and kept by peers. Options may stand in component.ini instead."""
    if registry:
        if place or kind or name or version or class_name or requirements or needs:
            raise UsageError("--from stands alone: the file says what is published", hint="leave the others out")
        _import(typed_path(registry), json=json)
        return
    request = PublishRequest(
        place=str(typed_path(place or ".").absolute()),
        type=kind,
        name=name,
        version=version,
        class_name=class_name,
        description=description,
        requirements_path=requirements,
        needs=needs or [],
        license=license_name,
    )
    answer = _publish(request)
    if json:
        print_json(answer)
        return
    made = answer.release
    say(f"{made.type} {made.name} {made.version} is published: {short(made.id)}, {size(made.bundle_bytes)}")
    for note in answer.notes:
        say(note)
    say(f"→ autoresearch show {short(made.id)}")


@publish_app.command(
    "task",
    ("autoresearch publish task ~/moons", "a task folder, before anybody has run it"),
    ("autoresearch publish task . --no-attack", "at once, without attacks on it"),
    ("autoresearch publish task . --json | jq -r .digest", "its identity"),
    see="task new, task show, task attack, task list, run, work",
)
def task(folder: Folder = "", *, attack: Attacked = True) -> Answered:
    """Publish a task for others to work on. `run` and `work` do that, too.

    Its rules, its fixed files and its baseline are published, and a report of attacks on it: the one beside it, or the
    quick half is tried first, within a minute.
    """
    place = home.existing_folder(folder) if folder else home.task_folder("")
    if is_project(place) and not (place / MANIFEST).exists():
        raise UsageError(f"{place} is a project; its task is published with a run", hint="autoresearch publish")
    loaded = load_task(place)
    lacking = attacked_before(loaded, try_it=attack)
    request = PublishTaskRequest(task=str(loaded.folder), attacked=not lacking)
    status = home.ask(publishing.publish_task, request)
    yield status
    say(f"the task {status.name} is published: {status.metric}, {status.direction}")
    if lacking:
        attack_it = f"autoresearch task attack {shlex.quote(folder or '.')} --publish"
        say(f"no report of attacks stands beside it: {lacking} → {attack_it}")
    say(f"→ others have it by: autoresearch task get {status.name}")


def _publish(request: PublishRequest) -> ReleaseAnswer:
    """Through the daemon where one runs."""
    with suppress(DaemonNotRunning):
        return home.client().ask(Node.publish_release, request)
    prepared = releases.prepared_for(request)
    with Notebook(home.paths()) as notebook:
        releases.check_new_release(notebook.log, prepared, notebook.author)
        record = notebook.publish_release(prepared, home.now_ms())
        return releases.release_answer(notebook.log, record.id, me=notebook.author, notes=prepared.notes)


def _import(path: Path, *, json: bool) -> None:
    """Publish what a registry file lists, one after the other; what can't be published is said and passed over."""
    rows: list[ImportedRelease] = []
    for request in read_registry(path):
        try:
            release_id, reason = _publish(request).release.id, ""
        except AutoresearchError as error:
            release_id, reason = "", str(error)
        rows.append(
            ImportedRelease(type=request.type, name=request.name, version=request.version, id=release_id, reason=reason)
        )
        if not json:
            print_rows(
                [(request.type, request.name, request.version, short(release_id) if release_id else reason)], flush=True
            )
    answer = RegistryAnswer(file=str(path), releases=rows)
    if json:
        print_json(answer)
    done = sum(bool(row.id) for row in rows)
    say(f"{done} of {len(rows)} releases of {path.name} are published")
    if done < len(rows):
        say(f"→ correct the others in {path.name}, then publish it again")
        raise typer.Exit(1)
    say("→ autoresearch search --kind component")


# What came of a learned state in this time is kept, and the next call goes on from there.
LEARNED_SECONDS = 600.0


@app.command(
    "get",
    ("autoresearch get @ walker --task corridor", "the best agent with what it had learned, in a new folder"),
    ("autoresearch get g3xk --json | jq -r .folder", "the same for a program"),
    ("autoresearch get g3xk --reproduce", "its published number again, by the same episodes"),
    see="publish, verify, top, run, train, task get",
)
def get(
    reference: Reference,
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="A new folder. Left out: the task's name with the run's id, here.")
    ] = "",
    *,
    task: Task = "",
    reproduce: Annotated[
        bool, typer.Option("--reproduce", help="Measure an agent again in the same episodes. Writes no folder.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a published run as a folder: the project with what it had learned, or a task with the run's program."""
    with open_desk(home.task_meant(task, reference)) as desk:
        record = desk.log.records.get(desk.record(reference))
        if not isinstance(record.body, Run):
            raise Refused(f"{reference} is {with_article(record.kind)}, no run", hint="autoresearch top lists runs")
        if reproduce and folder:
            raise UsageError("--reproduce writes no folder", hint=f"leave out {folder}")
        loaded_task = load_task(cached_folder(desk, record.body.task))
        if reproduce:
            _say_reproduced(_reproduced(desk, record, loaded_task), json=json)
            return
        name = short(format_id(record.id))
        place = typed_path(folder or f"{loaded_task.name}-{name}").absolute()
        is_project = ENVIRONMENT_INI in loaded_task.harness
        local = _project(desk, record.id, loaded_task, place) if is_project else _program(loaded_task, record.id, place)
        answer = GotAnswer(
            folder=str(place), id=format_id(record.id), task=loaded_task.name, value=record.body.value, run=local
        )
    if json:
        print_json(answer)
        return
    quoted = shlex.quote(folder or place.name)
    if not is_project:
        say(f"{place} is the task {loaded_task.name}, with the program of {name}")
        say(f"→ edit it, then: autoresearch run {quoted} --hypothesis '…'")
        return
    reward = "" if answer.value is None else f": mean reward {value(answer.value)} over {BENCHMARK_EPISODES} episodes"
    say(f"{place} is the agent of {name}{reward}")
    say(f"→ cd {quoted} && autoresearch run -n {BENCHMARK_EPISODES} measures it; autoresearch train goes on from it")


def _reproduced(desk: Desk, record: Record, task: TaskFolder) -> GotAnswer:
    """Measure an agent again by the seed of its record."""
    body, name = record.body_as(Run), short(format_id(record.id))
    if ENVIRONMENT_INI not in task.harness or body.value is None:
        raise Refused(f"{name} is no agent of a project with a value", hint=f"autoresearch verify {name}")
    program = home.ask(questions.source, OneRecord(id=format_id(record.id)))
    own = desk.me is not None and record.author in own_keys(desk.log, desk.me, home.now_ms())
    paths = home.paths()
    paths.spool.mkdir(parents=True, exist_ok=True)
    with scratch_folder(paths.spool) as scratch:
        learned = _learned(desk, record.id, scratch.folder / "learned.zip")
        if learned is None:
            raise Refused(f"{name} can't be measured again without what it learned", hint="autoresearch top")
        number = measured_again(record, task, program, learned, own=own)
    return GotAnswer(id=format_id(record.id), task=task.name, value=body.value, reproduced=number)


def _say_reproduced(answer: GotAnswer, *, json: bool) -> None:
    """Whether this machine comes to the published value; the exit status is 1 where it does not."""
    is_equal = answer.reproduced == answer.value
    if json:
        print_json(answer)
    elif is_equal:
        print_text(f"equal: {figure(answer.value)}")
    else:
        print_text(f"differs: {figure(answer.value)} published vs {figure(answer.reproduced)} on this machine")
    if not is_equal:
        raise typer.Exit(1)


def _project(desk: Desk, run: bytes, task: TaskFolder, place: Path) -> str:
    """Write a run's project; returns the id of the run in it."""
    if is_taken(place):
        raise Refused(f"{place} exists already", hint="give a new folder: autoresearch get RUN DIR")
    log, record = desk.log, desk.log.records.get(run)
    program = home.ask(questions.source, OneRecord(id=format_id(run)))
    if (fault := fault_of_program(task, program)) is not None:
        raise Refused(f"{short(format_id(run))} is no project: {fault}", hint="autoresearch top lists other runs")
    own = desk.me is not None and record.author in own_keys(log, desk.me, home.now_ms())
    paths = home.paths()
    paths.spool.mkdir(parents=True, exist_ok=True)
    with scratch_folder(paths.spool) as scratch:
        learned = _learned(desk, run, scratch.folder / "learned.zip")
        written = write_run(record, program, task.harness, learned, place, own=own).id
    if own:
        allow_reaches(place, reaches_of(load_project(place)), paths)
    return written


def _learned(desk: Desk, run: bytes, file: Path) -> Path | None:
    """The packed state of a run, from other nodes where it is not here; None where its author kept none."""
    try:
        blob = run_checkpoint(desk.log, run)
    except NotFound:
        say(f"{short(format_id(run))} kept nothing of what it learned: the project begins anew")
        return None
    if not desk.blobs.has(blob.sha256):
        say(f"fetching {size(blob.size)} from other nodes …")
    with with_blobs(lambda: open_checkpoint(desk.log, desk.blobs, run), seconds=LEARNED_SECONDS) as content:
        file.write_bytes(content.read())
    return file


def _program(task: TaskFolder, run: bytes, place: Path) -> str:
    """Write a task's folder with the program of a run, as ``task get --run`` does."""
    get_task(task.digest.hex(), str(place), format_id(run))
    return ""


@app.command(
    "agent yank",
    ("autoresearch agent yank g3xk", "asks first, on a terminal"),
    ("autoresearch agent yank g3xk --reason 'wrong reward, use 1.0.1'", "with a public reason"),
    ("autoresearch agent yank g3xk --yes --json", "without a question, for a program"),
    see="search, show, publish component, run withdraw",
)
def yank(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="Its id or the beginning.", autocompletion=complete_reference)
    ],
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, public.")] = "",
    yes: Yes = False,
) -> Answered:
    """Advise against a release of yours. It stays, who pinned it is warned, and no name means it any more."""
    with open_desk() as desk:
        record = releases.own_release(desk.log, release, desk.me)
    assert isinstance(record.body, Release)
    if not yes:
        confirm(f"Yank {record.body.name} {record.body.version} ({short(format_id(record.id))}) for good?")
    answer = home.ask(publishing.yank, YankRequest(release=format_id(record.id), reason=reason))
    yield answer
    say(f"{answer.name} {answer.version} is yanked: its name alone does not install it any more")
    say(f"→ autoresearch show {short(answer.id)}")
