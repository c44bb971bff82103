"""Tells when the best that others confirmed changes: a better one was confirmed, or the best is confirmed no more."""

from __future__ import annotations

from autoresearch.log import Log
from autoresearch.records import Run, format_id, short_id
from autoresearch.views import backed, state_of, trust_context
from autoresearch.words import RunState
from autoresearch_daemon.events import Events


class LeaderWatch:
    """The best confirmed run of each task, as it was when the node looked last."""

    def __init__(self, log: Log, events: Events) -> None:
        self._log = log
        self._events = events
        self._verifications = log.count("verification")
        self._best = self._look() if self._verifications else {}

    def look(self, now_ms: int, *, again: bool = False) -> None:
        """Tell what changed since the last look; quick when no verification came, unless ``again``."""
        count = self._log.count("verification")
        if count == self._verifications and not again:
            return
        self._verifications = count
        before, self._best = self._best, self._look()
        for task in before.keys() | self._best.keys():
            old, new = before.get(task), self._best.get(task)
            if old != new:
                self._tell(old, new, now_ms)

    def _tell(self, old: bytes | None, new: bytes | None, now_ms: int) -> None:
        state = state_of(self._log, old) if old and self._log.has([old]) else ""
        best = {"best_id": format_id(new) if new else None}
        if old and state != RunState.CONFIRMED:
            told = {"id": format_id(old), "state": state or "withdrawn"} | best
            text = f"{short_id(old)}{self._title(old)} was the best confirmed run and is {told['state']} now"
            self._events.tell("demoted", text, now_ms, **told)
        elif new:
            text = f"{short_id(new)}{self._title(new)} is the best confirmed run now"
            self._events.tell("confirmed", text, now_ms, id=format_id(new), state=RunState.CONFIRMED.value)

    def _title(self, run: bytes) -> str:
        record = self._log.find(run)
        return f" “{record.body.title}”" if record and isinstance(record.body, Run) and record.body.title else ""

    def _look(self) -> dict[bytes, bytes]:
        with self._log.snapshot():
            here, found = trust_context(self._log), {}
            for task in {row.digest for row in self._log.tasks()}:
                confirmed = backed(self._log, task, here, RunState.CONFIRMED)
                if confirmed:
                    found[task] = confirmed[0].row.first
            return found
