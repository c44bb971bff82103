"""Changes made ahead: a slow mind keeps no worker waiting, a quick one knows how the run before ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from autoresearch_daemon.minds import ahead
from autoresearch_daemon.minds.ahead import Mind

from autoresearch.errors import Refused
from autoresearch.run.experiment import Plan


@dataclass
class Thinker:
    """Makes changes when the test says so: an answer for each time that it was let go."""

    begun: int = 0
    ended_early: int = 0
    may_end: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __call__(self, unwanted: Callable[[], bool]) -> Plan | str:
        self.begun += 1
        while not self.may_end.acquire(timeout=0.01):
            if unwanted():
                self.ended_early += 1
                return "stopped"
        return f"change {self.begun}"


@pytest.fixture
def mind(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mind]:
    """A mind that is slow when it takes longer than 50 ms."""
    monkeypatch.setattr(ahead, "QUICK_SECONDS", 0.05)
    mind = Mind()
    yield mind
    mind.stop()


def never() -> bool:
    return False


def made_slowly(mind: Mind, think: Thinker) -> None:
    """The first change takes 100 ms, and a run after it as long."""
    threading.Timer(0.1, think.may_end.release).start()
    assert mind.change("task", think, patient=False, cancelled=never) == "change 1"
    mind.note_run(0.1)


def test_a_slow_mind_makes_the_next_change_while_a_run_trains(mind: Mind) -> None:
    think = Thinker()
    made_slowly(mind, think)
    mind.think_ahead("task", think)
    assert mind.change("task", think, patient=False, cancelled=never) is None  # the search takes this turn
    assert mind.change("task", think, patient=False, cancelled=never) is None
    think.may_end.release()
    while mind.change("task", think, patient=False, cancelled=never) is None:
        time.sleep(0.01)
    assert think.begun == 2  # it went on with one change, and was not asked for another


def test_what_somebody_counts_is_waited_for(mind: Mind) -> None:
    think = Thinker()
    made_slowly(mind, think)
    mind.think_ahead("task", think)
    threading.Timer(0.1, think.may_end.release).start()
    assert mind.change("task", think, patient=True, cancelled=never) == "change 2"


@pytest.mark.parametrize("run_seconds", [0.0, 1000.0])
def test_a_mind_that_is_quick_beside_a_run_waits_for_its_end(mind: Mind, run_seconds: float) -> None:
    think = Thinker()
    made_slowly(mind, think)
    mind.note_run(run_seconds)
    mind.think_ahead("task", think)
    time.sleep(0.05)
    assert think.begun == 1


def test_a_change_for_another_task_ends_the_one_in_the_making(mind: Mind) -> None:
    think, other = Thinker(), Thinker()
    made_slowly(mind, think)
    mind.think_ahead("task", think)
    other.may_end.release()
    assert mind.change("another task", other, patient=False, cancelled=never) == "change 1"
    assert think.ended_early == 1


def test_who_waits_may_be_stopped(mind: Mind) -> None:
    think = Thinker()
    assert mind.change("task", think, patient=False, cancelled=lambda: think.begun > 0) == ""
    assert think.ended_early == 1


def test_what_goes_wrong_is_told_to_who_asks(mind: Mind) -> None:
    def fail(_: Callable[[], bool]) -> Plan | str:
        raise Refused("no log")

    with pytest.raises(Refused, match="no log"):
        mind.change("task", fail, patient=False, cancelled=never)
    think = Thinker()
    think.may_end.release()
    assert mind.change("task", think, patient=False, cancelled=never) == "change 1"
