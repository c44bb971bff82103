"""What happens on the cluster around this process: ``python -m tests.run.slurm.scenes SCENE FOLDER SECONDS``.

After so many seconds a scene prints where it stands.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from autoresearch_executors.slurm import PREFIX, Slurm

from autoresearch.run.folder import read_outcome
from autoresearch.settings import ExecutorSection
from tests.daemon.daemons import wait_for
from tests.daemon.toy import SLOW_TRAIN
from tests.run.chaos import Chaos, runners
from tests.run.slurm.cluster import pid_of, start
from tests.run.test_folder import written


def listed() -> list[str]:
    """The jobs that are not over."""
    done = subprocess.run(["squeue", "-h", "-o", "%j %T"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def one_run(folder: Path) -> None:
    """A run goes through the queue, is found by name, and its outcome comes back; another one is stopped."""
    slurm = Slurm(ExecutorSection(at_most=4))
    assert slurm.capacity() == 4
    place, _ = written(folder / "one")
    slurm.start(place)
    slurm.start(place)
    assert [line.split()[0] for line in listed()] == [f"{PREFIX}{place.name}"], "once, though it was asked for twice"
    assert slurm.capacity() == 3
    assert slurm.look([place])[place].native.isdigit()
    wait_for(lambda: slurm.look([place])[place].state == "ended", 60)
    ended = read_outcome(place)
    assert ended is not None
    assert ended.outcome is not None
    assert ended.outcome.status == "ok", ended
    slow, _ = written(folder / "two", SLOW_TRAIN)
    slurm.start(slow)
    wait_for(lambda: slurm.look([slow])[slow].progress is not None, 60)
    assert slurm.look([slow])[slow].state == "running"
    slurm.cancel(slow)
    wait_for(lambda: slurm.look([slow])[slow].state == "ended", 60)
    ended = read_outcome(slow)
    assert ended is not None
    assert ended.cancelled
    wait_for(lambda: not listed(), 30)


def doctor(_: Path) -> None:
    """One of the cluster's machines says what it is, and a partition that is not there is told."""
    done = subprocess.run(
        [sys.executable, "-m", "autoresearch_cli", "node", "doctor", "executor"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it answers and takes 8 more runs" in done.stdout
    assert f"on {os.uname().nodename}" in done.stdout
    assert "bubblewrap" in done.stdout
    settings = {**os.environ, "AUTORESEARCH_EXECUTOR_OPTIONS": "--partition=none"}
    done = subprocess.run(
        [sys.executable, "-m", "autoresearch_cli", "node", "doctor", "executor"],
        check=False,
        capture_output=True,
        text=True,
        env=settings,
    )
    assert done.returncode == 1
    assert "invalid partition" in done.stdout


def no_controller(folder: Path) -> None:
    """While the controller is away a run is unknown and not lost, and its outcome comes all the same."""
    slurm = Slurm(ExecutorSection(at_most=4))
    slurm.absences.seconds = 0.0
    place, _ = written(folder / "one", SLOW_TRAIN)
    slurm.start(place)
    wait_for(lambda: slurm.look([place])[place].progress is not None, 60)
    os.kill(pid_of("slurmctld", folder.parent), signal.SIGKILL)
    assert slurm.look([place])[place].state == "unknown"
    runners()[0].terminate()
    wait_for(lambda: slurm.look([place])[place].state == "ended", 60)
    start("slurmctld")
    wait_for(lambda: not listed() and slurm.capacity() == 4, 60)


def requeued(folder: Path) -> None:
    """A copy that somebody requeues finds the run begun: it leaves no second outcome and does not run it again."""
    slurm = Slurm(ExecutorSection(at_most=4))
    slurm.absences.seconds = 3.0
    place, _ = written(folder / "one", SLOW_TRAIN)
    slurm.start(place)
    wait_for(lambda: slurm.look([place])[place].progress is not None, 60)
    events = (place / "events.jsonl").read_bytes()
    native = slurm.look([place])[place].native
    runners()[0].kill()
    subprocess.run(["scontrol", "update", f"jobid={native}", "requeue=1"], check=False)
    subprocess.run(["scontrol", "requeue", native], check=False)
    wait_for(lambda: slurm.look([place])[place].state == "lost", 240)
    assert (place / "events.jsonl").read_bytes() == events, "nothing was run again"


@contextmanager
def tended() -> Iterator[None]:
    """An operator is there: at any time a controller that gives a lost job's number again drains the node."""
    resume = "while sleep 1; do scontrol update nodename=lab1 state=resume; done"
    operator = subprocess.Popen(["sh", "-c", resume], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield
    operator.kill()
    operator.wait()


def chaos(folder: Path) -> None:
    """The node's daemon and the controller are killed too; each run has one record, and nothing of any is left."""
    played = Chaos(folder, {}, executor="slurm")

    def kill(program: str) -> None:
        os.kill(pid_of(program, folder.parent), signal.SIGKILL)
        time.sleep(played.random.uniform(0, 2))
        start(program)

    played.kills |= {program: partial(kill, program) for program in ("slurmd", "slurmctld")}
    played.play()
    with tended():
        played.end(listed)


if __name__ == "__main__":
    scene, place = sys.argv[1], Path(sys.argv[2])
    faulthandler.dump_traceback_later(float(sys.argv[3]))
    place.mkdir()
    os.environ["AUTORESEARCH_HOME"] = str(place / "home")
    globals()[scene](place)
