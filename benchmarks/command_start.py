"""The command line on a new machine: processor time of a command, from its start to its end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from statistics import median

COMMANDS = {"help": "--help", "status": "status", "best": "best", "paths": "paths"}
COMPARED = "what a person does not notice: 100 ms for help, 250 ms for an answer"
RUNS = {True: 3, False: 11}


def measure(*, quick: bool) -> dict[str, float]:
    """The median of several runs of each command, in milliseconds; a Python that does nothing is the least possible."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "AUTORESEARCH_HOME": f"{home}/none"}
        least = [sys.executable, "-c", "pass"]
        lines = {"python": least}
        lines |= {name: [sys.executable, "-m", "autoresearch_cli", word] for name, word in COMMANDS.items()}
        processor_ms(least, environment)  # the first reads the files from the disk
        figures = {}
        for name, line in lines.items():
            processor_ms(line, environment)
            figures[f"{name}_ms"] = median(processor_ms(line, environment) for _ in range(RUNS[quick]))
    return figures


def processor_ms(line: list[str], environment: dict[str, str]) -> float:
    """User and system time of one process, in milliseconds."""
    process = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return 1000 * (used.ru_utime + used.ru_stime)
