"""``logs``: the daemon's log file."""

from __future__ import annotations

from collections import deque
from typing import Annotated

import msgspec
import typer

from autoresearch.errors import NotFound
from autoresearch_cli import here
from autoresearch_cli.options import JsonLines, command_app, examples
from autoresearch_cli.rendering.output import is_terminal, print_line, print_text
from autoresearch_cli.rendering.paging import paged

app = command_app()
apps = {"logs": app}


@app.command(
    epilog=examples(
        ("autoresearch logs", "the last fifty lines"),
        ("autoresearch logs -n 1000 --json | jq 'select(.level == \"error\")'", "errors among the last thousand"),
        ("tail -f $(autoresearch paths --json | jq -r .daemon_log)", "follow it"),
        see="events, doctor, status",
    )
)
def logs(
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=1_000_000, help="How many lines.")] = 50,
    json: JsonLines = False,
) -> None:
    """The last lines of the daemon's log file: what it did and what went wrong inside it."""
    path = here.paths().daemon_log
    if not path.exists():
        raise NotFound("there is no log file yet", hint="autoresearch up")
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = deque(file, maxlen=limit)
    with paged():
        for line in lines:
            if json or not is_terminal():
                print_text(line)
            else:
                print_readable(line)


def print_readable(line: str) -> None:
    """A JSON line for a person: time, level, what, and the rest as name and value; then the traceback if it has one."""
    try:
        entry = msgspec.json.decode(line, type=dict[str, object])
    except msgspec.DecodeError:
        print_text(line)
        return
    trace = str(entry.pop("exception", ""))
    first = [str(entry.pop(name, "")) for name in ("timestamp", "level", "event")]
    print_line(" ".join([*first, *(f"{name}={value}" for name, value in entry.items())]))
    if trace:
        print_text(trace)
