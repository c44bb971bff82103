"""``paths``: where everything lives."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from autoresearch.errors import NotFound
from autoresearch_cli import here
from autoresearch_cli.models import PathsAnswer
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.output import print_json, print_labelled, print_text

app = command_app()
apps = {"paths": app}


@app.command(
    epilog=examples(
        ("autoresearch paths", "every place, one a line"),
        ("autoresearch paths socket", "one of them, for another program"),
        ("AUTORESEARCH_HOME=/mnt/big autoresearch paths", "what moving everything would look like"),
        see="config, doctor",
    )
)
def paths(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Print this one alone: log, socket, keys …")] = "",
    *,
    json: Json = False,
) -> None:
    """Where settings, log, keys and log files are. AUTORESEARCH_HOME moves all of them."""
    found = here.paths()
    answer = PathsAnswer(
        settings=str(found.settings),
        log=str(found.log),
        blobs=str(found.blobs),
        keys=str(found.keys),
        task_data=str(found.task_data),
        environments=str(found.environments),
        daemon_log=str(found.daemon_log),
        socket=str(found.socket),
    )
    if json:
        print_json(answer)
        return
    places = {place: path for place, path in msgspec.structs.asdict(answer).items() if place != "schema"}
    if not name:
        print_labelled(list(places.items()))
    elif name in places:
        print_text(places[name])
    else:
        raise NotFound(f"there is no place called {name}", hint=f"places: {', '.join(places)}")
