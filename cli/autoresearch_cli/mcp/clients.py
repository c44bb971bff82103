"""Where coding agents keep their MCP servers, and ours in such a file. Pure: texts in, texts out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tomlkit
from tomlkit.exceptions import TOMLKitError

from autoresearch.errors import UsageError

NAME = "autoresearch"

Client = Literal["claude", "codex", "gemini", "cursor", "vscode"]


@dataclass(frozen=True, slots=True)
class ClientFile:
    """The file in which a coding agent looks for servers, and the table that has them by name.

    ``path`` is below the task's folder, or below the home of the user where ``of_user``. ``fields`` is what else the
    client wants to be told of a server.
    """

    title: str
    path: str
    table: str
    of_user: bool = False
    fields: tuple[tuple[str, str], ...] = ()

    def place(self, folder: Path, home: Path) -> Path:
        """The file for a task's folder and a user's home."""
        return (home if self.of_user else folder) / self.path


CLIENTS: dict[Client, ClientFile] = {
    # https://code.claude.com/docs/en/mcp: scope "project"
    "claude": ClientFile("Claude Code", ".mcp.json", "mcpServers"),
    # https://developers.openai.com/codex/mcp
    "codex": ClientFile("Codex", ".codex/config.toml", "mcp_servers", of_user=True),
    # https://geminicli.com/docs/tools/mcp-server
    "gemini": ClientFile("Gemini CLI", ".gemini/settings.json", "mcpServers"),
    # https://cursor.com/docs/context/mcp
    "cursor": ClientFile("Cursor", ".cursor/mcp.json", "mcpServers"),
    # https://code.visualstudio.com/docs/copilot/customization/mcp-servers
    "vscode": ClientFile("VS Code", ".vscode/mcp.json", "servers", fields=(("type", "stdio"),)),
}


@dataclass(frozen=True, slots=True)
class Server:
    """How a client starts the server: a command, its arguments, and variables of its environment."""

    command: str
    arguments: Sequence[str]
    environment: dict[str, str]


def with_server(text: str, client: ClientFile, server: Server) -> str:
    """The text of a client's file with the server in it, in place of one of its name. Raises UsageError."""
    entry: dict[str, object] = {**dict(client.fields), "command": server.command, "args": list(server.arguments)}
    if server.environment:
        entry["env"] = server.environment
    return _changed(text, client, entry)


def without_server(text: str, client: ClientFile) -> str:
    """The text of a client's file without the server. Raises UsageError where it can't be read."""
    return _changed(text, client, None)


def block(client: ClientFile, server: Server) -> str:
    """The part of a client's file that has the server, for people to read."""
    return with_server("", client, server).strip()


def _changed(text: str, client: ClientFile, entry: dict[str, object] | None) -> str:
    is_toml = client.path.endswith(".toml")
    try:
        document = tomlkit.parse(text) if is_toml else json.loads(text or "{}")
    except (ValueError, TOMLKitError, RecursionError) as error:
        sentence = f"the file of {client.title} can't be read: {error}"
        raise UsageError(sentence, hint="mend it, or write the lines above into it by hand") from error
    table = document.get(client.table, {}) if isinstance(document, dict) else None
    if not isinstance(table, dict):
        raise UsageError(
            f"the file of {client.title} has no table {client.table}", hint="mend it, or move it away first"
        )
    if entry is None and NAME not in table:
        return text
    if entry is None:
        del table[NAME]
        if not table:
            del document[client.table]
    else:
        document.setdefault(client.table, tomlkit.table(is_super_table=True) if is_toml else {})
        document[client.table][NAME] = entry
    if is_toml:
        return tomlkit.dumps(document)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n" if document else ""
