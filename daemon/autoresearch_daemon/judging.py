"""Judges runs in short pieces, and tells when the best that others confirmed changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.log.derive.driver import settle
from autoresearch.log.log import Log
from autoresearch.log.standing.bases import backed
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.metrics import read_sources
from autoresearch.log.standing.verification import state_of
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Run
from autoresearch.words import RUN_STATE_SENTENCES, RunState
from autoresearch_daemon.events import Events, now_ms
from autoresearch_daemon.failures import JUDGING
from autoresearch_daemon.log_thread import LogThread
from autoresearch_daemon.service.inputs import VerificationsChanged

# Records wait for no more than this while verdicts are settled.
SETTLE_SECONDS = 0.05
# Where nothing tells that there is something to judge, it is looked so often.
LOOK_SECONDS = 5.0


class _Seen(NamedTuple):
    """How many verifications there were, the best confirmed run of each task, and the states of own runs."""

    verifications: int
    best: dict[bytes, bytes]
    own: dict[bytes, RunState]


class _Change(NamedTuple):
    """What is told: an event's kind, its text, and a run with its state."""

    kind: str
    text: str
    data: dict[str, str | None]


class LeaderWatch:
    """The best confirmed run of each task, and what verifiers decided on runs of the device ``me``, at the last look.

    It looks in the thread of the log; the first is no news.
    """

    def __init__(self, thread: LogThread, events: Events, me: bytes = b"") -> None:
        self._me = me
        self._thread = thread
        self._events = events
        self._turn = asyncio.Lock()
        self._seen: _Seen | None = None

    async def look(self, now_ms: int, *, again: bool = False) -> None:
        """Tell what changed since the last look; quick when no verification came, unless ``again``."""
        async with self._turn:
            self._seen, changes = await self._thread.run(partial(_look, me=self._me, before=self._seen, again=again))
        for change in changes:
            self._events.tell(change.kind, change.text, now_ms, **change.data)


def _look(log: Log, *, me: bytes, before: _Seen | None, again: bool) -> tuple[_Seen, list[_Change]]:
    with log.reader.snapshot():
        count = log.records.count("verification")
        if before and count == before.verifications and not again:
            return before, []
        seen = _Seen(count, _confirmed(log) if count else {}, log.standings.decided(me) if count else {})
        if before is None:
            return seen, []
        pairs = [(before.best.get(task), seen.best.get(task)) for task in before.best.keys() | seen.best.keys()]
        decided = [(run, state) for run, state in seen.own.items() if before.own.get(run) != state]
        return seen, [
            *(_verdict(log, run, state) for run, state in decided),
            *(_change(log, old, new) for old, new in pairs if old != new),
        ]


def _confirmed(log: Log) -> dict[bytes, bytes]:
    context, best = trust_context(log), {}
    for task in {row.digest for row in log.tasks.all()}:
        if confirmed := next(backed(log, task, context, RunState.CONFIRMED), None):
            best[task] = confirmed.row.first
    return best


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


def _verdict(log: Log, run: bytes, state: RunState) -> _Change:
    text = f"your run {short_id(run)}{_title(log, run)} is {state.value}: {RUN_STATE_SENTENCES[state]}"
    return _Change("verdict", text, {"id": format_id(run), "state": state.value})


def _title(log: Log, run: bytes) -> str:
    record = None if log.hidden.of([run]) else log.records.find(run)
    return f" “{record.body.title}”" if record and isinstance(record.body, Run) and record.body.title else ""


class Judging:
    """Judges what was not judged when it was stored, so that questions and the next start find it done."""

    def __init__(
        self,
        notebook: Notebook,
        thread: LogThread,
        leading: LeaderWatch,
        *,
        take: Callable[[VerificationsChanged], None],
    ) -> None:
        self._notebook, self._thread, self._leading, self._take = notebook, thread, leading, take
        self._news = asyncio.Event()

    def begin(self) -> None:
        """Others count than before: judge soon."""
        self._news.set()

    async def keep(self) -> None:
        """Judge until cancelled."""
        while True:
            self._news.clear()
            left = 0
            with self._thread.failures.watched(JUDGING):
                left = await self.judge_some()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), 0.0 if left else LOOK_SECONDS)

    async def judge_some(self) -> int:
        """Judge for a short time what is to be judged; returns how many runs are left. At the end look who leads."""
        reader = self._notebook.log.reader
        before = reader.revision().settled
        await self._thread.run(partial(read_sources, blobs=self._notebook.blobs))
        left = await self._thread.run(partial(settle, seconds=SETTLE_SECONDS))
        if not left and reader.revision().settled != before:
            await self._leading.look(now_ms(), again=True)
            self._take(VerificationsChanged())
        return left
