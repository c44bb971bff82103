"""A home of its own for every test, and the command line as people call it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.main import app
from typer import testing
from typer.testing import CliRunner, Result

from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from tests.cli.filling import Filled, fill
from tests.log.standing.village import TRUST, Village
from tests.record.making import NETWORK
from tests.warm import run_command

# The commands are built once, as in a process of their own, and not for each call.
testing._get_command = functools.cache(testing._get_command)

Cli = Callable[..., Result]
Process = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; nothing of the person who runs the tests is read."""
    place = tmp_path / "home"
    for name in list(os.environ):
        if name.startswith("AUTORESEARCH_") or name in {"NO_COLOR", "FORCE_COLOR"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("AUTORESEARCH_HOME", str(place))
    monkeypatch.setenv("AUTORESEARCH_NETWORK_LAN", "false")  # daemons of tests side by side would find each other
    return place


@pytest.fixture
def paths(home: Path) -> Paths:
    """The folders of that home, not made yet."""
    return Paths.from_environment({"AUTORESEARCH_HOME": str(home)})


@pytest.fixture
def village(paths: Paths) -> Iterator[Village]:
    """This machine's notebook is that of a village."""
    paths.create()
    save_manifest(paths.manifest, NetworkManifest(network=NETWORK, trust=TRUST))
    with Log.open(paths.log, NETWORK, trust=TRUST) as log:
        yield Village(log)


@pytest.fixture
def cli() -> Cli:
    """The command line in this process: words in, exit code and both streams out."""
    runner = CliRunner()

    def call(*words: str) -> Result:
        return runner.invoke(app, list(words), prog_name="autoresearch")

    return call


@pytest.fixture
def process() -> Process:
    """The command line as a process of its own, or with ``python`` a Python with these arguments before the words."""

    def call(*words: str, python: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        if not python:
            return run_command(*words)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(
            [sys.executable, *python, *words], env=environment, capture_output=True, text=True, timeout=250, check=False
        )

    return call


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Filled]:
    """A notebook that is filled once; every test gets its own copy."""
    place = tmp_path_factory.mktemp("template")
    return place, fill(Paths.from_environment({"AUTORESEARCH_HOME": str(place / "home")}), place / "my-task")


@pytest.fixture
def filled(home: Path, tmp_path: Path, template: tuple[Path, Filled]) -> Filled:
    """A home whose notebook has a small history."""
    place, history = template
    shutil.copytree(place / "home", home)
    folder = shutil.copytree(place / "my-task", tmp_path / "my-task")
    return replace(history, task=msgspec.structs.replace(history.task, folder=folder))
