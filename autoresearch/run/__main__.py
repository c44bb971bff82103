"""``python -m autoresearch.run FOLDER``: carries out the run of a folder on this machine, and writes its outcome there.

It tests the sandbox of this machine first. Standard input is the leash: at its end the run is stopped, but not after
``--detached``, where an engine keeps it. SIGTERM stops it too. Exits with 0 when there is an outcome.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
import threading
from pathlib import Path

import msgspec

from autoresearch.errors import AutoresearchError
from autoresearch.paths import Paths
from autoresearch.run.bench import Bench, environment
from autoresearch.run.executors import DETACHED, MACHINE, Machine
from autoresearch.run.folder import EventFile, read_request
from autoresearch.run.runner import RunSite, carry_out, make_ready
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.obstacle import find_obstacle
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.run.sandbox.scratch import sweep
from autoresearch.version import __version__


def main(words: list[str]) -> int:
    """Carry out one folder; returns the exit status."""
    is_detached = words[:1] == [DETACHED]
    if len(words) != 1 + is_detached:
        sys.stderr.write(
            f"usage: python -m autoresearch.run [{DETACHED}] FOLDER, or {MACHINE} for what this machine is\n"
        )
        return 2
    if words == [MACHINE]:
        sys.stdout.buffer.write(msgspec.json.encode(this_machine()) + b"\n")
        return 0
    folder = Path(words[-1]).absolute()
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    try:
        request = read_request(folder)
        if not is_detached:
            threading.Thread(target=_hold, args=(stopped,), daemon=True).start()
        paths = Paths.from_environment(os.environ)
        sweep()
        level, _ = detect_level(paths.secrets())
        place = RunSite(level, paths.task_data, paths.environments, paths.allowed)

        def ready(scratch: Path, events: EventFile) -> Bench:
            return make_ready(
                request.task, request.conditions, place, scratch, on_stage=events.stage, cancelled=stopped.is_set
            )

        carry_out(folder, request, level, ready, cancelled=stopped.is_set)
    except AutoresearchError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status
    return 0


def this_machine() -> Machine:
    """What an executor's doctor asks of the machine that this runs on."""
    level, _ = detect_level()
    cause, remedy = ("", "") if level >= Level.BUBBLEWRAP else find_obstacle()
    return Machine(
        name=os.uname().nodename,
        version=__version__,
        kernel=os.uname().release,
        python=platform.python_version(),
        executable=sys.executable,
        torch=environment().get("torch", ""),
        level=int(level),
        obstacle=cause,
        remedy=remedy,
    )


def _hold(stopped: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    stopped.set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
