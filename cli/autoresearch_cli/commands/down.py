"""``down``: stop the daemon."""

from __future__ import annotations

import time

from autoresearch.api import operations
from autoresearch.errors import DaemonNotRunning, TimedOut
from autoresearch_cli import here, starting
from autoresearch_cli.models import DownAnswer
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.output import print_json, say

STOP_SECONDS = 15.0
app = command_app()
apps = {"down": app}


@app.command(
    epilog=examples(
        ("autoresearch down", "stop the daemon; a run in progress is cancelled"),
        ("autoresearch finish && autoresearch down", "no new run, then stop"),
        ("autoresearch down --json", "the same for a program"),
        see="up, pause, finish",
    )
)
def down(*, json: Json = False) -> None:
    """Stop the daemon. The work that you asked for goes on at its next start."""
    begin = time.monotonic()
    try:
        client = here.client()
        pid = client.process()
        client.ask(operations.STOP)
    except DaemonNotRunning:
        if json:
            print_json(DownAnswer(state="was_not_running"))
        else:
            say("the daemon was not running")
        return
    if not starting.wait_until_gone(pid, seconds=STOP_SECONDS):
        hint = f"its log says why: {here.paths().daemon_log}"
        raise TimedOut(f"the daemon was asked to stop and is still there after {STOP_SECONDS:.0f} s", hint=hint)
    if json:
        print_json(DownAnswer(state="stopped", waited_ms=int((time.monotonic() - begin) * 1000)))
    else:
        say("the daemon has stopped")
