"""Progress as events: not too many, and with the time that is left."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from autoresearch_daemon.events import Events, ProgressEvents
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.workers import protocol

from autoresearch.ask.node import RunInHand

NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("fraction", "started_ms", "left"),
    [(0.25, NOW_MS - 10_000, 30_000), (1.0, NOW_MS - 10_000, 0), (0.01, NOW_MS - 10_000, None), (0.5, 0, None)],
)
def test_the_rest_takes_as_long_as_the_speed_so_far_says(fraction: float, started_ms: int, left: int | None) -> None:
    assert RunInHand(title="", fraction=fraction, started_ms=started_ms).time_left_ms(NOW_MS) == left


def test_a_listener_hears_of_each_worker_once_a_second(tmp_path: Path) -> None:
    local = LocalState(tmp_path / "local.sqlite")
    events = Events(local)
    progress = ProgressEvents(events)
    run = RunInHand(title="wider", task="grammar", fraction=0.5, started_ms=NOW_MS - 8000)
    message = protocol.Progress(assignment="a", fraction=0.5, step=7, loss=1.5)
    with events.subscribe() as queue:
        for later in range(0, 2500, 500):
            progress.tell("w1", message, run, NOW_MS + later)
        progress.tell("w2", message, None, NOW_MS + 2000)
        passed_on = [queue.get_nowait() for _ in range(queue.qsize())]
    local.close()
    assert [(event.data["worker"], event.time_ms - NOW_MS) for event in passed_on] == [
        ("w1", 0),
        ("w1", 1000),
        ("w1", 2000),
        ("w2", 2000),
    ]
    fields = {"task": "grammar", "title": "wider", "step": 7, "elapsed_ms": 8000, "left_ms": 8000}
    assert fields.items() <= passed_on[0].data.items()


def test_a_long_run_keeps_a_curve_of_few_points_and_its_last_lines(tmp_path: Path) -> None:
    local = LocalState(tmp_path / "local.sqlite")
    progress = ProgressEvents(Events(local))
    run = RunInHand(title="wider", started_ms=NOW_MS)
    for second in range(4000):
        lines = (f"step {second}",) if second % 2 else ()
        message = protocol.Progress(assignment="a", fraction=0.5, step=second, loss=1 / (second + 1), lines=lines)
        progress.tell("w1", message, run, NOW_MS + 1000 * second)
    trace = progress.trace("w1", "a")
    local.close()
    times = [at for at, _ in trace.curve]
    assert 60 < len(times) <= 129
    assert (times[0], times == sorted(times), times[-1] > 3_900_000) == (0, True, True)
    assert max(b - a for a, b in itertools.pairwise(times)) < 4_000_000 / 30
    assert (trace.lines, progress.trace("w1", "b").lines) == (("step 3999",), ())
