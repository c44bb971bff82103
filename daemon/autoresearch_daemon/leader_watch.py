"""Tells when the best that others confirmed changes: a better one was confirmed, or the best is confirmed no more."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NamedTuple

from autoresearch.log import Log
from autoresearch.records import Run, format_id, short_id
from autoresearch.views import backed, state_of, trust_context
from autoresearch.words import RunState
from autoresearch_daemon.events import Events
from autoresearch_daemon.log_thread import LogThread


class _Seen(NamedTuple):
    """How many verifications there were, and the best confirmed run of each task."""

    verifications: int
    best: dict[bytes, bytes]


class _Change(NamedTuple):
    """What is told: an event's kind, its text, and a run with its state."""

    kind: str
    text: str
    data: dict[str, str | None]


class LeaderWatch:
    """The best confirmed run of each task at the last look. It looks in the thread of the log; the first is no news."""

    def __init__(self, thread: LogThread, events: Events) -> None:
        self._thread = thread
        self._events = events
        self._turn = asyncio.Lock()
        self._seen: _Seen | None = None

    async def look(self, now_ms: int, *, again: bool = False) -> None:
        """Tell what changed since the last look; quick when no verification came, unless ``again``."""
        async with self._turn:
            self._seen, changes = await self._thread.run(partial(_look, before=self._seen, again=again))
        for change in changes:
            self._events.tell(change.kind, change.text, now_ms, **change.data)


def _look(log: Log, *, before: _Seen | None, again: bool) -> tuple[_Seen, list[_Change]]:
    with log.reader.snapshot():
        count = log.records.count("verification")
        if before and count == before.verifications and not again:
            return before, []
        seen = _Seen(count, _confirmed(log) if count else {})
        if before is None:
            return seen, []
        pairs = [(before.best.get(task), seen.best.get(task)) for task in before.best.keys() | seen.best.keys()]
        return seen, [_change(log, old, new) for old, new in pairs if old != new]


def _confirmed(log: Log) -> dict[bytes, bytes]:
    here, found = trust_context(log), {}
    for task in {row.digest for row in log.tasks.all()}:
        if confirmed := backed(log, task, here, RunState.CONFIRMED):
            found[task] = confirmed[0].row.first
    return found


def _change(log: Log, old: bytes | None, new: bytes | None) -> _Change:
    state = state_of(log, old) if old and log.records.has([old]) else ""
    if old and (new is None or state != RunState.CONFIRMED):
        word = str(state or "withdrawn")
        text = f"{short_id(old)}{_title(log, old)} was the best confirmed run and is {word} now"
        best = format_id(new) if new else None
        return _Change("demoted", text, {"id": format_id(old), "state": word, "best_id": best})
    assert new is not None
    text = f"{short_id(new)}{_title(log, new)} is the best confirmed run now"
    return _Change("confirmed", text, {"id": format_id(new), "state": RunState.CONFIRMED.value})


def _title(log: Log, run: bytes) -> str:
    record = log.records.find(run)
    return f" “{record.body.title}”" if record and isinstance(record.body, Run) and record.body.title else ""
