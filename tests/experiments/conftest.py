"""The real thing: the shipped data, made once, and runs of train.py in processes of their own."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Once
from tests.warm import warm

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
TRAIN = (EXPERIMENTS / "train.py").read_text()


@dataclass(frozen=True, slots=True)
class Finished:
    """What a run left behind: exit status, its events, checkpoint, printed text."""

    exit_status: int
    events: list[dict[str, Any]]
    checkpoint: bytes
    stdout: str
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        """The one result. Fails when there is none, or more than one."""
        (result,) = [event for event in self.events if event["event"] == "result"]
        return result


Run = Callable[..., Finished]


@pytest.fixture(scope="session")
def data(once: Once) -> Path:
    def make(folder: Path) -> None:
        environment = {"AUTORESEARCH_DATA": str(folder), "PATH": os.environ["PATH"]}
        subprocess.run([sys.executable, EXPERIMENTS / "prepare.py"], env=environment, check=True, capture_output=True)

    return once("experiments", make)


def finish(
    folder: Path,
    data: Path,
    source: str = TRAIN,
    *,
    by_hand: bool = False,
    without: tuple[str, ...] = (),
    **settings: object,
) -> Finished:
    """Run a source in ``folder`` as the runner does: settings by environment, results over channels of its own.

    By hand it is a Python of its own; else it begins with torch loaded, and the compiler that any optimizer loads.
    """
    program = folder / "train.py"
    program.write_text(source)
    for name in {"grammar.py", "prepare.py"} - set(without):
        (folder / name).write_bytes((EXPERIMENTS / name).read_bytes())
    variables = {"DATA": data, "BUDGET": 2e10, "SEED": 5} | settings
    environment = {f"AUTORESEARCH_{name}": str(value) for name, value in variables.items()}
    events, checkpoint = folder / "events", folder / "checkpoint"
    with events.open("wb") as result_file, checkpoint.open("wb") as checkpoint_file:
        channels = () if by_hand else (result_file.fileno(), checkpoint_file.fileno())
        if channels:
            environment["AUTORESEARCH_RESULT_FD"] = str(channels[0])
            environment["AUTORESEARCH_CHECKPOINT_FD"] = str(channels[1])
        if by_hand:
            process = subprocess.run(
                [sys.executable, program], env=environment, cwd=folder, capture_output=True, text=True, check=False
            )
        else:
            how = {"passed": channels, "environment": environment, "folder": folder, "seconds": 600}
            process = warm("torch", "torch._dynamo").run(str(program), **how)
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    return Finished(process.returncode, lines, checkpoint.read_bytes(), process.stdout, process.stderr)


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Run:
    """Runs a source, as it ships unless another is given."""
    return functools.partial(finish, tmp_path, data)


@pytest.fixture(scope="session")
def plain(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """What ``run()`` gives, once for all tests: a run is a function of source, seed and budget."""
    return finish(tmp_path_factory.mktemp("plain"), data)


@pytest.fixture
def change() -> Callable[[str, str], str]:
    """The shipped train.py with one text, which must be there, replaced."""

    def apply(original: str, instead: str) -> str:
        assert TRAIN.count(original) == 1
        return TRAIN.replace(original, instead)

    return apply
