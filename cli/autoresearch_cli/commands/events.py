"""``events``: what happened on this node, and what happens."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.client import STREAM_TIMEOUT_SECONDS
from autoresearch.errors import TimedOut
from autoresearch_cli import here
from autoresearch_cli.options import JsonLines, command_app, examples
from autoresearch_cli.rendering.events import PROGRESS, EventLines
from autoresearch_cli.rendering.output import say

# The daemon sends the kept events in one go; this much silence after them means that there are no more.
QUIET_SECONDS = 0.5
app = command_app()
apps = {"events": app}


@app.command(
    epilog=examples(
        ("autoresearch events", "everything that is kept, oldest first"),
        ("autoresearch events --follow", "from now on, until Ctrl-C"),
        ("autoresearch events --since 120 --follow --json", "catch up after event 120, then go on"),
        see="status, log, work --follow",
    )
)
def events(
    *,
    since: Annotated[
        int | None, typer.Option("--since", min=0, metavar="ID", help="Only events after this one.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more.")] = False,
    json: JsonLines = False,
) -> None:
    """What happened on this node, and with --follow what happens. Needs the daemon."""
    begin_ms = here.now_ms()
    cursor = since if follow else since or 0
    lines = EventLines(json=json)
    quiet_seconds = STREAM_TIMEOUT_SECONDS if follow else QUIET_SECONDS
    try:
        with here.client().events(since=cursor, quiet_seconds=quiet_seconds) as stream:
            for event in stream:
                if not follow and (event.time_ms > begin_ms or event.kind == PROGRESS):
                    return
                lines.print(event)
        say("the daemon has ended")
    except TimedOut:
        if follow:
            raise
