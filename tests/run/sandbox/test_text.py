"""A program that was given its text computes and answers; it leaves no trace of the text on the machine."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

import pytest

from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, Level
from tests.run.sandbox.support import SMALL, job, run

TEXT = b"secret" * 100_000
ASK = """
import socket, threading
given = open(0, "rb", closefd=False)
def ask():
    os.write(0, b"?")
    return given.read()
def allowed(**actions):
    found = []
    for name, action in actions.items():
        try: action()
        except PermissionError: continue
        except FileNotFoundError: pass
        found.append(name)
    return found
TRIES = dict(
    look_up=lambda: os.stat("/usr/lib/nothing"), open=lambda: open("/usr/lib/os-release"), list=lambda: os.listdir("."),
    write=lambda: open("file", "w"), fork=os.fork, pipe=os.pipe, map=lambda: mapped(), read_again=lambda: os.read(9, 1),
    connect=lambda: socket.socket(socket.AF_UNIX), run=lambda: os.execv("/bin/true", ["true"]),
)
source = os.open(sys.executable, os.O_RDONLY); os.dup2(source, 9)
import mmap
mapped = lambda: mmap.mmap(source, 4096, prot=mmap.PROT_READ)
"""


def test_before_it_has_the_text_it_works_as_any_and_afterwards_nothing_is_reached(level: Level) -> None:
    source = f"""
    before = allowed(**{{name: TRIES[name] for name in ("look_up", "open", "list", "write", "pipe", "map")}})
    assert len(before) == 6, before
    assert ask() == {TEXT[:6]!r} * {len(TEXT) // 6}
    assert allowed(**TRIES) == [], allowed(**TRIES)
    done = []
    thread = threading.Thread(target=lambda: done.append(bytearray(1 << 26)))
    thread.start(); thread.join()
    assert done
    succeed()
    """
    outcome = execute(_with(source, TEXT), level=level)
    assert outcome.status == "ok", outcome.log


def test_a_helper_from_before_reaches_nothing_either(level: Level) -> None:
    source = """
    toward, ours = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        wanted = {name: TRIES[name] for name in ("look_up", "open", "list")}
        while allowed(**wanted): pass
        toward.sendmsg([b"refused"])
        os._exit(0)
    ask()
    os.wait()
    succeed()
    """
    outcome = execute(_with(source, TEXT), level=level)
    assert outcome.status == "ok", outcome.log


def test_a_call_that_is_under_way_does_not_go_on_once_it_has_the_text(level: Level) -> None:
    source = """
    os.mkfifo("waits")
    refused = []
    def wait_for_writer():
        try: os.open("waits", os.O_RDONLY)
        except PermissionError: refused.append(True)
    thread = threading.Thread(target=wait_for_writer)
    thread.start()
    time.sleep(0.2)
    assert thread.is_alive()
    ask()
    thread.join()
    assert refused
    succeed()
    """
    outcome = execute(_with(source, TEXT), level=level)
    assert outcome.status == "ok", outcome.log


def test_it_gets_no_text_while_one_of_its_processes_can_read_a_file(level: Level) -> None:
    source = """
    ready, done = os.pipe()
    if os.fork() == 0:
        os.dup2(source, 0)
        os.write(done, b"x")
        time.sleep(60)
    os.read(ready, 1)
    ask()
    succeed()
    """
    outcome = execute(_with(source, TEXT), level=level)
    assert (outcome.status, b"a file as descriptor 0" in outcome.log) == ("crashed", True), outcome


def test_it_gets_no_text_where_it_is_not_seen_what_a_process_has_mapped(level: Level) -> None:
    source = """
    import subprocess
    with os.fdopen(os.open("closed", os.O_CREAT | os.O_WRONLY, 0o111), "wb") as copy:
        copy.write(open("/bin/sleep", "rb").read())
    ready, done = os.pipe()
    subprocess.Popen(["./closed", "60"], pass_fds=[done])
    ask()
    succeed()
    """
    outcome = execute(_with(source, TEXT), level=level)
    # The keeper of root's runs sees more than the processes of an ordinary user.
    assert outcome.status == ("ok" if os.geteuid() == 0 else "crashed"), outcome


def test_a_program_that_lets_itself_go_on_gets_its_text_all_the_same(level: Level) -> None:
    source = """
    import signal
    if (other := os.fork()) == 0:
        while True:
            try: os.kill(os.getppid(), signal.SIGCONT)
            except PermissionError: os._exit(0)
    ask()
    os.waitpid(other, 0)
    succeed()
    """
    outcome = execute(_with(source, TEXT), level=level)
    assert outcome.status == "ok", outcome.log


def test_without_walls_it_gets_its_text_too() -> None:
    outcome = execute(replace(_with("assert ask() == b'x'\nsucceed()", b"x"), foreign=False), level=Level.NONE)
    assert outcome.status == "ok", outcome.log


@pytest.mark.parametrize("source", ["succeed()", "import os; os.close(0); succeed()", "os.write(0, b'?'); succeed()"])
def test_who_does_not_take_it_ends_all_the_same(level: Level, source: str) -> None:
    assert run(source, level, text=TEXT * 10).status == "ok"


def test_a_program_that_waits_for_more_is_stopped(level: Level) -> None:
    limits = replace(SMALL, seconds=1)
    assert run("import time; time.sleep(60)", level, limits=limits, text=TEXT).status == "timed_out"


@pytest.fixture
def cold() -> Iterator[Path]:
    """A file of which nothing is in memory, where its file system can do that."""
    with TemporaryDirectory(dir=Path.cwd(), prefix=".cold-") as name:
        Path(name).chmod(0o755)
        file = Path(name) / "cold"
        with file.open("wb") as out:
            out.write(os.urandom(16 << 20))
            out.flush()
            os.fsync(out.fileno())
            os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.chmod(0o644)
        yield file


def _resident(file: Path) -> int:
    """How many pages of a file are in memory."""
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        pages = len(mapped) // mmap.PAGESIZE
        seen = ctypes.create_string_buffer(pages)
        first = (ctypes.c_char * len(mapped)).from_buffer(mapped)
        try:
            assert ctypes.CDLL(None).mincore(ctypes.byref(first), ctypes.c_size_t(len(mapped)), seen) == 0
        finally:
            del first
        return sum(byte & 1 for byte in seen.raw)


def test_which_pages_of_a_mapped_file_it_touches_is_not_seen(level: Level, cold: Path) -> None:
    assert _resident(cold) < (16 << 20) // mmap.PAGESIZE
    source = f"""
    file = os.open({str(cold)!r}, os.O_RDONLY)
    held = mmap.mmap(file, 0, prot=mmap.PROT_READ)
    ask()
    succeed()
    """
    outcome = execute(replace(_with(source, b"x"), mounts=(cold.parent,)), level=level)
    assert outcome.status == "ok", outcome.log
    assert _resident(cold) == (16 << 20) // mmap.PAGESIZE


def _with(source: str, text: bytes) -> Job:
    return job(ASK + dedent(source), text=text)
