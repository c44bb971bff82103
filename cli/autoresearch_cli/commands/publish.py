"""``publish``: hand others a component."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from autoresearch.answers import check_new_release, prepared_for, release_answer
from autoresearch.api import PublishRequest, ReleaseAnswer, operations
from autoresearch.errors import AutoresearchError, DaemonNotRunning, UsageError
from autoresearch.figures import size
from autoresearch.notebook import Notebook
from autoresearch.paths import typed_path
from autoresearch.registry import read_registry
from autoresearch_cli import here
from autoresearch_cli.models import ImportedRelease, RegistryAnswer
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import print_json, print_rows, say

app = command_app("Publish a component, for others to install.")
apps = {"publish": app}


@app.callback(
    epilog=examples(
        ("autoresearch publish component .", "the component in this folder"),
        ("autoresearch publish component q_table.py --type policy --version 1.0.0", "a single file"),
        ("autoresearch publish component --from registry.yaml", "a whole registry file"),
        see="search, show, yank",
    )
)
def publish() -> None:
    """Publish for all to read. Nothing else leaves this machine without being asked for."""


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
