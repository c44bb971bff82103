"""``work``: let the daemon run experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from autoresearch.api import WorkRequest, operations
from autoresearch.errors import UsageError
from autoresearch.paths import typed_path
from autoresearch_cli import here
from autoresearch_cli.completing import complete_task
from autoresearch_cli.options import For, Json, Runs, command_app, examples
from autoresearch_cli.rendering.figures import parse_duration
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.progress import choose_display
from autoresearch_cli.rendering.status import state_sentence
from autoresearch_cli.watching import Watch

app = command_app()
apps = {"work": app}


@app.command(
    epilog=examples(
        ("autoresearch work --for 2h", "run experiments on the configured task for two hours"),
        ("autoresearch work grammar --only verify", "verify others' runs of a published task"),
        ("autoresearch work ~/my-task --runs 20 --follow", "twenty runs on a task of your own, shown here"),
        see="up, pause, finish, status, run",
    )
)
def work(
    task: Annotated[
        str | None,
        typer.Argument(
            metavar="[TASK]",
            help="A task folder, or a published task's name. Left out: the one in the settings, or the one that ships.",
            autocompletion=complete_task,
        ),
    ] = None,
    *,
    how_long: For = None,
    runs: Runs = None,
    verify_share: Annotated[
        float | None,
        typer.Option("--verify-share", min=0, max=1, help="Share of the time for verification (setting: 0.2)."),
    ] = None,
    only: Annotated[
        Literal["search", "verify"] | None,
        typer.Option("--only", help="Only search for changes, or only verify others' runs."),
    ] = None,
    proposer: Annotated[
        Literal["search", "llm", "command", "mix"] | None,
        typer.Option("--proposer", help="Who invents the changes (setting: search). mix: shared by what each brought."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Then show what happens, until Ctrl-C.")] = False,
    json: Json = False,
) -> None:
    """Let the daemon choose changes, train them, publish the results and verify others' runs, until you stop it."""
    if only is not None and verify_share is not None:
        raise UsageError("--only and --verify-share contradict each other", hint="give one of them")
    share = verify_share if only is None else float(only == "verify")
    until_ms = here.now_ms() + parse_duration(how_long) if how_long is not None else None
    folder = str(_folder(task)) if task is not None else ""
    client = here.client()
    asked = WorkRequest(task=folder, runs=runs, until_ms=until_ms, verify_share=share, proposer=proposer or "")
    status = client.ask(operations.WORK, asked)
    if json:
        print_json(status)
    else:
        say(state_sentence(status, here.now_ms()))
    if not follow:
        return
    with client.events() as events, choose_display() as display:
        watch = Watch(display)
        for event in events:
            if json:
                print_json(event)
            else:
                watch.take(event)


def _folder(task: str) -> Path:
    """The folder that was named; for a published task's name a folder of the cache, written when it is missing."""
    if not task:  # a variable that a script did not set, not a wish for whatever comes by default
        raise UsageError("“” names no task", hint="a task folder, or a name of autoresearch task list")
    if "/" in task or typed_path(task).exists():
        return here.existing_folder(task)
    from autoresearch.answers import published_task
    from autoresearch_cli.reading import open_notebook, with_blobs

    with open_notebook() as notebook:
        found = notebook.task(task)
        place = here.paths().published_tasks / found.digest.hex()
        return with_blobs(lambda: published_task(notebook.log, notebook.blobs, found.digest, place)).folder
