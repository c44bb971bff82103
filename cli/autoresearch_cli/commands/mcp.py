"""``mcp``: the tools for coding agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autoresearch.errors import UsageError, install_command
from autoresearch.task.loading import MANIFEST
from autoresearch_cli import home
from autoresearch_cli.catalogue import CommandApp
from autoresearch_cli.rendering.output import say

app = CommandApp()


@app.command(
    "mcp",
    ("autoresearch mcp", "over standard input and output, as a client starts it"),
    ("autoresearch mcp --http 8765", "on a loopback port, for a client that connects"),
    ("claude mcp add autoresearch -- autoresearch mcp", "add it to a coding agent"),
    see="up, run, run propose, task get",
)
def mcp(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="A task folder. Left out: this, or the configured.")
    ] = "",
    *,
    http: Annotated[
        int, typer.Option("--http", min=0, max=65535, metavar="PORT", help="Listen on this loopback port instead.")
    ] = 0,
) -> None:
    """Offer the network's runs and this node's worker to a coding agent, by the Model Context Protocol."""
    task = home.task_folder(folder or ("." if (Path.cwd() / MANIFEST).is_file() else ""))
    try:
        from autoresearch_cli.mcp.server import make_server, serve_http
    except ImportError as error:
        raise UsageError("the tools for agents are not installed", hint=install_command("mcp")) from error
    from autoresearch_cli.mcp.tools import Tools

    server = make_server(Tools(home.client, lambda: Path(task)))
    if not http:
        server.run("stdio")
        return
    paths = home.paths()
    token = paths.make_api_token()
    say(f"http://127.0.0.1:{http}/mcp, with the header Authorization: Bearer and the token in {paths.api_token}")
    serve_http(server, port=http, token=token)
