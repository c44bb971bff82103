"""``pause``, ``resume``, ``finish``: tell the daemon when not to work."""

from __future__ import annotations

from autoresearch.api import PauseRequest, StatusAnswer, operations
from autoresearch.figures import parse_duration
from autoresearch_cli import here
from autoresearch_cli.options import For, Json, command_app, examples
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.status import state_sentence

pause_app, resume_app, finish_app = command_app(), command_app(), command_app()
apps = {"pause": pause_app, "resume": resume_app, "finish": finish_app}


@pause_app.command(
    epilog=examples(
        ("autoresearch pause", "stop working until `autoresearch resume`, across restarts too"),
        ("autoresearch pause --for 2h", "go on by itself in two hours"),
        ("autoresearch pause --for 1h30m --json", "the same for a program"),
        see="resume, finish, work, down",
    )
)
def pause(*, how_long: For = None, json: Json = False) -> None:
    """Stop the run in progress and start no other, for a while or until `autoresearch resume`."""
    until_ms = here.now_ms() + parse_duration(how_long) if how_long is not None else None
    _report(here.client().ask(operations.PAUSE, PauseRequest(until_ms=until_ms)), json=json)


@resume_app.command(
    epilog=examples(
        ("autoresearch resume", "end a pause"),
        ("autoresearch resume && autoresearch status", "and show the state"),
        ("autoresearch resume --json", "the same for a program"),
        see="pause, work, status",
    )
)
def resume(*, json: Json = False) -> None:
    """End a pause. The work that you asked for goes on."""
    _report(here.client().ask(operations.RESUME), json=json)


@finish_app.command(
    epilog=examples(
        ("autoresearch finish", "let the run in progress end, then stop working"),
        ("autoresearch finish && autoresearch status", "and show the state"),
        ("autoresearch finish --json", "the same for a program"),
        see="pause, work, down",
    )
)
def finish(*, json: Json = False) -> None:
    """Let the run in progress end and be published, then stop working."""
    _report(here.client().ask(operations.FINISH), json=json)


def _report(status: StatusAnswer, *, json: bool) -> None:
    if json:
        print_json(status)
    else:
        say(state_sentence(status, here.now_ms()))
