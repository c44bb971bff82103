"""``status``: what this node does, and why."""

from __future__ import annotations

import msgspec

from autoresearch import __version__
from autoresearch.answers import counts, task_status, untold, verifying_status, waiting, way_to_count
from autoresearch.api import NOBODY, StatusAnswer, VerifyingStatus
from autoresearch.errors import NotFound
from autoresearch.log import Log
from autoresearch.views import who
from autoresearch_cli import here, starting
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.output import print_json, print_labelled, say
from autoresearch_cli.rendering.status import next_step, status_lines

app = command_app()
apps = {"status": app}


@app.command(
    epilog=examples(
        ("autoresearch status", "the daemon, the run in progress, the best so far"),
        ("autoresearch status --json | jq -r .state", "for another program"),
        ("watch -n 5 autoresearch status", "every five seconds"),
        see="best, events, doctor",
    )
)
def status(*, json: Json = False) -> None:
    """What this node does, and why; without a daemon, what its log holds."""
    answer = starting.daemon_status() or stopped()
    if json:
        print_json(answer)
        return
    print_labelled(status_lines(answer, here.now_ms()))
    say(f"→ {next_step(answer)}")


def stopped() -> StatusAnswer:
    """The state of a node without a running daemon."""
    with open_notebook() as notebook:
        try:
            task = task_status(notebook.log, notebook.task(), author=notebook.me)
        except NotFound:
            task = None
        me = notebook.me
        whose = who(notebook.log, me, here.now_ms()) if me else NOBODY
        attested = counts(notebook.log, me, here.now_ms()) if me else None
        return StatusAnswer(
            running=False,
            state="stopped",
            why="not_running",
            reason="the daemon is not running",
            version=__version__,
            participant=whose.participant,
            who=whose,
            attested=attested,
            to_count=way_to_count(notebook.log, bytes.fromhex(whose.participant)) if attested is False else "",
            device_key=me.hex() if me else "",
            network=notebook.log.network.name,
            records=notebook.log.count(),
            mine=notebook.log.count(author=me) if me else 0,
            task=task,
            verifying=_verifying(notebook.log, me) if me else None,
        )


def _verifying(log: Log, me: bytes) -> VerifyingStatus:
    """This node's part in verification, as its log has it."""
    part = verifying_status(log, me, here.now_ms())
    return msgspec.structs.replace(part, waiting=waiting(log, me, untold(log, me, here.now_ms())))
