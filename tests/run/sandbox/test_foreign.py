"""Where there is no sandbox nothing that others wrote is executed, whichever way it comes; one's own programs are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file

from autoresearch.errors import Refused
from autoresearch.run.bench import Bench, task_data
from autoresearch.run.data import Preparer, prepare_data, write_fresh
from autoresearch.run.evaluating import ChallengeDraw, Model, examine, examine_on_new_text
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.referee import Examinee, referee
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, Level
from autoresearch.run.texts import NewText, drawn_world
from autoresearch.task.loading import load_task, shipped_task
from autoresearch.task.model import Task
from tests.daemon.toy import write_toy_task
from tests.run.sandbox.support import SMALL


@dataclass(frozen=True)
class Trap:
    """A key of this node, a program that copies it to ``seen``, and a folder to work in."""

    folder: Path
    key: Path
    seen: Path

    @property
    def source(self) -> str:
        return f"open({str(self.seen)!r}, 'wb').write(open({str(self.key)!r}, 'rb').read())\n"

    @property
    def task(self) -> Task:
        return load_task(write_toy_task(self.folder / "task", train=self.source))

    @property
    def bench(self) -> Bench:
        return Bench(Level.NONE, 1, "cpu", self.folder / "cache", self.folder)

    @property
    def model(self) -> Path:
        file = self.folder / "weights.safetensors"
        save_file({"a": np.zeros(1, np.float32)}, file)
        return file


@pytest.fixture
def trap() -> Iterator[Trap]:
    with TemporaryDirectory(prefix="autoresearch-trap-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        planted = Trap(folder, folder / "device.key", folder / "seen")
        planted.key.write_text("secret")
        planted.seen.write_bytes(b"")
        for file in (planted.key, planted.seen):
            file.chmod(0o666)
        yield planted


def _job(trap: Trap) -> Job:
    return Job({"train.py": trap.source.encode()}, metric_source="stdout", limits=SMALL)


def _examinee(trap: Trap) -> Examinee:
    files = {"train.py": trap.source.encode()}
    return Examinee(files, trap.model, 1, trap.bench, SMALL)


def _harness(trap: Trap) -> dict[str, bytes]:
    return {"prepare.py": trap.source.encode()}


PATHS: dict[str, Callable[[Trap], object]] = {
    "a program": lambda trap: execute(_job(trap), level=Level.NONE),
    "a run, a replay or one of a pair": lambda trap: Experiment(
        trap.task, plan_as_it_stands(trap.task, trap.source), trap.bench
    ).measure(),
    "a task's data": lambda trap: prepare_data(
        Preparer(_harness(trap), Level.NONE, SMALL), {"x": "0" * 64}, trap.folder
    ),
    "the data of a task that is worked on": lambda trap: task_data(shipped_task(), trap.bench),
    "fresh text": lambda trap: write_fresh(Preparer(_harness(trap), Level.NONE, SMALL), ["x"], 1, trap.folder),
    "a model in the examinee": lambda trap: referee(
        _examinee(trap), np.zeros((2, 4), np.uint8), 256, draw=b"", challenges=1
    ),
    "an evaluation": lambda trap: examine(
        shipped_task(), Model(trap.source, trap.model), trap.bench, challenge=ChallengeDraw(b"", 1), fresh_seed=1
    ),
    "a pair on new text": lambda trap: examine_on_new_text(
        shipped_task(),
        Model(trap.source, trap.model),
        trap.bench,
        challenge=ChallengeDraw(b"", 1),
        new=NewText(np.zeros((2, 256), np.uint8)),
    ),
    "another world": lambda trap: drawn_world(
        msgspec.structs.replace(shipped_task(), harness=_harness(trap)), 1, trap.bench
    ),
}


@pytest.mark.parametrize("path", PATHS)
def test_what_others_wrote_is_refused_where_there_is_no_sandbox(trap: Trap, path: str) -> None:
    with pytest.raises(Refused, match="nothing that others wrote is run here") as caught:
        PATHS[path](trap)
    assert "bubblewrap" in str(caught.value)
    assert trap.seen.read_bytes() == b""


def test_ones_own_program_runs_there_and_reads_what_the_trap_holds(trap: Trap) -> None:
    own = Job({"train.py": trap.source.encode()}, foreign=False, metric_source="stdout", limits=SMALL)
    assert execute(own, level=Level.NONE).status == "ok"
    assert trap.seen.read_bytes() == b"secret"


def test_in_a_sandbox_what_others_wrote_runs_and_does_not_reach_the_key(trap: Trap, level: Level) -> None:
    outcome = execute(_job(trap), level=level)
    assert outcome.status == "crashed"
    assert trap.seen.read_bytes() == b""
