"""``paths``: where everything lives."""

from __future__ import annotations

import msgspec

from autoresearch_cli import here
from autoresearch_cli.models import PathsAnswer
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.output import print_json, print_labelled

app = command_app()
apps = {"paths": app}


@app.command(
    epilog=examples(
        ("autoresearch paths", "every place, one a line"),
        ("autoresearch paths --json | jq -r .log", "the log's file for another program"),
        ("AUTORESEARCH_HOME=/mnt/big autoresearch paths", "what moving everything would look like"),
        see="config, doctor",
    )
)
def paths(*, json: Json = False) -> None:
    """Where settings, log, keys and log files are. AUTORESEARCH_HOME moves all of them."""
    found = here.paths()
    answer = PathsAnswer(
        settings=str(found.settings),
        log=str(found.log),
        blobs=str(found.blobs),
        keys=str(found.keys),
        task_data=str(found.task_data),
        daemon_log=str(found.daemon_log),
        socket=str(found.socket),
    )
    if json:
        print_json(answer)
        return
    rows = [(name, place) for name, place in msgspec.structs.asdict(answer).items() if name != "schema"]
    print_labelled(rows)
