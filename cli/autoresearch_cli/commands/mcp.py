"""``mcp``: the tools for coding agents; ``mcp install``: named to such an agent."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from autoresearch.errors import NotFound, UsageError, install_command
from autoresearch.paths import typed_path
from autoresearch.task.folder_state import replace_file, unwritable
from autoresearch.task.loading import MANIFEST
from autoresearch_cli import home
from autoresearch_cli.catalogue import Answered, CommandApp, Yes
from autoresearch_cli.groups import VerbAndNoun
from autoresearch_cli.mcp.clients import CLIENTS, Client, Server, block, with_server, without_server
from autoresearch_cli.models import ClientAnswer
from autoresearch_cli.rendering.output import say, say_lines

app = CommandApp()


@app.command(
    "mcp",
    ("autoresearch mcp", "over standard input and output, as a client starts it"),
    ("autoresearch mcp --http 8765", "on a loopback port, for a client that connects"),
    ("autoresearch mcp install --for claude", "name it to a coding agent, which then starts it"),
    see="up, run, run propose, task get",
    cls=VerbAndNoun,
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
    task = home.task_folder(folder)
    if folder and not (Path(task) / MANIFEST).is_file():
        raise UsageError(f"{task} is no task folder", hint=f"autoresearch task new {shlex.quote(folder)}")
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


@app.command(
    "mcp install",
    ("autoresearch mcp install --for claude", "Claude Code, when it is started in this folder"),
    ("autoresearch mcp install ~/my-task --for codex --yes", "Codex, on this task, unasked"),
    ("autoresearch mcp install --for claude --remove", "undo it"),
    see="mcp, task new",
)
def install(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A task folder. Left out: this one.")] = "",
    *,
    client: Annotated[Client, typer.Option("--for", help="The coding agent.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take it out again.")] = False,
    yes: Yes = False,
) -> Answered:
    """Name the server to a coding agent: write it into the agent's own configuration file, beside what is there.

    The file and the lines are shown first.
    """
    place = typed_path(folder or ".").absolute()
    if not place.is_dir():
        raise NotFound(f"there is no folder {place}", hint="name the folder in which the agent works")
    agent = CLIENTS[client]
    path = agent.place(place, Path.home()).resolve()
    try:
        text = path.read_text() if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}", hint="mend it, or move it away first") from error
    arguments = ["mcp", str(place)] if (place / MANIFEST).is_file() else ["mcp"]
    # A client starts the server with few variables of its own.
    moved = os.environ.get("AUTORESEARCH_HOME")
    environment = {"AUTORESEARCH_HOME": str(typed_path(moved).absolute())} if moved else {}
    server = Server(str(Path(sys.executable).with_name("autoresearch")), arguments, environment)
    say(str(path))
    if not remove:
        say_lines(block(agent, server))
    changed = without_server(text, agent) if remove else with_server(text, agent, server)
    answer = ClientAnswer(client=client, path=str(path), changed=changed != text, text=changed)
    if not answer.changed:
        yield answer
        say(f"{agent.title} {'has no such server there' if remove else 'has exactly this already'}")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("nothing was written: nobody can be asked here", hint="the same with --yes")
        typer.confirm("Take it out of this file?" if remove else "Write this into it?", abort=True, err=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path.parent, error) from error
    replace_file(path.parent, path.name, changed.encode())
    yield answer
    say(f"{path} {'no longer names' if remove else 'names'} the server → start {agent.title} anew in {place}")
