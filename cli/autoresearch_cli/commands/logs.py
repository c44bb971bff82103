"""``logs``: the daemon's log file."""

from __future__ import annotations

from collections import deque
from typing import Annotated

import msgspec
import typer

from autoresearch.errors import NotFound
from autoresearch_cli import here
from autoresearch_cli.options import JsonLines, command_app, examples
from autoresearch_cli.rendering.figures import one_line, safe
from autoresearch_cli.rendering.output import is_terminal, print_text

app = command_app()
apps = {"logs": app}


@app.command(
    epilog=examples(
        ("autoresearch logs", "the last fifty lines"),
        ("autoresearch logs -n 1000 --json | jq 'select(.level == \"error\")'", "errors among the last thousand"),
        ("tail -f $(autoresearch paths --json | jq -r .daemon_log)", "keep looking"),
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
    for line in lines:
        print_text(readable(line) if is_terminal() and not json else line)


def readable(line: str) -> str:
    """A JSON line as a person reads it: time, level, what, and the rest as name and value."""
    try:
        entry = msgspec.json.decode(line, type=dict[str, object])
    except msgspec.DecodeError:
        return safe(line)
    trace = str(entry.pop("exception", ""))
    first = [str(entry.pop(name, "")) for name in ("timestamp", "level", "event")]
    rest = [f"{name}={value}" for name, value in entry.items()]
    return one_line("  ".join([*first, *rest])) + (f"\n{safe(trace)}" if trace else "")
