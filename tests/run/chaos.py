"""A daemon whose runs are carried out elsewhere, while at random it and what carries them is killed."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from autoresearch.log.log import Log
from autoresearch.record.record import DEFAULT_NETWORK
from tests.daemon.daemons import Daemon, kill, wait_for
from tests.daemon.toy import TRAIN, write_toy_task

CHAOS_SECONDS = float(os.environ.get("AUTORESEARCH_CHAOS_SECONDS", "25"))
BUSY_TRAIN = TRAIN.replace("import prepare", "import time\n\nimport prepare\n\nprepare.progress(1.0)\ntime.sleep(2)")


def runners(place: str = "/") -> list[psutil.Process]:
    """The stand-alone runners that are at work on folders below a place."""
    going = [(p, p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"])]
    return [p for p, words in going if "autoresearch.run" in words and words[-1].startswith(place)]


class Chaos:
    """The daemon, its ``settings`` and its ``order`` for work; ``kills`` kill what carries its runs, by name.

    Runners below ``place`` are its own: other tests have theirs.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str], **order: object) -> None:
        self.random = random.Random(1)
        self.daemon = Daemon(folder / "home", dict(settings), prefix=("env",), module="tests.run.hasty")
        self.order = {"task": str(write_toy_task(folder / "toy", BUSY_TRAIN)), "at_most": 3, **order}
        self.kills: dict[str, Callable[[], object]] = {"run": self.kill_run, "daemon": self.kill_daemon}
        self.killed: Counter[str] = Counter()
        self.place = "/"

    def kill_run(self) -> None:
        if going := runners(self.place):
            kill(self.random.choice(going))

    def kill_daemon(self) -> None:
        self.daemon.kill()
        self.daemon.start()

    def play(self) -> None:
        self.daemon.start()
        response = self.daemon.post("/v1/work", **self.order)
        assert response.status_code == 200, response.text
        end = time.monotonic() + CHAOS_SECONDS
        while time.monotonic() < end:
            time.sleep(self.random.uniform(1, 5))
            name = self.random.choice(sorted(self.kills))
            self.killed[name] += 1
            self.kills[name]()

    def end(self, left: Callable[[], Sequence[object]]) -> None:
        """Have it go on undisturbed until a run is well, then end; each run that was claimed has one record.

        Its ``left`` are removed by the daemon that comes next.
        """
        wait_for(lambda: any(run.status == "ok" for run in self.daemon.runs()))
        assert self.daemon.post("/v1/finish").status_code == 200
        wait_for(lambda: not self.daemon.status().workers)
        wait_for(lambda: not runners(self.place))
        self.daemon.stop()
        runs = self.daemon.runs()
        with Log.open(self.daemon.paths.log, DEFAULT_NETWORK, read_only=True) as log:
            claims = log.records.count("claim")
        print(Counter(run.status for run in runs), dict(self.killed))
        print(*sorted({f"{run.status}: {run.reason}" for run in runs if run.status != "ok"}), sep="\n")
        # The daemon may be killed between a claim and its note that the run is in hand.
        assert claims - self.killed["daemon"] <= len(runs) <= claims
        assert not [run.reason for run in runs if run.status not in ("ok", "abandoned", "cancelled", "could_not_run")]
        assert not list(self.daemon.paths.spool.iterdir())
        self.daemon.start()
        wait_for(lambda: not left(), 60)
        self.daemon.stop()
