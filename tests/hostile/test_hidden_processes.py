"""A process that hides, by the end of its first thread or by another name, is counted and ended as any other."""

from __future__ import annotations

import select
import textwrap
from dataclasses import replace

import pytest

from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, JobChannel, JobOutcome, Level
from autoresearch.words import RunStatus
from tests.hostile.hidden import HIDE
from tests.run.sandbox.support import MIB, SMALL, job

HIDDEN = {
    "one without its first thread": "in_child(ACTION)",
    "one with a name like a dead process's": "in_child(ACTION, b') Z 1 1 1')",
    "one that left its session": "in_child(lambda: (os.setsid(), ACTION()))",
}


@pytest.fixture(params=[*reversed(Level)], ids=lambda level: level.name.lower())
def level(request: pytest.FixtureRequest) -> Level:
    """Each level that works here; none has limits too, for one's own programs."""
    sandbox_level = Level(request.param)
    trial = execute(_own("succeed()"), level=sandbox_level)
    if trial.status != "ok":
        pytest.skip(f"{sandbox_level.label} does not work on this machine: {trial.reason}")
    return sandbox_level


def _own(source: str, **more: object) -> Job:
    return replace(job(HIDE + textwrap.dedent(source)), foreign=False, **more)  # type: ignore[arg-type]


def _run(source: str, level: Level, **more: object) -> JobOutcome:
    return execute(_own(source, **more), level=level)


def _held_after(source: str, level: Level, **more: object) -> tuple[JobOutcome, bool]:
    """An outcome, and whether a process of the run lives on: each holds the write end of a pipe."""
    theirs, ours = JobChannel.pair()
    try:
        outcome = _run(source, level, talk=theirs, **more)
        poller = select.poll()
        poller.register(ours.descriptors[0], select.POLLIN)
        return outcome, not poller.poll(0)
    finally:
        ours.close()


@pytest.mark.slow
def test_memory_of_a_process_without_its_first_thread_is_counted(level: Level) -> None:
    source = """
    def fill():
        held = [b"x" * (16 << 20) for _ in range(24)]
        time.sleep(60)
    without_first_thread(fill)
    """
    outcome = _run(source, level)
    assert outcome.status is RunStatus.OUT_OF_MEMORY, outcome
    assert outcome.peak_memory_bytes > 256 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("where", HIDDEN)
def test_memory_of_several_of_them_is_counted_together(level: Level, where: str) -> None:
    source = f"""
    def fill():
        held = b"x" * (80 << 20)
        time.sleep(60)
    ACTION = fill
    for _ in range(5):
        {HIDDEN[where]}
    time.sleep(60)
    """
    assert _run(source, level).status is RunStatus.OUT_OF_MEMORY


@pytest.mark.slow
@pytest.mark.parametrize("where", HIDDEN)
def test_none_outlives_its_run_and_its_time_is_counted(level: Level, where: str) -> None:
    source = f"""
    read, write = os.pipe()
    def work():
        burn(0.5)
        os.write(write, b"x")
        burn(1000)
    ACTION = work
    {HIDDEN[where]}
    os.read(read, 1)
    succeed()
    """
    outcome, lives = _held_after(source, level)
    assert outcome.status is RunStatus.OK, outcome
    assert not lives
    assert outcome.cpu_ms >= 450


@pytest.mark.slow
@pytest.mark.parametrize("where", HIDDEN)
def test_too_much_processor_time_of_one_ends_the_run(level: Level, where: str) -> None:
    source = f"""
    ACTION = lambda: burn(1000)
    {HIDDEN[where]}
    time.sleep(60)
    """
    outcome = _run(source, level, limits=replace(SMALL, processor_seconds=0.4))
    assert outcome.status is RunStatus.OVER_BUDGET


@pytest.mark.slow
def test_many_of_them_take_no_place_from_the_next_run(level: Level) -> None:
    source = """
    for _ in range(40):
        in_child(lambda: time.sleep(600))
    time.sleep(0.3)
    succeed()
    """
    outcome, live = _held_after(source, level, limits=replace(SMALL, processes=60))
    assert outcome.status is RunStatus.OK, outcome
    assert not live
    innocent = """
    threads = [threading.Thread(target=time.sleep, args=(0.3,)) for _ in range(30)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    succeed()
    """
    assert _run(innocent, level).status is RunStatus.OK


def test_too_many_of_them_are_counted(level: Level) -> None:
    source = """
    for _ in range(20):
        in_child(lambda: time.sleep(600))
    time.sleep(60)
    """
    assert _run(source, level).status is RunStatus.PROCESS_LIMIT
