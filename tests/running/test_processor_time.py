"""Processor time is counted from outside, wherever a program spends it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoresearch.running import Level
from autoresearch.words import RunStatus
from tests.running.support import SMALL, run

BURN = """
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(10000))
"""
# Each burns two seconds and says that it did nothing.
HIDDEN = {
    "in the open": "burn(2)",
    "in a thread": """
import hashlib, threading
def hash_on():
    block, end = bytes(1 << 20), time.thread_time() + 2
    while time.thread_time() < end:
        hashlib.sha256(block).digest()
thread = threading.Thread(target=hash_on)
thread.start()
thread.join()
""",
    "in a child": """
if os.fork() == 0:
    burn(2)
    os._exit(0)
os.wait()
""",
    "in children that end at once": """
for _ in range(40):
    if os.fork() == 0:
        burn(0.05)
        os._exit(0)
    os.wait()
""",
    "in an orphan": """
read, write = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        burn(2)
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
        burn(2)
        os.write(write, b"x")
        time.sleep(60)
    os._exit(0)
os.wait()
os.read(read, 1)
time.sleep(1)
""",
}


@pytest.mark.parametrize("where", HIDDEN)
def test_time_is_counted(where: str, level: Level) -> None:
    outcome = run(BURN + HIDDEN[where] + "\nsucceed()", level)

    assert outcome.status is RunStatus.OK, outcome.reason
    assert outcome.cpu_ms >= 1800


@pytest.mark.parametrize("where", HIDDEN)
def test_too_much_of_it_ends_the_run(where: str, level: Level) -> None:
    outcome = run(BURN + HIDDEN[where] + "\nsucceed()", level, limits=replace(SMALL, processor_seconds=1.0))

    assert outcome.status is RunStatus.OVER_BUDGET
    assert outcome.value is None
    assert "1.0 s of processor time" in outcome.reason


def test_waiting_costs_nothing(level: Level) -> None:
    outcome = run("time.sleep(1.5)\nsucceed()", level, limits=replace(SMALL, processor_seconds=1.0))

    assert outcome.status is RunStatus.OK, outcome.reason
