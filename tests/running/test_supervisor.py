"""The supervisor's own sudden death takes every process of the run with it."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

from autoresearch.running import Level
from tests.running.support import processes_with

_SUPERVISOR = """
import sys
from autoresearch.running import Level, execute
from tests.running.support import job
source = '''
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True: time.sleep(1)
        os._exit(0)
    os.wait()
report(event="progress", fraction=0.5)
while True: time.sleep(1)
'''
level = Level(int(sys.argv[2]))
execute(job(source, arguments=(sys.argv[1],)), level=level, on_progress=lambda p: print("up", flush=True))
"""


def test_sigkill_of_the_supervisor_leaves_no_process_behind(level: Level) -> None:
    marker = secrets.token_hex(8)
    supervisor = subprocess.Popen(
        [sys.executable, "-c", _SUPERVISOR, marker, str(level.value)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert supervisor.stdout is not None
    assert supervisor.stdout.readline() == b"up\n"
    watched = [os.pidfd_open(pid) for pid in processes_with(marker) if pid != supervisor.pid]
    assert len(watched) >= 4
    os.kill(supervisor.pid, signal.SIGKILL)
    supervisor.communicate()
    deadline = time.monotonic() + 20
    while processes_with(marker) and time.monotonic() < deadline:
        time.sleep(0.02)
    for descriptor in watched:
        os.close(descriptor)
    assert processes_with(marker) == []
