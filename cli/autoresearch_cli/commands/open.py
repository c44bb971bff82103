"""``open``: the pages of the local daemon in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.errors import not_running
from autoresearch_cli import starting
from autoresearch_cli.models import OpenAnswer
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.pages import pages_address, private_address, show_pages
from autoresearch_cli.rendering.output import print_exactly, print_json

app = command_app()
apps = {"open": app}


@app.command(
    name="open",
    epilog=examples(
        ("autoresearch open", "open the pages of this machine's daemon, with controls"),
        ("autoresearch open --print", "print the address instead: it lets a browser control the daemon"),
        ("autoresearch open --json", "the address without controls, for a script"),
        see="up, status, top",
    ),
)
def open_command(
    *,
    print_address: Annotated[
        bool, typer.Option("--print", help="Print the address with its token; open nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Open the local pages: progress, runs, leaderboard, what this node does."""
    status = starting.daemon_status()
    if status is None:
        raise not_running()
    if json:
        print_json(OpenAnswer(address=pages_address(status)))
    elif print_address:
        print_exactly(private_address(pages_address(status)) + "\n")
    else:
        show_pages(status)
