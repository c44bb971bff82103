"""Comparisons: what each setting did in pairs of a run and its parent, by all runs on a task.

The pairs are kept, and new runs add theirs. Left out are runs of strangers, and those that verifiers found false.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from autoresearch.log import HistoryRow, Log
from autoresearch.proposers import Effect, PastRun, Seen, Value, differences, ranked
from autoresearch.views.base_selection import DOUBTED, is_possible
from autoresearch.views.cache import cached, grown
from autoresearch.views.citations import is_heard
from autoresearch.views.trust_context import trust_context
from autoresearch.views.verification_state import judge_soon, judging

# What may say something else of runs, besides what changes everything.
_BY = ("run", "verification", "commitment")
_genome = msgspec.json.Decoder(dict[str, Value])


class _Signed(NamedTuple):
    id: bytes
    author: bytes
    time: int
    seq: int


class _Pair(NamedTuple):
    run: _Signed
    parent: _Signed
    differences: tuple[tuple[str, float], ...]


@dataclass(slots=True)
class _Pairs:
    """All pairs so far, and the runs whose parent is not here yet, by that."""

    found: list[_Pair] = field(default_factory=list)
    waiting: defaultdict[bytes, list[bytes]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True, slots=True)
class Comparisons:
    """What was compared on a task. ``effects`` are of all pairs, the surest improvement first."""

    effects: list[Effect]
    times: dict[str, list[int]]
    """When the runs of the pairs were published, by setting, in order."""
    totals: dict[str, list[tuple[int, int, float]]]
    """Up to each of these pairs: how many improved, how many worsened, the sum of the differences."""

    def before(self, name: str, time_ms: int | None) -> Seen | None:
        """What pairs say of a setting whose run is older than a time; None: of all pairs."""
        times = self.times.get(name, [])
        count = len(times) if time_ms is None else bisect_left(times, time_ms)
        if not count:
            return None
        better, worse, total = self.totals[name][count - 1]
        return Seen(count, better, worse, total / count)


def comparisons(log: Log, task: bytes, *, me: bytes | None = None) -> Comparisons:
    """What was compared on a task. ``me`` is the device that asks: its own runs count, attested or not."""
    name = f"comparisons {task.hex()} {me.hex() if me else ''}"
    return cached(log, name, lambda: _comparisons(log, task, me), by=_BY)


def _comparisons(log: Log, task: bytes, me: bytes | None) -> Comparisons:
    pairs = grown(log, ("pairs", task, me), lambda found, row: _grown(log, task, me, found or _Pairs(), row))
    sign, by_name = log.tasks.sign(task), defaultdict[str, list[tuple[int, bytes, float]]](list)
    for pair in _believed(log, pairs.found):
        for name, difference in pair.differences:
            by_name[name].append((pair.run.time, pair.run.id, difference))
    for found in by_name.values():
        found.sort()
    in_order = {name: [difference for _, _, difference in found] for name, found in by_name.items()}
    return Comparisons(
        effects=ranked(in_order, direction="minimize" if sign > 0 else "maximize"),
        times={name: [time_ms for time_ms, _, _ in found] for name, found in by_name.items()},
        totals={name: list(_totals(found, sign)) for name, found in in_order.items()},
    )


def _totals(differences: Iterable[float], sign: float) -> Iterator[tuple[int, int, float]]:
    better, worse, total = 0, 0, 0.0
    for each in differences:
        better, worse, total = better + (sign * each < 0), worse + (sign * each > 0), total + each
        yield better, worse, total


def _believed(log: Log, pairs: list[_Pair]) -> Iterator[_Pair]:
    """The pairs of which neither run is in doubt."""
    judge_soon(log, (run for pair in pairs for run in (pair.run.id, pair.parent.id)))
    judged, doubted = judging(log), dict[bytes, bool]()
    for pair in pairs:
        for run in (pair.run, pair.parent):
            if run.id not in doubted:
                doubted[run.id] = judged(*run).state in DOUBTED
        if not (doubted[pair.run.id] or doubted[pair.parent.id]):
            yield pair


def _grown(log: Log, task: bytes, me: bytes | None, pairs: _Pairs, row: int) -> _Pairs:
    """The pairs with those of the runs that came after a record, and of those that waited for these."""
    came = {run.id: run for run in (log.runs.history_after(task, row) if row else log.runs.history(task))}
    late = [child for run in came for child in pairs.waiting.pop(run, ())]
    children = [*came.values(), *log.runs.history_of(late)]
    parents = came | {
        run.id: run for run in log.runs.history_of({c.parent for c in children if c.parent} - came.keys())
    }
    rules, here, possible = log.tasks.rules(task), trust_context(log, me), is_possible(log, task)
    past: dict[bytes, PastRun | None] = {}

    def past_run(run: HistoryRow) -> PastRun | None:
        if run.id not in past:
            is_whole = rules is None or run.budget == rules.budget
            counts = is_whole and not run.forked and run.value is not None and possible(run.value)
            past[run.id] = _past(run) if counts and is_heard(run.author, run.time, here, me) else None
        return past[run.id]

    for child in children:
        if child.parent is None:
            continue
        if child.parent not in parents:
            pairs.waiting[child.parent].append(child.id)
            continue
        after, before = past_run(child), past_run(parents[child.parent])
        if after and before and (found := differences(before, after)):
            pairs.found.append(_Pair(_signed(child), _signed(parents[child.parent]), tuple(found)))
    return pairs


def _past(run: HistoryRow) -> PastRun:
    genome = _genome.decode(run.genome)
    return PastRun(run.id, run.source_digest, genome, run.value, run.replicate, run.parent, run.base)


def _signed(run: HistoryRow) -> _Signed:
    return _Signed(run.id, run.author, run.time, run.seq)
