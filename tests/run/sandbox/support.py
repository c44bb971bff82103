"""Small programs and jobs for the sandbox tests."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, JobLimits, JobOutcome, Level

MIB = 1 << 20
SMALL = JobLimits(
    seconds=20, memory_bytes=256 * MIB, disk_bytes=16 * MIB, processes=16, output_bytes=65536, checkpoint_bytes=MIB
)
PREAMBLE = """
import json, os, signal, sys, time
def report(**event):
    os.write(int(os.environ["AUTORESEARCH_RESULT_FD"]), json.dumps(event).encode() + b"\\n")
def succeed(value=1.0):
    report(event="result", status="ok", value=value)
"""


def job(source: str, *, limits: JobLimits = SMALL, beside: dict[str, bytes] | None = None, **more: object) -> Job:
    """A job of one small program, with the helpers ``report`` and ``succeed`` in scope, and files ``beside`` it."""
    files = {**(beside or {}), "train.py": (PREAMBLE + textwrap.dedent(source)).encode()}
    return Job(files=files, copied=tuple(files), limits=limits, **more)  # type: ignore[arg-type]


def run(source: str, level: Level, *, limits: JobLimits = SMALL, **more: object) -> JobOutcome:
    """Executes one small program."""
    return execute(job(source, limits=limits, **more), level=level)


def processes_with(marker: str) -> list[int]:
    """Living processes whose command line holds ``marker``."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if marker.encode() in (folder / "cmdline").read_bytes() and state not in "ZX":
                pids.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in pids if pid != os.getpid()]
