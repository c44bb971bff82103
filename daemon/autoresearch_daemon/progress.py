"""How far runs are, as events: at most one a second for each worker, with what is left."""

from __future__ import annotations

import msgspec

from autoresearch.api import RunInHand
from autoresearch_daemon.events import Events
from autoresearch_daemon.workers import protocol

EVERY_MS = 1000
# Of less of a run nothing can be concluded about the rest.
LEAST_FRACTION = 0.02


class ProgressEvents:
    """Passes progress on to everybody who listens, and keeps nothing of it."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._told_ms: dict[str, int] = {}

    def tell(self, worker: str, message: protocol.Progress, run: RunInHand | None, now_ms: int) -> None:
        """Tell how far a worker's run is, unless that was told within a second."""
        if now_ms - self._told_ms.get(worker, 0) < EVERY_MS:
            return
        self._told_ms[worker] = now_ms
        run = run or RunInHand(title="")
        about = {"task": run.task, "title": run.title, "elapsed_ms": elapsed_ms(run, now_ms)}
        data = {**msgspec.structs.asdict(message), **about, "left_ms": left_ms(run, now_ms)}
        self._events.pass_on("progress", run.title, now_ms, worker=worker, **data)


def with_time_left(run: RunInHand, now_ms: int) -> RunInHand:
    """The run with what is left of it now."""
    return msgspec.structs.replace(run, left_ms=left_ms(run, now_ms))


def left_ms(run: RunInHand, now_ms: int) -> int | None:
    """How long a run goes on if it goes on as fast as until now; None while that can't be said."""
    if run.fraction < LEAST_FRACTION or not run.started_ms:
        return None
    return round(elapsed_ms(run, now_ms) * (1 - min(run.fraction, 1.0)) / run.fraction)


def elapsed_ms(run: RunInHand, now_ms: int) -> int:
    """How long a run has been going on."""
    return max(0, now_ms - run.started_ms) if run.started_ms else 0
