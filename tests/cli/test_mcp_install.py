"""The server in the files of coding agents: written beside what is there, started by a real client, taken out again."""

import asyncio
import json
import tomllib
from pathlib import Path

import pytest
from autoresearch_cli.mcp.clients import CLIENTS, Server, with_server, without_server
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.cli.conftest import Cli

SERVER = Server("/opt/bin/autoresearch", ["mcp", "/work/my task"], {"AUTORESEARCH_HOME": "/home/me/a"})


def servers(text: str, path: str) -> dict:
    return tomllib.loads(text) if path.endswith(".toml") else json.loads(text)


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize(
    ("json_text", "toml_text"),
    [
        ("", ""),
        ("{}", "# mine\nmodel = 'o'\n"),
        ('{"other": 1, "SERVERS": {"mine": {"command": "x"}}}', '[mcp_servers.mine]\ncommand = "x"\n'),
    ],
)
def test_what_else_is_in_the_file_stays(name: str, json_text: str, toml_text: str) -> None:
    client = CLIENTS[name]
    before = toml_text if client.path.endswith(".toml") else json_text.replace("SERVERS", client.table)
    after = with_server(before, client, SERVER)
    entry = servers(after, client.path)[client.table]["autoresearch"]
    assert (entry["command"], entry["args"], entry["env"]) == (
        "/opt/bin/autoresearch",
        SERVER.arguments,
        SERVER.environment,
    )
    assert with_server(after, client, SERVER) == after
    empty = "" if client.path.endswith(".toml") else "{}"
    removed = servers(without_server(after, client) or empty, client.path)
    assert removed == servers(before or empty, client.path)
    assert "# mine" not in before or "# mine" in after


@pytest.mark.parametrize("text", ["{", "[]", "[1]\nx", '{"mcpServers": 3}', "// a comment\n{}", "\x00"])
def test_a_file_that_is_none_stays_as_it_is(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    result = cli("mcp", "install", str(tmp_path), "--for", "claude", "--yes")
    assert result.exit_code == 2
    assert "Claude Code" in result.stderr
    assert (tmp_path / ".mcp.json").read_text() == text


def test_nothing_is_written_unasked(cli: Cli, tmp_path: Path) -> None:
    result = cli("mcp", "install", str(tmp_path), "--for", "cursor")
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert '"mcpServers"' in result.stderr


@pytest.mark.slow  # five starts of the server
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_starts_the_server_that_its_file_names(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "node"))
    folder = tmp_path / "work"
    folder.mkdir()
    assert cli("mcp", "install", str(folder), "--for", name, "--yes").exit_code == 0
    path = CLIENTS[name].place(folder, tmp_path / "user")
    entry = servers(path.read_text(), path.name)[CLIENTS[name].table]["autoresearch"]

    async def tools() -> set[str]:
        parameters = StdioServerParameters(command=entry["command"], args=entry["args"], env=entry["env"], cwd=folder)
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            return {tool.name for tool in (await session.list_tools()).tools}

    assert {"run", "result", "best"} <= asyncio.run(tools())
    assert cli("mcp", "install", str(folder), "--for", name, "--yes", "--remove").exit_code == 0
    assert "autoresearch" not in path.read_text()
