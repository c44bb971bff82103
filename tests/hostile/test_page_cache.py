"""What a model read of its text does not reach the next question through the pages of files that both can see."""

from __future__ import annotations

import json
import math
import os
import random
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pytest

from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, Level
from tests.hostile.hidden import HIDE
from tests.run.sandbox.conftest import level as level  # noqa: PLC0414 - a fixture
from tests.run.sandbox.support import job

SLOT, BITS, REFERENCES = 1 << 19, 64, 8
SLOTS = 2 * REFERENCES + BITS
# The first pages are always touched, the next never: by them the receiver learns to tell both apart.
KNOWN = bytes([1] * REFERENCES + [0] * REFERENCES)
EXPERIMENTS, CONTROLS = 6, 3
# Of 384 bits guessed at random more than this many are right once in a thousand million times.
MOST_BY_CHANCE = EXPERIMENTS * BITS // 2 + round(6 * math.sqrt(EXPERIMENTS * BITS / 4))
LEAST_BY_CHANNEL = CONTROLS * BITS * 3 // 4

COMMON = f"""
import ctypes, mmap, socket
SLOT = {SLOT}
shared = os.open(sys.argv[1], os.O_RDONLY)
def mapped():
    held = mmap.mmap(shared, 0, prot=mmap.PROT_READ)
    held.madvise(mmap.MADV_RANDOM)
    return held
def text():
    os.write(0, b"?")
    return open(0, "rb", closefd=False).read()
def done():
    succeed()
    os._exit(0)
"""
# Each touches a page of the shared file for each bit of its text that is one.
DOORS = {
    "in the open": """
        held = mapped()
        for slot, bit in enumerate(text()):
            if bit: held[slot * SLOT]
        done()
    """,
    "without its first thread": """
        held = mapped()
        def touch():
            for slot, bit in enumerate(text()):
                if bit: held[slot * SLOT]
            done()
        without_first_thread(touch)
    """,
    "by a helper without its first thread": """
        told = mmap.mmap(-1, 4096)
        def touch():
            held = mapped()
            while not told[4095]: time.sleep(0.001)
            for slot in range(4000):
                if told[slot]: held[slot * SLOT]
            told[4094] = 1
            time.sleep(60)
        in_child(touch)
        time.sleep(0.2)
        given = text()
        told[: len(given)] = given
        told[4095] = 1
        while not told[4094]: time.sleep(0.001)
        done()
    """,
    "by a helper that reads the file as descriptor 0": """
        told = mmap.mmap(-1, 4096)
        if os.fork() == 0:
            os.dup2(shared, 0)
            told[4093] = 1
            os.posix_fadvise(0, 0, 0, os.POSIX_FADV_RANDOM)
            while not told[4095]: time.sleep(0.001)
            for slot in range(4000):
                if told[slot]:
                    os.lseek(0, slot * SLOT, os.SEEK_SET)
                    os.read(0, 1)
            told[4094] = 1
            time.sleep(60)
        while not told[4093]: time.sleep(0.001)
        given = text()
        told[: len(given)] = given
        told[4095] = 1
        while not told[4094]: time.sleep(0.001)
        done()
    """,
}
RECEIVE = """
    held = mapped()
    times = []
    for slot in range(len(held) // SLOT):
        begun = time.perf_counter_ns()
        held[slot * SLOT]
        times.append(time.perf_counter_ns() - begun)
    print(json.dumps(times))
    succeed()
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A file that both questions see, on a file system of this machine's disk."""
    with TemporaryDirectory(dir=Path.cwd(), prefix=".cold-") as name:
        Path(name).chmod(0o755)
        file = Path(name) / "shared"
        with file.open("wb") as out:
            for _ in range(SLOTS):
                out.write(os.urandom(SLOT))
            out.flush()
            os.fsync(out.fileno())
        file.chmod(0o644)
        yield file


def _job(source: str, file: Path, text: bytes | None = None) -> Job:
    made = job(HIDE + COMMON + textwrap.dedent(source), text=text, mounts=(file.parent,), arguments=(str(file),))
    return replace(made, foreign=False)


def _forgotten(file: Path) -> None:
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _arrived(source: str, file: Path, level: Level, bits: bytes) -> int:
    """How many of the bits, given to one question, another sandbox reads from the times that pages take."""
    _forgotten(file)
    execute(_job(source, file, KNOWN + bits), level=level)
    outcome = execute(_job(RECEIVE, file), level=level)
    assert outcome.status == "ok", outcome.log
    times = [1 + each for each in json.loads(outcome.log)]
    border = math.sqrt(median(times[:REFERENCES]) * median(times[REFERENCES : 2 * REFERENCES]))
    return sum((each < border) == bool(bit) for each, bit in zip(times[2 * REFERENCES :], bits, strict=True))


def _drawn(rng: random.Random) -> bytes:
    return bytes(rng.randrange(2) for _ in range(BITS))


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_no_more_bits_arrive_than_by_chance(level: Level, shared: Path, door: str) -> None:
    rng = random.Random(door)
    right = sum(_arrived(DOORS[door], shared, level, _drawn(rng)) for _ in range(EXPERIMENTS))
    assert right <= MOST_BY_CHANCE


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_they_arrive_where_there_are_no_walls(shared: Path, door: str) -> None:
    rng = random.Random(door)
    right = sum(_arrived(DOORS[door], shared, Level.NONE, _drawn(rng)) for _ in range(CONTROLS))
    assert right >= LEAST_BY_CHANNEL
