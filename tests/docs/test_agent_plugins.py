"""The plug-in that `make dist` writes for the shops of coding agents: by their schemas and documents, and it starts."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import yaml
from autoresearch_cli.mcp.server import make_server
from autoresearch_cli.mcp.tools import Tools
from jsonschema import Draft7Validator, Draft202012Validator
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

ROOT = Path(__file__).parents[2]
SCHEMAS = Path(__file__).parent / "schemas"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PLUGIN = Path("plugins/autoresearch")
NAME = r"[a-z0-9]+(-[a-z0-9]+)*"
SEMVER = r"\d+\.\d+\.\d+"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the command of `make dist` writes."""
    recipe = re.search(r"\$\(BIN\)/python (\.ci/plugins\.py) ", (ROOT / "Makefile").read_text())
    assert recipe, "make dist writes the plug-in"
    folder = tmp_path_factory.mktemp("dist") / "agents"
    subprocess.run([sys.executable, ROOT / recipe[1], folder], check=True)
    return folder


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def front_matter(path: Path) -> tuple[dict[str, Any], str]:
    _, head, body = path.read_text().split("---\n", 2)
    return yaml.safe_load(head), body


@pytest.mark.parametrize(
    ("manifest", "schema", "validator"),
    [
        ("server.json", "server-2025-12-11", Draft7Validator),
        (PLUGIN / "plugin.json", "plugin-1.0.0", Draft202012Validator),
        (PLUGIN / "mcp.json", "mcp-1.0.0", Draft202012Validator),
    ],
)
def test_a_manifest_with_a_published_schema_holds_to_it(
    shop: Path, manifest: str, schema: str, validator: type[Draft7Validator]
) -> None:
    rules = read(SCHEMAS / f"{schema}.schema.json")
    document = read(shop / manifest)
    assert [error.message for error in validator(rules).iter_errors(document)] == []
    assert document["$schema"] == rules["$id"]
    broken = {**document, "name": 3, "mcpServers": 3}
    assert list(validator(rules).iter_errors(broken)), "the schema is one that refuses"


# https://code.claude.com/docs/en/plugins-reference, https://developers.openai.com/codex/plugins/build,
# https://geminicli.com/docs/extensions/reference, read on
# 2026-11-29: what is required, and what may stand there.
IDENTITY = {"name", "version", "description"}
CLAUDE = IDENTITY | {"author", "homepage", "repository", "license", "keywords", "mcpServers", "skills"}
INTERFACE = {"displayName", "shortDescription", "longDescription", "developerName", "category"}
FIELDS = [
    (PLUGIN / ".claude-plugin/plugin.json", IDENTITY, CLAUDE),
    (PLUGIN / ".codex-plugin/plugin.json", IDENTITY, CLAUDE | {"apps", "hooks", "interface"}),
    (PLUGIN / "gemini-extension.json", IDENTITY, IDENTITY | {"mcpServers", "contextFileName", "excludeTools"}),
    (Path(".claude-plugin/marketplace.json"), {"name", "owner", "plugins"}, {"name", "owner", "plugins", "metadata"}),
    (Path(".agents/plugins/marketplace.json"), {"name", "plugins"}, {"name", "plugins", "interface"}),
]


@pytest.mark.parametrize(("manifest", "required", "documented"), FIELDS, ids=[str(row[0]) for row in FIELDS])
def test_a_manifest_without_a_schema_has_the_documented_fields(
    shop: Path, manifest: Path, required: set[str], documented: set[str]
) -> None:
    document = read(shop / manifest)
    assert required <= set(document) <= documented
    assert re.fullmatch(NAME, document["name"])
    if "version" in document:
        assert re.fullmatch(SEMVER, document["version"])


def test_what_manifests_point_at_is_in_the_plugin(shop: Path) -> None:
    codex = read(shop / PLUGIN / ".codex-plugin/plugin.json")
    assert all((shop / PLUGIN / codex[field]).exists() for field in ("skills", "mcpServers"))
    assert set(codex["interface"]) >= INTERFACE
    assert len(codex["interface"]["defaultPrompt"]) <= 3
    (claude,) = read(shop / ".claude-plugin/marketplace.json")["plugins"]
    (entry,) = read(shop / ".agents/plugins/marketplace.json")["plugins"]
    assert (shop / claude["source"]).samefile(shop / PLUGIN)
    assert entry["source"]["source"] == "local"
    assert (shop / entry["source"]["path"]).samefile(shop / PLUGIN)
    assert set(entry["policy"]) == {"installation", "authentication"}


def test_the_skill_holds_to_the_specification_and_names_tools_that_exist(shop: Path) -> None:
    """https://agentskills.io/specification."""
    head, body = front_matter(shop / PLUGIN / "skills/autoresearch/SKILL.md")
    assert {"name", "description"} <= set(head)
    assert set(head) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert head["name"] == "autoresearch", "as its folder is called"
    assert len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500
    assert all(isinstance(value, str) for value in head["metadata"].values())
    assert len(body.splitlines()) <= 60
    tools = {tool.name for tool in asyncio.run(make_server(Tools(lambda: None, Path)).list_tools())}  # type: ignore[arg-type,return-value]
    loop = body.partition("## The loop")[2].partition("## Rules")[0]
    assert {"best", "show_run", "effects", "notes", "run", "result", "claim", "note"} <= tools & set(
        re.findall(r"`([a-z_]+)`", loop)
    )


def test_the_readme_has_the_name_that_the_registry_looks_for(shop: Path) -> None:
    server = read(shop / "server.json")
    assert f"mcp-name: {server['name']}" in (ROOT / "README.md").read_text()
    assert re.fullmatch(SEMVER, server["version"])
    assert server["packages"][0]["version"] == server["version"]


def commands(shop: Path) -> dict[str, list[str]]:
    """How each manifest has a client start the server."""
    files = [".mcp.json", "mcp.json", "gemini-extension.json"]
    entries = {name: read(shop / PLUGIN / name)["mcpServers"]["autoresearch"] for name in files}
    (package,) = read(shop / "server.json")["packages"]
    assert (package["runtimeHint"], package["transport"]) == ("uvx", {"type": "stdio"})
    of_registry = [package["identifier"], *(each["value"] for each in package["packageArguments"])]
    return {name: [each["command"], *each["args"]] for name, each in entries.items()} | {"server.json": of_registry}


@pytest.mark.slow  # two starts of the server
def test_a_client_starts_the_server_as_each_manifest_says(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "node"))

    async def tools(command: list[str]) -> set[str]:
        # A command is one that the package brings; its program is started here, so that no shell has to find it.
        module, function = EntryPoint("", PROJECT["project"]["scripts"][command[0]], "").value.split(":")
        start = ["-c", f"from {module} import {function}; {function}()", *command[1:]]
        parameters = StdioServerParameters(
            command=sys.executable,
            args=start,
            cwd=tmp_path,
            env={"AUTORESEARCH_HOME": str(tmp_path / "node"), "PYTHONPATH": ":".join(sys.path)},
        )
        async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            return {tool.name for tool in (await session.list_tools()).tools}

    different = {tuple(command) for command in commands(shop).values()}
    assert different == {("autoresearch", "mcp"), ("autoresearch-p2p", "mcp")}
    for command in different:
        assert {"run", "result", "best"} <= asyncio.run(tools(list(command)))
