"""Homes with a history, and the command line in each."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from autoresearch_cli.main import app
from typer.testing import CliRunner, Result

from autoresearch.log.blobs import BlobStore
from tests.face.git.history import History

Export = Callable[..., Result]
Git = Callable[..., str]


@pytest.fixture(autouse=True)
def _bare_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the person who runs the tests is read."""
    for name in list(os.environ):
        if name.startswith(("AUTORESEARCH_", "GIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A task without runs; its files lie in a store of their own."""
    with BlobStore(tmp_path / "made") as blobs:
        yield History(blobs)


@pytest.fixture
def export(monkeypatch: pytest.MonkeyPatch) -> Export:
    """``export --git`` in a home."""
    runner = CliRunner()

    def call(home: Path, folder: Path, *words: str) -> Result:
        monkeypatch.setenv("AUTORESEARCH_HOME", str(home))
        return runner.invoke(app, ["task", "export", "--git", str(folder), *words], prog_name="autoresearch")

    return call


def git(folder: Path, *words: str) -> str:
    """What a person's git prints there."""
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def references(folder: Path, under: str = "refs/runs") -> dict[str, str]:
    """The references below a prefix."""
    rows = git(folder, "for-each-ref", "--format=%(refname) %(objectname)", under).splitlines()
    return dict(row.split(" ", 1) for row in rows)


def answer(result: Result) -> dict[str, Any]:
    """The JSON document of a command that went well."""
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document
