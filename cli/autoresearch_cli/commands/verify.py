"""``verify``: measure another participant's run on this machine; which runs wait for verifiers."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from autoresearch.api import Event, Measured, ParticipantView, ShowAnswer, VerifyRequest, operations
from autoresearch.errors import AutoresearchError, DaemonNotRunning, UsageError
from autoresearch.records import Task as TaskBody
from autoresearch.records import format_id
from autoresearch.tasks import Task, load_task
from autoresearch.views import participant_of
from autoresearch_cli import here
from autoresearch_cli.completing import complete_reference
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.options import Task as TaskOption
from autoresearch_cli.packages import AllowPackages, ask_for_packages
from autoresearch_cli.reading import NotebookReader, open_notebook
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.progress import choose_display
from autoresearch_cli.rendering.records import print_verifications
from autoresearch_cli.task_folders import cached_folder
from autoresearch_cli.verification_queue import list_awaited
from autoresearch_cli.watching import Watch, text_in

COMMITTED = "committed"
# What an event tells of a measurement.
MEASURED = ("id", "stage", "round", "verdict", "value", "values", "parent_values", "metrics")
app = command_app()
apps = {"verify": app}


@app.command(
    epilog=examples(
        ("autoresearch verify @", "measure the best run here"),
        ("autoresearch verify g3xk --json | jq .run.state", "what another run is now"),
        ("autoresearch verify --list", "which runs wait for verifiers"),
        see="show, top, work --only verify",
    )
)
def verify(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="[ID]", help="An id or its beginning, @ for the best.", autocompletion=complete_reference
        ),
    ] = "",
    *,
    waiting: Annotated[bool, typer.Option("--list", help="Show which runs wait for verifiers; measure none.")] = False,
    task: TaskOption = "",
    allow_packages: AllowPackages = False,
    json: Json = False,
) -> None:
    """Measure another participant's run here and publish the result. Evaluates its model, or repeats the run."""
    if waiting == bool(reference):
        raise UsageError("name a run, or give --list", hint="autoresearch verify --list, autoresearch verify ID")
    if waiting:
        list_awaited(task, json=json)
        return
    with open_notebook(task) as notebook:
        run = format_id(notebook.resolve(reference))
        unusual = _own_packages(notebook, run)
    if unusual is not None:
        ask_for_packages(unusual, allowed=allow_packages)
    event = _wait_for(run, json=json)
    with open_notebook() as notebook:
        shown, me = notebook.show(run), notebook.me
        own = (
            _unrevealed(event, me, participant_of(notebook.log, me, event.time_ms))
            if event.kind == COMMITTED and me
            else None
        )
    if json:
        print_json(shown if own is None else _with(shown, own))
    else:
        _report(shown, event, own)
    if text_in(event, "verdict") != "pass":
        raise typer.Exit(1)


def _own_packages(notebook: NotebookReader, run: str) -> Task | None:
    """The task of a run, where it has Python packages of its own."""
    found = notebook.show(run).run
    row = notebook.log.tasks.find(bytes.fromhex(found.task)) if found else None
    body = notebook.log.records.get(row.id).body if row else None
    if row is None or not isinstance(body, TaskBody) or "python" not in body.definition:
        return None
    return load_task(cached_folder(notebook, row.digest))


def _wait_for(run: str, *, json: bool) -> Event:
    """Have the daemon do it and wait for the end."""
    client = here.client()
    with client.events() as events, choose_display(quiet=json) as display:
        accepted = client.ask(operations.VERIFY, VerifyRequest(run=run))
        if accepted.note:
            say(accepted.note)
        watch = Watch(display, only=accepted.assignment)
        for event in events:
            if event.kind in (COMMITTED, "verified") and text_in(event, "assignment") == accepted.assignment:
                return event
            if watch.take(event):
                raise AutoresearchError(text_in(event, "reason") or event.text, hint="autoresearch logs")
    raise DaemonNotRunning("the daemon ended meanwhile", hint="autoresearch up")


def _unrevealed(event: Event, me: bytes, whose: ParticipantView) -> Measured:
    """What was measured here and is not revealed yet."""
    known = {name: event.data[name] for name in MEASURED if name in event.data}
    return msgspec.convert(
        known
        | {
            "author": me.hex(),
            "participant": whose,
            "time_ms": event.time_ms,
            "counts": True,
            "device": "",
            "told": False,
        },
        Measured,
    )


def _with(shown: ShowAnswer, own: Measured) -> ShowAnswer:
    if shown.verification is None:
        return shown
    verification = msgspec.structs.replace(shown.verification, measured=[*shown.verification.measured, own])
    return msgspec.structs.replace(shown, verification=verification)


def _report(shown: ShowAnswer, event: Event, own: Measured | None) -> None:
    print_verifications(shown if own is None else _with(shown, own))
    if reason := text_in(event, "reason"):
        say(reason)
    say(f"the run is {text_in(event, 'state')} now")
    run = short(shown.record.id)
    say(
        f"→ autoresearch status, then autoresearch show {run}"
        if own
        else f"→ autoresearch show {run}, autoresearch top"
    )
