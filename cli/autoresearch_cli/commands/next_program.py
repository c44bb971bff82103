"""``next``: bring a task folder to the program to build on."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from autoresearch.errors import UsageError
from autoresearch.figures import value
from autoresearch_cli import here
from autoresearch_cli.agent_folders import bring
from autoresearch_cli.completing import complete_reference
from autoresearch_cli.options import Folder, Json, command_app, examples
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import print_json, say

app = command_app()
apps = {"next": app}


@app.command(
    name="next",
    epilog=examples(
        ("autoresearch next ~/grammar", "its program becomes the best one"),
        ("autoresearch next . --run g3xk", "the program of another run, as the start of your next edit"),
        ("autoresearch next . --json | jq -r .kept", "where the edit lies that was there and never run"),
        see="run, task get, best, diff",
    ),
)
def next_program(
    folder: Folder = "",
    *,
    run: Annotated[
        str,
        typer.Option(
            "--run",
            metavar="ID",
            help="The run to build on. Left out: the best one (@).",
            autocompletion=complete_reference,
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Bring the best program into a task folder and write history.md anew; an edit that was never run is kept."""
    if not (folder or here.settings().work.task):  # the task that ships is no folder to work in
        raise UsageError("name the task folder: autoresearch next DIR", hint="autoresearch task get TASK DIR makes one")
    answer, lines = bring(here.task_folder(folder), run)
    if json:
        print_json(answer)
        return
    files = " and ".join(answer.edit)
    named = "the baseline" if answer.run is None else f"the program of {short(answer.run)} “{answer.title}”"
    measured = "" if answer.value is None else f": {value(answer.value)}"
    say(f"{files} {'is now' if answer.changed else 'already is'} {named}{measured}")
    if answer.kept:
        back = f"cp {shlex.quote(answer.kept)} {shlex.quote(f'{answer.folder}/{answer.edit[0]}')}"
        say(f"your edit was never run; it is kept: {back} brings it back")
    for line in lines:
        say(line)
    again = shlex.quote(folder or answer.folder)
    say(f"→ read {answer.history}, edit {files}, then: autoresearch run {again} --hypothesis '…'")
