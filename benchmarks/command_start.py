"""The command line on a new machine, and beside a daemon: processor time of a command, from its start to its end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from statistics import median

COMMANDS = {"help": "--help", "status": "status", "best": "best", "paths": "paths"}
# Beside a daemon with a run.
ASKED = {"up_status": ("status",), "up_best": ("best",), "up_top": ("top",), "up_show": ("show", "@")}
COMPARED = "a Python that does nothing, and one that imports typer, in the same run (python_ms, typer_ms)"
RUNS = {True: 1, False: 11}
CLI = [sys.executable, "-m", "autoresearch_cli"]


def measure(*, quick: bool) -> dict[str, float]:
    """The median of several runs of each command, in milliseconds; all take their turns."""
    with tempfile.TemporaryDirectory() as home:
        new = {**os.environ, "AUTORESEARCH_HOME": f"{home}/none"}
        asked = {**os.environ, "AUTORESEARCH_HOME": f"{home}/up", "AUTORESEARCH_NETWORK_LAN": "false"}
        for words in (("up",), ("task", "get", "moons", f"{home}/moons"), ("run", f"{home}/moons")):
            subprocess.run([*CLI, *words], env=asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        lines = {
            "python": ([sys.executable, "-c", "pass"], new),
            "typer": ([sys.executable, "-c", "import typer"], new),
        }
        lines |= {name: ([*CLI, word], new) for name, word in COMMANDS.items()}
        lines |= {name: ([*CLI, *words], asked) for name, words in ASKED.items()}
        times: dict[str, list[float]] = {name: [] for name in lines}
        try:
            for turn in range(RUNS[quick] + 1):
                for name, (line, environment) in lines.items():
                    taken = processor_ms(line, environment)
                    if turn:  # the first reads the files from the disk
                        times[name].append(taken)
        finally:
            subprocess.run([*CLI, "down"], env=asked, capture_output=True, check=True)
    return {f"{name}_ms": median(each) for name, each in times.items()}


def processor_ms(line: list[str], environment: dict[str, str]) -> float:
    """User and system time of one process, in milliseconds."""
    process = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return 1000 * (used.ru_utime + used.ru_stime)
