"""Processor time is counted from outside, wherever a program spends it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoresearch.run.sandbox.job import Level
from autoresearch.words import RunStatus
from tests.hostile.hidden import BURN
from tests.run.sandbox.support import SMALL, run

# Each burns SECONDS and says that it did nothing.
HIDDEN = {
    "in the open": "burn(SECONDS)",
    "in a thread": """
import hashlib, threading
def hash_on():
    block, end = bytes(1 << 20), time.thread_time() + SECONDS
    while time.thread_time() < end:
        hashlib.sha256(block).digest()
thread = threading.Thread(target=hash_on)
thread.start()
thread.join()
""",
    "in a child": """
if os.fork() == 0:
    burn(SECONDS)
    os._exit(0)
os.wait()
""",
    "in children that end at once": """
for _ in range(10):
    if os.fork() == 0:
        burn(SECONDS / 10)
        os._exit(0)
    os.wait()
""",
    "in an orphan": """
read, write = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        burn(SECONDS)
        os.write(write, b"x")
        os._exit(0)
    os._exit(0)
os.wait()
os.close(write)
os.read(read, 1)
""",
    "in an orphan that is left behind": """
read, write = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        burn(SECONDS)
        os.write(write, b"x")
        time.sleep(60)
    os._exit(0)
os.wait()
os.read(read, 1)
time.sleep(0.3)
""",
}


def burning(where: str, seconds: float) -> str:
    """A program that burns so many seconds there and says that it did nothing."""
    return f"SECONDS = {seconds}\n{BURN}{HIDDEN[where]}\nsucceed()"


@pytest.mark.slow
@pytest.mark.parametrize("where", HIDDEN)
def test_time_is_counted(where: str, level: Level) -> None:
    outcome = run(burning(where, 0.3), level)

    assert outcome.status is RunStatus.OK, outcome.reason
    assert outcome.cpu_ms >= 240


@pytest.mark.slow
@pytest.mark.parametrize("where", HIDDEN)
def test_too_much_of_it_ends_the_run(where: str, level: Level) -> None:
    outcome = run(burning(where, 2), level, limits=replace(SMALL, processor_seconds=0.4))

    assert outcome.status is RunStatus.OVER_BUDGET
    assert outcome.value is None
    assert "0.4 s of processor time" in outcome.reason


def test_waiting_costs_nothing(level: Level) -> None:
    outcome = run("time.sleep(0.8)\nsucceed()", level, limits=replace(SMALL, processor_seconds=0.7))

    assert outcome.status is RunStatus.OK, outcome.reason
