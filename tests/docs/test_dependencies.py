"""What the packages import is what they declare: another package's needs bring nothing to a plain installation."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"autoresearch": ROOT, "autoresearch_cli": ROOT / "cli", "autoresearch_daemon": ROOT / "daemon"}
PACKAGES |= {folder.name: folder.parent for folder in (ROOT / "extensions").glob("autoresearch_*")}
DEVELOPMENT = {"test", "lint", "benchmark", "docs"}
# The program of a task; what the extras "mcp" and "network" are built upon; what its own component declares (`needs`).
ALLOWED = {"train", "starlette", "typing_extensions", "uvicorn", "multiaddr", "trio", "zeroconf", "openenv"}


def plain(name: str) -> str:
    """The name of a distribution without its version and extras, as PEP 503 spells it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;]", name)[0]).lower()


def imported(file: Path) -> set[str]:
    """The packages of others that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names - PACKAGES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_every_import_is_declared(package: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [*project["dependencies"]]
    for extra, more in project["optional-dependencies"].items():
        needs += [] if extra in DEVELOPMENT else more
    declared, distributions = {plain(need) for need in needs}, packages_distributions()
    undeclared = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in (PACKAGES[package] / package).rglob("*.py")
        for name in imported(file) - ALLOWED
        if not declared & {plain(distribution) for distribution in distributions.get(name, [name])}
    }
    assert not undeclared
