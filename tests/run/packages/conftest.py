"""A folder of packages instead of an index, a home of its own, and a task whose program needs two of the packages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from autoresearch_cli.main import app
from typer.testing import CliRunner

from autoresearch.paths import Paths
from autoresearch.task.folders import pin_baseline, write_task
from autoresearch.task.loading import load_task
from tests.cli.conftest import Cli
from tests.cli.conftest import process as process  # noqa: PLC0414 - the command line as a process
from tests.run.packages.wheels import write_wheel

TRAIN = "import tiny_a\n\nLR = 0.5\nprint(f'score: {tiny_a.VALUE * LR}')\n"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every user may walk to, and nothing of the person who runs the tests."""
    for name in list(os.environ):
        if name.startswith(("AUTORESEARCH_", "PIP_", "UV_")):
            monkeypatch.delenv(name)
    with TemporaryDirectory(prefix="autoresearch-packages-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.setenv("AUTORESEARCH_HOME", str(folder / "home"))
        yield folder


@pytest.fixture
def paths(place: Path) -> Paths:
    return Paths.from_environment(os.environ)


@pytest.fixture
def wheels(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that pip takes packages from, by the person's own settings; ``tiny_a`` needs ``tiny_b``."""
    folder = place / "wheels"
    write_wheel(folder, "tiny_a", "1.0", "import tiny_b\nVALUE = 7 + tiny_b.VALUE\n", "tiny_b>=1")
    write_wheel(folder, "tiny_b", "1.2", "VALUE = 1\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return folder


@pytest.fixture
def cli() -> Cli:
    """The command line in this process."""
    return lambda *words: CliRunner().invoke(app, list(words), prog_name="autoresearch")


@pytest.fixture
def folder(place: Path) -> Path:
    """A task whose program imports ``tiny_a``; nothing says yet where that comes from."""
    return write_folder(place / "my-task")


# What pip makes of that task's list: the wheels are the same bytes in every test.
LOCKED: dict[str, str] = {}


@pytest.fixture
def locked(folder: Path, wheels: Path, cli: Cli) -> Path:
    """That task with its packages locked."""
    (folder / "requirements.in").write_text("tiny_a\n")
    if not LOCKED:
        assert cli("task", "lock", str(folder)).exit_code == 0
        LOCKED.update({name: (folder / name).read_text() for name in ("requirements.txt", "task.toml")})
    for name, text in LOCKED.items():
        (folder / name).write_text(text)
    return folder


def write_folder(folder: Path, train: str = TRAIN) -> Path:
    folder.mkdir()
    (folder / "train.py").write_text(train)
    write_task(folder, metric="score", direction="maximize", seconds=20, most_memory_mib=512)
    if not load_task(folder).is_pinned:
        pin_baseline(folder)
    return folder
