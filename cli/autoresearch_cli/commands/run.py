"""``run``: one run of a task folder as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autoresearch.api import Event, RunRequest, ShowAnswer, operations
from autoresearch.errors import AutoresearchError, DaemonNotRunning
from autoresearch_cli import here
from autoresearch_cli.options import Folder, Json, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.progress import Display, choose_display
from autoresearch_cli.rendering.records import print_record
from autoresearch_cli.rendering.status import state_sentence
from autoresearch_cli.watching import OK, Watch, text_in

# States in which the daemon begins nothing.
HELD = ("paused", "waiting", "stopping")
app = command_app()
apps = {"run": app}


@app.command(
    epilog=examples(
        ("autoresearch run", "the configured task's train.py, as it stands"),
        ("autoresearch run ~/my-task", "your own task folder"),
        ("autoresearch run ~/my-task --replicate 1", "the same with another seed, to see the noise"),
        see="work, show, diff, task new",
    )
)
def run(
    folder: Folder = "",
    *,
    replicate: Annotated[
        int, typer.Option("--replicate", min=0, help="Which seed: 0 for a new attempt, 1 and up to repeat it.")
    ] = 0,
    json: Json = False,
) -> None:
    """Train a task folder's train.py once, measure it, and write the result to the log."""
    place = here.task_folder(folder)
    with choose_display(quiet=True) as display:
        try:
            record = _through_daemon(place, replicate, display)
        except DaemonNotRunning:
            record = _here(place, replicate, display)
    with open_notebook() as notebook:
        shown = notebook.show(record)
    _report(shown, json=json)


def _report(shown: ShowAnswer, *, json: bool) -> None:
    if json:
        print_json(shown)
    else:
        print_record(shown, now_ms=here.now_ms())
        say("→ autoresearch diff @mine, autoresearch top")
    if shown.run is None or shown.run.status != OK:
        raise typer.Exit(1)


def _through_daemon(folder: Path, replicate: int, display: Display) -> str:
    """Have the daemon do it and wait for the end. Returns the record's id."""
    client = here.client()
    with client.events() as events:
        accepted = client.ask(operations.START_RUN, RunRequest(folder=str(folder), replicate=replicate))
        status = client.ask(operations.STATUS)
        if status.state in HELD:
            say(f"the run waits: {state_sentence(status, here.now_ms())}")
        watch = Watch(display, only=accepted.assignment)
        try:
            for event in events:
                if watch.take(event):
                    return _record_of(event)
        except KeyboardInterrupt:
            say("the run goes on in the daemon: autoresearch status, autoresearch pause")
            raise
    raise DaemonNotRunning("the daemon ended meanwhile", hint="autoresearch up")


def _record_of(event: Event) -> str:
    record = text_in(event, "id")
    if not record:
        raise AutoresearchError(text_in(event, "reason") or event.text, hint="autoresearch task show")
    return record


def _here(folder: Path, replicate: int, display: Display) -> str:
    """Do it in this process, without the daemon. Returns the record's id."""
    from autoresearch.research import Ceiling
    from autoresearch.single_run import run_once

    say("the daemon is not running: this process does it")
    work = here.settings().work
    return run_once(
        folder,
        here.paths(),
        now_ms=here.now_ms,
        replicate=replicate,
        ceiling=Ceiling.of(work),
        threads=work.threads,
        device=here.first_device(),
        progress=lambda fraction, note: display.progress("run", folder.name, fraction, note),
    )
