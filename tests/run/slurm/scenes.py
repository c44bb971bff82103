"""What happens on the cluster around this process: ``python -m tests.run.slurm.scenes SCENE FOLDER``."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil

from autoresearch.log.log import Log
from autoresearch.record.record import DEFAULT_NETWORK
from autoresearch.run.slurm import PREFIX, Slurm
from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.toy import SLOW_TRAIN, TRAIN, write_toy_task
from tests.run.slurm.cluster import pid_of, start
from tests.run.test_folder import written

CHAOS_SECONDS = float(os.environ.get("AUTORESEARCH_CHAOS_SECONDS", "45"))
BUSY_TRAIN = TRAIN.replace("import prepare", "import time\n\nimport prepare\n\nprepare.progress(1.0)\ntime.sleep(2)")


def listed() -> list[str]:
    """The jobs that are not over."""
    done = subprocess.run(["squeue", "-h", "-o", "%j %T"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def runners() -> list[psutil.Process]:
    """The stand-alone runners that are at work."""
    return [p for p in psutil.process_iter(["cmdline"]) if "autoresearch.run" in (p.info["cmdline"] or [])]


def one_run(folder: Path) -> None:
    """A run goes through the queue, is found by name, and its outcome comes back; another one is stopped."""
    slurm = Slurm(at_most=4)
    assert slurm.capacity() == 4
    place, _ = written(folder / "one")
    slurm.start(place)
    slurm.start(place)
    assert [line.split()[0] for line in listed()] == [f"{PREFIX}{place.name}"], "once, though it was asked for twice"
    assert slurm.capacity() == 3
    assert slurm.look([place])[place].native.isdigit()
    wait_for(lambda: slurm.look([place])[place].state == "ended", 60)
    ended = slurm.collect(place)
    assert ended is not None
    assert ended.outcome is not None
    assert ended.outcome.status == "ok", ended
    slow, _ = written(folder / "two", SLOW_TRAIN)
    slurm.start(slow)
    wait_for(lambda: slurm.look([slow])[slow].progress is not None, 60)
    assert slurm.look([slow])[slow].state == "running"
    slurm.cancel(slow)
    wait_for(lambda: slurm.look([slow])[slow].state == "ended", 60)
    ended = slurm.collect(slow)
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
    assert "it answers and takes 8 more jobs" in done.stdout
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
    slurm = Slurm(at_most=4)
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
    slurm = Slurm(at_most=4)
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


class Chaos:
    """A daemon with a cluster; at random the job, the node's daemon, the controller or the daemon is killed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.random = folder, random.Random(1)
        self.daemon = Daemon(folder / "home", prefix=("env",), module="tests.run.slurm.hasty")
        self.task = write_toy_task(folder / "toy", BUSY_TRAIN)
        self.killed: Counter[str] = Counter()

    def work(self) -> None:
        said = self.daemon.post("/v1/work", task=str(self.task), executor="slurm", at_most=3)
        assert said.status_code == 200, said.text

    def kill(self, what: str) -> None:
        self.killed[what] += 1
        if what == "daemon":
            self.daemon.kill()
            self.daemon.start()
        elif what == "job":
            if going := runners():
                self.random.choice(going).kill()
        else:
            os.kill(pid_of(what, self.folder.parent), signal.SIGKILL)
            time.sleep(self.random.uniform(0, 2))
            start(what)

    def play(self) -> None:
        self.daemon.start()
        self.work()
        end = time.monotonic() + CHAOS_SECONDS
        while time.monotonic() < end:
            time.sleep(self.random.uniform(1, 5))
            self.kill(self.random.choice(["job", "job", "slurmd", "slurmctld", "daemon"]))
        subprocess.run(["scontrol", "update", "nodename=lab1", "state=resume"], check=False, capture_output=True)
        wait_for(lambda: any(run.status == "ok" for run in self.daemon.runs()), 60)
        assert self.daemon.post("/v1/finish").status_code == 200
        wait_for(lambda: not self.daemon.status().workers, 180)
        wait_for(lambda: not listed() and not runners(), 60)
        self.daemon.stop()
        self.count()

    def count(self) -> None:
        """Each run that was claimed has one record, and nothing of any is left."""
        runs = self.daemon.runs()
        with Log.open(self.daemon.paths.log, DEFAULT_NETWORK, read_only=True) as log:
            claims = log.records.count("claim")
        print(Counter(run.status for run in runs), dict(self.killed))
        print(*sorted({f"{run.status}: {run.reason}" for run in runs if run.status != "ok"}), sep="\n")
        # The daemon may be killed between a claim and its note that the run is in hand.
        assert claims - self.killed["daemon"] <= len(runs) <= claims
        assert not [run.reason for run in runs if run.status not in ("ok", "abandoned", "cancelled", "could_not_run")]
        assert not list(self.daemon.paths.spool.iterdir())


def chaos(folder: Path) -> None:
    Chaos(folder).play()


if __name__ == "__main__":
    scene, place = sys.argv[1], Path(sys.argv[2])
    place.mkdir()
    os.environ["AUTORESEARCH_HOME"] = str(place / "home")
    globals()[scene](place)
