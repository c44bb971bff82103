"""``publish``: hand others a project's run, or a component."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from autoresearch.answers import check_new_release, prepared_for, release_answer, task_of, task_status
from autoresearch.api import PublishRequest, PublishTaskRequest, ReleaseAnswer, TaskStatus, operations
from autoresearch.errors import AutoresearchError, DaemonNotRunning, UsageError
from autoresearch.figures import size
from autoresearch.notebook import Notebook
from autoresearch.paths import typed_path
from autoresearch.projects import is_project
from autoresearch.registry import read_registry
from autoresearch.tasks import MANIFEST, load_task
from autoresearch.tasks import Task as TaskFolder
from autoresearch_cli import here
from autoresearch_cli.models import ImportedRelease, RegistryAnswer
from autoresearch_cli.options import Folder, Json, command_app, examples
from autoresearch_cli.project_publishing import publish_project_run, say_published
from autoresearch_cli.projects import project_path
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import print_json, print_rows, say

if TYPE_CHECKING:  # typer carries its own click; only the type checker needs its names
    from typer._click import Context

RUN = "run"


class RunGroup(TyperGroup):
    """Takes what is no command of the group for a run: ``publish 3fa1`` means ``publish run 3fa1``."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Put the command in front where it is left out."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [RUN, *args]
        return super().parse_args(ctx, args)


app = command_app("Publish a project's run, or a component.", no_args_is_help=False)
app.info.cls = RunGroup
apps = {"publish": app}


@app.callback(
    epilog=examples(
        ("autoresearch publish", "the newest run of the project in this folder"),
        ("autoresearch publish 3fa1", "a run that `list --runs` shows"),
        ("autoresearch publish component .", "the component in this folder"),
        see="get, top, search, show, yank",
    )
)
def publish() -> None:
    """Publish for all to read. Nothing else leaves this machine without being asked for."""


@app.command(
    name=RUN,
    epilog=examples(
        ("autoresearch publish", "the newest run of the project in this folder"),
        ("autoresearch publish 3fa1 --title 'longer corridor'", "a run that `list --runs` shows, with a title"),
        ("autoresearch publish --json | jq -r .record.id", "the same for a program"),
        see="get, top, train, run, list",
    ),
)
def run(
    name: Annotated[
        str,
        typer.Argument(metavar="[RUN]", help="A run of the project: the beginning of its id. Left out: the newest."),
    ] = "",
    *,
    file: Annotated[str, typer.Option("--file", "-f", metavar="INI", help="A project's agent.ini.")] = "",
    task: Annotated[
        str,
        typer.Option("--task", metavar="TASK", help="The task to publish it on. Left out: that of its environment."),
    ] = "",
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Left out: policy, trainer, episodes.")] = "",
    json: Json = False,
) -> None:
    """Publish a run of a project: what it learned is measured by the task of its environment, then signed.

    Others get the agent, its parameters and what it learned. An environment without a task gets one.
    """
    shown, named = publish_project_run(project_path(file), name, task=task, title=title)
    if json:
        print_json(shown)
    else:
        say_published(shown, named)


@app.command(
    epilog=examples(
        ("autoresearch publish component . --type policy --version 1.0.0", "a folder or a git repository"),
        ("autoresearch publish component sarsa.py --type trainer --version 0.2.0 --class sarsa:Sarsa", "one file"),
        ("autoresearch publish component --from registry.yaml", "all releases of a registry file"),
        see="search, show, yank",
    )
)
def component(  # noqa: PLR0913 - one for each thing that can be said
    place: Annotated[str, typer.Argument(metavar="[DIR|FILE]", help="A folder, a git repository or a file.")] = "",
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


@app.command(
    epilog=examples(
        ("autoresearch publish task ~/grammar", "a task folder, before anybody has run it"),
        ("autoresearch publish task .", "the folder here"),
        ("autoresearch publish task . --json | jq -r .digest", "its identity"),
        see="task new, task show, task list, run, work",
    )
)
def task(folder: Folder = "", *, json: Json = False) -> None:
    """Publish a task: its rules, fixed files and baseline, for others to work on. `run` and `work` do that, too."""
    place = here.existing_folder(folder) if folder else here.task_folder("")
    if is_project(place) and not (place / MANIFEST).exists():
        raise UsageError(f"{place} is a project; its task is published with a run", hint="autoresearch publish")
    status = _publish_task(load_task(place))
    if json:
        print_json(status)
        return
    say(f"the task {status.name} is published: {status.metric}, {status.direction}")
    say(f"→ others have it by: autoresearch task get {status.name}")


def _publish_task(task: TaskFolder) -> TaskStatus:
    """Through the daemon where one runs."""
    with suppress(DaemonNotRunning):
        return here.client().ask(operations.PUBLISH_TASK, PublishTaskRequest(task=str(task.folder)))
    with Notebook(here.paths()) as notebook:
        notebook.publish_identity(here.now_ms())
        notebook.publish_task(task, here.now_ms())
        found = task_of(notebook.log, task.digest)
        assert found is not None, "it was just published"
        return task_status(notebook.log, found, author=notebook.author)


def _publish(request: PublishRequest) -> ReleaseAnswer:
    """Through the daemon where one runs."""
    with suppress(DaemonNotRunning):
        return here.client().ask(operations.PUBLISH_RELEASE, request)
    prepared = prepared_for(request)
    with Notebook(here.paths()) as notebook:
        check_new_release(notebook.log, prepared, notebook.author)
        record = notebook.publish_release(prepared, here.now_ms())
        return release_answer(notebook.log, record.id, me=notebook.author, notes=prepared.notes)


def _import(path: Path, *, json: bool) -> None:
    """Publish what a registry file lists, one after the other; what can't be published is said and passed over."""
    rows: list[ImportedRelease] = []
    for entry in read_registry(path):
        said = entry.said
        request = PublishRequest(
            git=entry.git,
            commit=entry.commit,
            type=said.type,
            name=said.name,
            version=said.version,
            description=said.description,
            class_name=said.class_name,
            requirements_path=said.requirements_path,
        )
        try:
            found, reason = _publish(request).release.id, ""
        except AutoresearchError as error:
            found, reason = "", str(error)
        rows.append(ImportedRelease(type=said.type, name=said.name, version=said.version, id=found, reason=reason))
        if not json:
            print_rows([(said.type, said.name, said.version, short(found) if found else reason)], flush=True)
    answer = RegistryAnswer(file=str(path), releases=rows)
    if json:
        print_json(answer)
    done = sum(bool(row.id) for row in rows)
    say(f"{done} of {len(rows)} releases of {path.name} are published")
    say("→ autoresearch search")
