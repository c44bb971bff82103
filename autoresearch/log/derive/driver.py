"""Runs the steps: at once in the transaction of a record, as far as that is little, else later in pieces."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from autoresearch.log.derive import verdicts
from autoresearch.log.derive.beliefs import find_reach
from autoresearch.log.derive.people import is_weighed, weigh
from autoresearch.log.derive.step import Items, Step
from autoresearch.log.derive.steps import STEPS, finish_all
from autoresearch.log.derive.storing import discard, rebuild, store
from autoresearch.log.quota import Stored
from autoresearch.log.tables.tables import Tables
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.words import RunState


class Driver:
    """Keeps what follows from the records of one log. All but :func:`settle` runs in a transaction of the caller."""

    def __init__(self, log: Tables) -> None:
        self._log = log

    def store(self, records: Sequence[Record]) -> tuple[list[Stored], list[Stored]]:
        """Store records, see :func:`.storing.store`."""
        return store(self._log.reader.connection, self._log.network, records)

    def discard(self, over: list[Stored], last: int) -> None:
        """Take out what follows from records that were dropped, see :func:`.storing.discard`."""
        discard(self._log.reader.connection, over, last)

    def rebuild(self) -> None:
        """Make all tables anew from the records."""
        rebuild(self._log.reader.connection)

    def arrive(self, after: int) -> None:
        """Compute what follows from the records after this number by the trust list; what is much is left for later."""
        log, items = self._log, defaultdict[str, list[Any]](list)
        with log.reader.pin():
            for step in STEPS:
                if step.arrive:
                    arrived = step.arrive(log, after)
                    if arrived is None:
                        verdicts.put_off(log.reader.connection, after)
                        return
                    _hand_on(items, arrived)
                for _ in range(step.rounds if step.derive else 0):
                    some = _noted(log, step, step.at_once + 1)
                    if len(some) > step.at_once or (step.is_little and not step.is_little(log, some)):
                        some = []
                        if step.postpone:
                            step.postpone(log, after)
                    items[step.name] += some
                    _derive(log, step, items, math.inf)
                    if not some:
                        break

    def finish(self) -> None:
        """Do what comes last in a transaction."""
        finish_all(self._log.reader.connection)


def _noted(log: Tables, step: Step, limit: int) -> list[object]:
    """What is noted for a step."""
    keys = log.todo.keys(step.name, limit)
    return [step.item(key) for key in keys] if step.item else [*keys]


def _hand_on(items: defaultdict[str, list[Any]], more: Items) -> None:
    for name, some in more.items():
        items[name] += some


def _derive(log: Tables, step: Step, items: defaultdict[str, list[Any]], end: float) -> None:
    """Run a step on what there is for it."""
    if step.derive and (some := items.pop(step.name, None)):
        _hand_on(items, step.derive(log, some, end))


def _piece(log: Tables, step: Step, end: float = math.inf) -> bool:
    """Run a step on some of what is noted for it, and the steps after it on what that hands on. Whether any was."""
    some = _noted(log, step, step.piece)
    items = defaultdict[str, list[Any]](list, {step.name: [*some]})
    for following in STEPS[STEPS.index(step) :]:
        _derive(log, following, items, end)
    return bool(some)


def settle(log: Tables, seconds: float) -> int:
    """Compute what is left, for about so long, and return how much is still left.

    Each transaction is short, since writers wait for it. The caller has nothing else to do with ``log`` meanwhile.
    """
    if not is_weighed(log):
        with log.writer.settling():
            weigh(log)
    end = time.monotonic() + seconds
    for step in STEPS:
        while step.derive and log.todo.keys(step.name, 1):
            with log.writer.settling():
                _piece(log, step, end)
            if time.monotonic() > end:
                return log.todo.count()
    return log.todo.count()


class Belief(NamedTuple):
    """What came of believing a run: whether that changed anything, its state, and how many other runs have another."""

    changed: bool
    state: RunState
    others: int


def believe_run(log: Tables, run: Record, *, believed: bool) -> Belief:
    """Believe the value of a run on this machine, or with ``believed`` false no longer, and compute what follows."""
    body = run.body_as(Run)
    with log.writer.settling():
        before = log.beliefs.disbelieved(body.task)
        changed = log.beliefs.believe(run.id, believed=believed)
        log.beliefs.unsettle_like(body.task, body.source_digest, run.id)
        find_reach(log, body.task)
        while _piece(log, verdicts.VERDICTS):
            pass
        others = (before ^ log.beliefs.disbelieved(body.task)) - {run.id}
    return Belief(changed, log.standings.of([run.id])[run.id].state, len(others))
