"""``work``: let the daemon run experiments."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from autoresearch.api import WorkRequest, operations
from autoresearch.errors import UsageError
from autoresearch.figures import parse_duration
from autoresearch.tasks import load_task
from autoresearch_cli import here
from autoresearch_cli.completing import complete_task
from autoresearch_cli.options import For, Json, Runs, command_app, examples
from autoresearch_cli.packages import AllowPackages, ask_for_packages
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.progress import choose_display
from autoresearch_cli.rendering.status import state_sentence
from autoresearch_cli.task_folders import named_folder
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
def work(  # noqa: PLR0913 - one option for each part of an order
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
    allow_packages: AllowPackages = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Then show what happens, until Ctrl-C.")] = False,
    json: Json = False,
) -> None:
    """Let the daemon choose changes, train them, publish the results and verify others' runs, until you stop it."""
    if only is not None and verify_share is not None:
        raise UsageError("--only and --verify-share contradict each other", hint="give one of them")
    share = verify_share if only is None else float(only == "verify")
    until_ms = here.now_ms() + parse_duration(how_long) if how_long is not None else None
    folder = "" if task is None else str(named_folder(task))
    if folder or here.settings().work.task:
        ask_for_packages(load_task(here.task_folder(folder)), allowed=allow_packages)
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
