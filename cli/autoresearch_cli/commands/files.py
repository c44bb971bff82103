"""``logs``: what the daemon wrote to its log file. ``paths``: where everything lives."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Annotated, TextIO

import msgspec
import typer

from autoresearch.errors import NotFound
from autoresearch_cli import home
from autoresearch_cli.catalogue import Answered, CommandApp, JsonLines
from autoresearch_cli.models import PathsAnswer
from autoresearch_cli.rendering import output

app = CommandApp()

# So often a log that is followed is looked at.
LOG_SECONDS = 0.2


@app.command(
    "node logs",
    ("autoresearch node logs", "the last fifty lines"),
    ("autoresearch node logs -n 1000 --json | jq 'select(.level == \"error\")'", "errors among the last thousand"),
    ("autoresearch node logs -f --run search-12", "what concerns one run, and what comes, until Ctrl-C"),
    see="node events, node doctor, status",
)
def logs(
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=1_000_000, help="How many lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Then show what comes, until Ctrl-C.")] = False,
    run: Annotated[
        str,
        typer.Option("--run", metavar="NAME", help="Only lines that name this run."),
    ] = "",
    json: JsonLines = False,
) -> None:
    """The last lines of the daemon's log file: what it did and what went wrong inside it."""
    path = home.paths().daemon_log
    if not path.exists():
        raise NotFound("there is no log file yet", hint="autoresearch up")
    show = output.print_text if json or not output.is_terminal() else print_readable
    with path.open(encoding="utf-8", errors="replace") as file:
        last = deque((line for line in file if run in line), maxlen=limit)
        if not follow:
            with output.paged():
                for line in last:
                    show(line)
            return
        for line in chain(last, _later_lines(path, file)):
            if run in line:
                show(line)


def _later_lines(path: Path, file: TextIO) -> Iterator[str]:
    """What is written to a log from now on, also after another file has taken its place."""
    begun = ""
    while True:
        begun += file.readline()
        if begun.endswith("\n"):
            yield begun
            begun = ""
            continue
        time.sleep(LOG_SECONDS)
        with suppress(FileNotFoundError):  # it is being replaced
            if path.stat().st_ino != os.fstat(file.fileno()).st_ino:
                yield from file  # what came before it was replaced
                file = path.open(encoding="utf-8", errors="replace")


def print_readable(line: str) -> None:
    """A JSON line for a person: time, level, what, and the rest as name and value; then the traceback if it has one."""
    try:
        entry = msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        output.print_text(line)
        return
    trace = str(entry.pop("exception", ""))
    first = [str(entry.pop(name, "")) for name in ("timestamp", "level", "event")]
    output.print_line(" ".join([*first, *(f"{name}={value}" for name, value in entry.items())]))
    if trace:
        output.print_text(trace)


@app.command(
    "node paths",
    ("autoresearch node paths", "every place, one a line"),
    ("autoresearch node paths socket", "one of them, for another program"),
    ("AUTORESEARCH_HOME=/mnt/big autoresearch node paths", "what moving everything would look like"),
    see="node config, node doctor",
)
def paths(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Print this one alone: log, socket, keys …")] = "",
) -> Answered:
    """The folders that hold all files of a node, and places in them. AUTORESEARCH_HOME moves all of them."""
    folders = home.paths()
    answer = PathsAnswer(
        config=str(folders.config),
        data=str(folders.data),
        state=str(folders.state),
        cache=str(folders.cache),
        run=str(folders.runtime),
        settings=str(folders.settings),
        log=str(folders.log),
        blobs=str(folders.blobs),
        keys=str(folders.keys),
        task_data=str(folders.task_data),
        environments=str(folders.environments),
        daemon_log=str(folders.daemon_log),
        socket=str(folders.socket),
    )
    yield answer
    places = {place: path for place, path in msgspec.structs.asdict(answer).items() if place != "schema"}
    if not name:
        output.print_labelled(list(places.items()))
    elif name in places:
        output.print_text(places[name])
    else:
        raise NotFound(f"there is no place called {name}", hint=f"places: {', '.join(places)}")
