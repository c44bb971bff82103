"""``status``: what this node does, and why."""

from __future__ import annotations

from autoresearch import __version__
from autoresearch.api import StatusAnswer
from autoresearch_cli import here, starting
from autoresearch_cli.options import Json, Task, command_app, examples
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
def status(*, task: Task = "", json: Json = False) -> None:
    """What this node does, and why; without a daemon, what its log holds."""
    answer = starting.daemon_status() or stopped()
    if task:
        from autoresearch_cli.log_status import on_task

        answer = on_task(answer, task)
    if json:
        print_json(answer)
        return
    print_labelled(status_lines(answer, here.now_ms()))
    say(f"→ {next_step(answer)}")


def stopped() -> StatusAnswer:
    """The state of a node without a running daemon."""
    from autoresearch.records import DEFAULT_NETWORK

    answer = StatusAnswer(
        running=False,
        state="stopped",
        why="not_running",
        reason="the daemon is not running",
        version=__version__,
        network=DEFAULT_NETWORK.name,
    )
    if here.is_new():
        return answer
    # What reads a log takes longer to load than all the rest.
    from autoresearch_cli.log_status import with_log

    return with_log(answer)
