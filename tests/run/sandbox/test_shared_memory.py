"""Semaphores, worker processes and shared arrays: their files lie in memory that is the run's own, at both levels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import pytest

from autoresearch.run.sandbox import launcher
from autoresearch.run.sandbox.command import SHARED
from autoresearch.run.sandbox.job import Level
from tests.run.sandbox.support import run

PROGRAMS = {
    "a lock": "import multiprocessing\nwith multiprocessing.Lock(): succeed(6.0)",
    "a queue": """
        import multiprocessing as mp
        queue = mp.Queue()
        process = mp.Process(target=queue.put, args=(6.0,))
        process.start()
        succeed(queue.get())
        process.join()
        """,
    "a pool": "import multiprocessing as mp\nwith mp.Pool(2) as pool: succeed(float(sum(pool.map(abs, range(4)))))",
    "a pool of futures": """
        from concurrent.futures import ProcessPoolExecutor
        with ProcessPoolExecutor(2) as pool: succeed(float(sum(pool.map(abs, range(4)))))
        """,
    "a shared array": """
        from multiprocessing import Array, Process
        numbers = Array("d", 4)
        process = Process(target=lambda: numbers.__setitem__(2, 6.0))
        process.start(); process.join()
        succeed(sum(numbers))
        """,
    "shared memory": """
        from multiprocessing import shared_memory
        memory = shared_memory.SharedMemory(create=True, size=100)
        memory.buf[0] = 6
        again = shared_memory.SharedMemory(memory.name)
        succeed(float(again.buf[0]))
        again.close(); memory.close(); memory.unlink()
        """,
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_processes_of_a_run_share_memory(level: Level, what: str) -> None:
    outcome = run(PROGRAMS[what], level)
    assert (outcome.status, outcome.value) == ("ok", 6.0), (outcome.reason, outcome.log)


def test_it_is_the_runs_own_and_goes_with_it(level: Level) -> None:
    theirs = Path(SHARED, f"autoresearch-{token_hex(8)}")
    theirs.write_text("secret")
    theirs.chmod(0o666)
    try:
        source = f"""
        assert os.listdir("{SHARED}") == []
        for mode in ("r", "r+"):
            try:
                open("{theirs}", mode)
            except OSError:
                continue
            raise SystemExit("it was opened")
        open("{SHARED}/left-{theirs.name}", "w").write("x")
        succeed()
        """
        for _ in range(2):
            outcome = run(source, level)
            assert outcome.status == "ok", outcome.log
        assert theirs.read_text() == "secret"
        assert not Path(SHARED, f"left-{theirs.name}").exists()
    finally:
        theirs.unlink()


def test_what_lies_there_counts(level: Level) -> None:
    source = f"""
    with open("{SHARED}/large", "wb") as file:
        while True: file.write(bytes(1 << 20)); file.flush(); time.sleep(0.01)
    """
    outcome = run(source, level)
    assert outcome.status == "disk_limit", (outcome.reason, outcome.log)


def test_without_a_mount_there_is_none() -> None:
    """Nothing that is not the run's own is ever opened to it."""
    folder = str(Path(launcher.__file__).parent)
    specification = {"shared": (folder, "/nowhere/at/all", 1), "landlock": ((), [])}
    code = f"import launcher\nof = {specification}\nlauncher.give_shared_memory(of)\nprint(of['landlock'])"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": folder}, capture_output=True, text=True, check=False)
    assert done.stdout == "((), [])\n", done.stderr


def test_data_that_lies_in_shared_memory_stays_readable(level: Level) -> None:
    with TemporaryDirectory(dir=SHARED) as folder:
        Path(folder).chmod(0o755)
        Path(folder, "x").write_text("6")
        outcome = run(f"succeed(float(open('{folder}/x').read()))", level, mounts=(Path(folder),))
    assert (outcome.status, outcome.value) == ("ok", 6.0), outcome.log
