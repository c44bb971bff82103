"""The supervisor's own sudden death takes every process of the run with it, whenever it comes."""

from __future__ import annotations

import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.scratch import sweep
from tests.run.sandbox.support import processes_with

_SUPERVISOR = """
import sys
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Level
from tests.run.sandbox.support import job
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
        cwd=Path(__file__).parents[3],
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


# Stands before the first program of the sandbox. Every process of the run inherits the open FIFO: who reads it sees its
# end when the last of them is gone. "kill" ends the supervisor before that program has done anything.
_STAND_IN = """#!{python} -IS
import os, sys
os.set_inheritable(os.open({fifo!r}, os.O_WRONLY), True)
parent = os.getppid()
if {kill}:
    os.kill(parent, 9)
    while os.getppid() == parent:
        pass
os.execv({real!r}, [{real!r}, *sys.argv[1:]])
"""

_SUPERVISORS = """
import os, signal, sys, tempfile, time
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Level
from tests.run.sandbox.support import job
level, stand_in, count = Level(int(sys.argv[1])), sys.argv[2], int(sys.argv[3])
if level is Level.BUBBLEWRAP:
    os.environ["PATH"] = f"{os.path.dirname(stand_in)}:{os.environ['PATH']}"
else:
    sys.executable = stand_in
tempfile.gettempdir()  # tries the folder with a file, once
task = job("""
_PROGRAM = """
for descriptor in range(3, 64):
    try: os.write(descriptor, b"ran")
    except OSError: pass
while True: time.sleep(1)
"""
_KILLING = """)
for number in range(count):
    pid = os.fork()
    if not pid:
        execute(task, level=level)
        os._exit(0)
    if count > 1:
        time.sleep(0.02 * number / count)
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""


@contextmanager
def _sandboxes_end(level: Level, folder: Path, *, kill: bool) -> Iterator[tuple[str, list[bytes]]]:
    """A stand-in for the level's first program. At the end every process that came from it is gone, or it fails.

    The list is filled with what they wrote into the FIFO meanwhile.
    """
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    real = shutil.which("bwrap") if level is Level.BUBBLEWRAP else sys.executable
    stand_in = folder / "bwrap"
    stand_in.write_text(_STAND_IN.format(python=sys.executable, fifo=str(fifo), kill=kill, real=real))
    stand_in.chmod(0o755)
    written: list[bytes] = []
    try:
        yield str(stand_in), written
        poller = select.poll()
        poller.register(reader, select.POLLIN)
        while poller.poll(30_000) and (text := os.read(reader, 4096)):
            written.append(text)
        assert [Path(f"/proc/{pid}/comm").read_text() for pid in _holders(fifo)] == []
    finally:
        os.close(reader)
        for pid in _holders(fifo):
            os.kill(pid, signal.SIGKILL)


def _holders(fifo: Path) -> list[int]:
    holders = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is not ours
            for link in (process / "fd").iterdir():
                with suppress(OSError):
                    if link.readlink() == fifo:
                        holders.add(int(process.name))
    return sorted(holders - {os.getpid()})


def _kill(level: Level, stand_in: str, temporary: Path, *, count: int) -> None:
    subprocess.run(
        [sys.executable, "-c", f"{_SUPERVISORS}{_PROGRAM!r}{_KILLING}", str(level.value), stand_in, str(count)],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "TMPDIR": str(temporary)},
        check=True,
    )


@pytest.mark.slow
def test_no_program_starts_when_its_supervisor_died_before_the_sandbox_is_up(level: Level, tmp_path: Path) -> None:
    with _sandboxes_end(level, tmp_path, kill=True) as (stand_in, written):
        _kill(level, stand_in, tmp_path, count=1)
    assert written == []


@pytest.mark.slow
def test_whenever_a_supervisor_is_killed_nothing_stays(level: Level, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with _sandboxes_end(level, tmp_path, kill=False) as (stand_in, _):
        _kill(level, stand_in, temporary, count=120)
    sweep(temporary)
    assert list(temporary.iterdir()) == []
