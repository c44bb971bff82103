"""The plug-in for coding agents, and its entries in their shops: ``python .ci/plugins.py FOLDER``.

All is made of pyproject.toml (``[project]`` and ``[tool.autoresearch.plugin]``), the version and ``.ci/SKILL.md``.
"""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from autoresearch_cli.mcp.clients import NAME

from autoresearch.version import __version__

ROOT = Path(__file__).parents[1]
PLUGIN = f"plugins/{NAME}"
AGENT_PLUGINS = "https://agent-plugins.org/schemas/1.0.0"
REGISTRY = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def manifests(project: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every manifest by its path, of what pyproject.toml says."""
    about, plugin = project["project"], project["tool"]["autoresearch"]["plugin"]
    needs = about["optional-dependencies"]["mcp"]
    description, keywords = about["description"], plugin["keywords"]
    command = {"command": NAME, "args": ["mcp"]}
    identity = {"name": NAME, "version": __version__, "description": description}
    author = {"name": plugin["author"]}
    # What the manifests of Claude Code, of Codex and of Agent Plugins have in common.
    full = {**identity, "author": author, "license": about["license"], "keywords": keywords}
    interface = {
        "displayName": plugin["title"],
        "shortDescription": description,
        "longDescription": f"{description}. The agent reads what was tried, proposes changes, and sees what they gave.",
        "developerName": plugin["author"],
        "category": plugin["category"],
        "capabilities": ["Interactive", "Write"],
        "defaultPrompt": plugin["prompts"],
    }
    local = {"source": "local", "path": f"./{PLUGIN}"}
    policy = {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
    return {
        # https://code.claude.com/docs/en/plugins-reference and …/plugin-marketplaces
        ".claude-plugin/marketplace.json": {
            "name": NAME,
            "owner": author,
            "plugins": [{**full, "source": f"./{PLUGIN}", "category": plugin["category"].lower()}],
        },
        f"{PLUGIN}/.claude-plugin/plugin.json": full,
        f"{PLUGIN}/.mcp.json": {"mcpServers": {NAME: command}},
        # https://developers.openai.com/codex/plugins/build
        ".agents/plugins/marketplace.json": {
            "name": NAME,
            "interface": {"displayName": plugin["title"]},
            "plugins": [{"name": NAME, "source": local, "policy": policy, "category": plugin["category"]}],
        },
        f"{PLUGIN}/.codex-plugin/plugin.json": {
            **full,
            "skills": "./skills/",
            "mcpServers": "./.mcp.json",
            "interface": interface,
        },
        # https://agent-plugins.org/specification: Codex and others read these first.
        f"{PLUGIN}/plugin.json": {"$schema": f"{AGENT_PLUGINS}/plugin.schema.json", **full},
        f"{PLUGIN}/mcp.json": {
            "$schema": f"{AGENT_PLUGINS}/mcp.schema.json",
            "mcpServers": {NAME: {"type": "stdio", **command}},
        },
        # https://geminicli.com/docs/extensions/reference
        f"{PLUGIN}/gemini-extension.json": {**identity, "mcpServers": {NAME: command}},
        # https://github.com/modelcontextprotocol/registry: started as `uvx --with mcp… PACKAGE@VERSION mcp`.
        "server.json": {
            "$schema": REGISTRY,
            "name": plugin["server"],
            "title": plugin["title"],
            "description": description,
            "version": __version__,
            "packages": [
                {
                    "registryType": "pypi",
                    "identifier": about["name"],
                    "version": __version__,
                    "runtimeHint": "uvx",
                    "runtimeArguments": [{"type": "named", "name": "--with", "value": need} for need in needs],
                    "packageArguments": [{"type": "positional", "value": "mcp"}],
                    "transport": {"type": "stdio"},
                }
            ],
        },
    }


def main(folder: str) -> None:
    """Write the plug-in into the folder."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    skill = (ROOT / ".ci/SKILL.md").read_text().replace("VERSION", __version__)
    texts = {name: json.dumps(value, indent=2) + "\n" for name, value in manifests(project).items()}
    for name, text in {**texts, f"{PLUGIN}/skills/{NAME}/SKILL.md": skill}.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
