"""What each setting did, from pairs of a run and its parent: a table that everybody computes alike.

A pair counts for a gene when it differs in that gene and in few others, so what the others did is noise here and
averages out. Differences are taken in one direction: a patch added, a constant raised. The pairs are kept, and new runs
add theirs. Left out are runs of strangers, and those that verifiers found false.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from autoresearch.judging.statistics import student
from autoresearch.log.log import Log
from autoresearch.log.rows import HistoryRow
from autoresearch.log.standing.bases import is_possible
from autoresearch.log.standing.cache import cached, grown, verified
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.credit import is_heard
from autoresearch.log.standing.precedence import bans
from autoresearch.log.standing.verification import judge_soon, judged, judging
from autoresearch.propose.program.ranges import Value
from autoresearch.propose.search.evidence import PastRun
from autoresearch.record.kinds import Run
from autoresearch.task.model import possible_value
from autoresearch.text import sign_of
from autoresearch.words import DOUBTED

Direction = Literal["minimize", "maximize"]
# A pair that differs in more genes says too little about each.
MOST_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Effect:
    """What adding a patch (``+name``) or raising a constant did to the metric, over pairs."""

    parameter: str
    pairs: int
    better: int
    """Pairs in which it helped."""
    mean: float
    """Mean change of the metric, in its own unit and sign."""
    low: float
    high: float
    """95 % confidence interval of the mean; infinite from one pair alone."""


class Seen(NamedTuple):
    """What raising a gene did in so many pairs: how many it improved and worsened, the mean change of the metric."""

    pairs: int
    better: int
    worse: int
    mean: float


def effects(runs: Collection[PastRun], *, direction: Direction) -> list[Effect]:
    """The effect of each gene that some pair shows, the surest help first. The order of the runs is no matter."""
    by_id = {run.id: run for run in sorted(runs, key=lambda run: (run.id, run.source_digest), reverse=True)}
    found: dict[str, list[float]] = {}
    for _, run in sorted(by_id.items()):
        parent = None if run.parent is None else by_id.get(run.parent)
        for parameter, difference in differences(parent, run) if parent else ():
            found.setdefault(parameter, []).append(difference)
    return ranked(found, direction=direction)


def differences(parent: PastRun, run: PastRun) -> list[tuple[str, float]]:
    """What a pair says of each gene that differs: the change of the metric when it is raised; of many genes nothing."""
    if parent.base != run.base:
        return []
    after, before = possible_value(run.value), possible_value(parent.value)
    changed = _raised(parent, run)
    if after is None or before is None or not 1 <= len(changed) <= MOST_CHANGES:
        return []
    return [(parameter, (after - before) * (1.0 if up else -1.0)) for parameter, up in changed.items()]


def ranked(differences_by_name: Mapping[str, Sequence[float]], *, direction: Direction) -> list[Effect]:
    """The effects that differences make, by gene, the surest help first."""
    sign = sign_of(direction)
    made = [_effect(parameter, values, sign) for parameter, values in differences_by_name.items()]
    return sorted(made, key=lambda effect: (sign * (effect.high if sign > 0 else effect.low), effect.parameter))


def _raised(parent: PastRun, run: PastRun) -> dict[str, bool]:
    """The genes that differ, and whether the child has more of each; names that only one has do not count."""
    changed: dict[str, bool] = {}
    for name, new in run.genome.items():
        if new == (old := parent.genome.get(name)):
            continue
        after_number, there = _number(new), _number(old)
        if after_number is not None and there is not None and after_number != there:
            changed[name] = after_number > there
    return changed


def _number(value: Value | None) -> float | None:
    return float(value) if isinstance(value, int | float) and -1e15 < value < 1e15 else None


def _effect(parameter: str, values: Sequence[float], sign: float) -> Effect:
    count = len(values)
    mean = math.fsum(values) / count
    half = math.inf
    if count > 1:
        variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
        half = student(count - 1) * math.sqrt(variance / count)
    better = sum(sign * value < 0 for value in values)
    return Effect(parameter, count, better, mean, mean - half, mean + half)


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
    """All pairs so far, and the runs whose parent is not here yet, by that.

    ``told`` has those of the first ``taken`` that are believed, while the runs in ``doubted`` are in doubt.
    """

    found: list[_Pair] = field(default_factory=list)
    waiting: defaultdict[bytes, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    told: dict[str, _OfSetting] = field(default_factory=dict)
    taken: int = 0
    doubted: frozenset[bytes] = frozenset()


@dataclass(slots=True)
class _OfSetting:
    """The pairs of one setting by the time of the run, and up to each how many improved, worsened, and their sum."""

    pairs: list[tuple[int, bytes, float]] = field(default_factory=list)
    totals: list[tuple[int, int, float]] = field(default_factory=list)

    def add(self, sign: float, pair: tuple[int, bytes, float]) -> None:
        """One more pair; usually it is the latest."""
        at = bisect_left(self.pairs, pair)
        self.pairs.insert(at, pair)
        del self.totals[at:]
        better, worse, total = self.totals[-1] if self.totals else (0, 0, 0.0)
        for _, _, each in self.pairs[at:]:
            better, worse, total = better + (sign * each < 0), worse + (sign * each > 0), total + each
            self.totals.append((better, worse, total))


@dataclass(frozen=True, slots=True)
class Comparisons:
    """What was compared on a task, by setting."""

    sign: float
    by_setting: Mapping[str, _OfSetting]

    @property
    def effects(self) -> list[Effect]:
        """What each setting did in all pairs, the surest improvement first."""
        in_order = {name: [each for _, _, each in setting.pairs] for name, setting in self.by_setting.items()}
        return ranked(in_order, direction="minimize" if self.sign > 0 else "maximize")

    def before(self, name: str, time_ms: int | None) -> Seen | None:
        """What pairs say of a setting whose run is older than a time; None: of all pairs."""
        setting = self.by_setting.get(name)
        if setting is None:
            return None
        count = len(setting.pairs) if time_ms is None else bisect_left(setting.pairs, (time_ms,))
        if not count:
            return None
        better, worse, total = setting.totals[count - 1]
        return Seen(count, better, worse, total / count)


def comparisons(log: Log, task: bytes, *, me: bytes | None = None) -> Comparisons:
    """What was compared on a task. ``me`` is the device that asks: its own runs count, attested or not."""
    name = f"comparisons {task.hex()} {me.hex() if me else ''}"
    return cached(log, name, lambda: _comparisons(log, task, me), by=_BY)


def _comparisons(log: Log, task: bytes, me: bytes | None) -> Comparisons:
    pairs = grown(log, ("pairs", task, me), lambda found, row: _grown(log, task, me, found or _Pairs(), row))
    sign, doubted = log.tasks.sign(task), _doubted(log, pairs.found)
    if doubted != pairs.doubted:
        pairs.told, pairs.taken, pairs.doubted = {}, 0, doubted
    came = [pair for pair in pairs.found[pairs.taken :] if not {pair.run.id, pair.parent.id} & doubted]
    for pair in sorted(came, key=lambda pair: pair.run.time):
        for name, difference in pair.differences:
            pairs.told.setdefault(name, _OfSetting()).add(sign, (pair.run.time, pair.run.id, difference))
    pairs.taken = len(pairs.found)
    return Comparisons(sign, pairs.told)


def _doubted(log: Log, pairs: list[_Pair]) -> frozenset[bytes]:
    """The runs of these pairs that are in doubt. Where nobody is banned, only what somebody verified can be."""
    if bans(log).by_key:
        runs = {run.id: run for pair in pairs for run in (pair.run, pair.parent)}
        judge_soon(log, runs)
        judge = judging(log)
        return frozenset(run.id for run in runs.values() if judge(*run).state in DOUBTED)
    heard = verified(log)
    judge_soon(log, heard)
    records = (log.records.find(run) for run in heard)
    ran = (record for record in records if record is not None and isinstance(record.body, Run))
    return frozenset(record.id for record in ran if judged(log, record).state in DOUBTED)


def _grown(log: Log, task: bytes, me: bytes | None, pairs: _Pairs, row: int) -> _Pairs:
    """The pairs with those of the runs that came after a record, and of those that waited for these."""
    came = {run.id: run for run in (log.runs.history_after(task, row) if row else log.runs.history(task))}
    late = [child for run in came for child in pairs.waiting.pop(run, ())]
    children = [*came.values(), *log.runs.history_of(late)]
    parents = came | {
        run.id: run for run in log.runs.history_of({c.parent for c in children if c.parent} - came.keys())
    }
    rules, context, possible = log.tasks.rules(task), trust_context(log, me), is_possible(log, task)
    past: dict[bytes, PastRun | None] = {}

    def past_run(run: HistoryRow) -> PastRun | None:
        if run.id not in past:
            is_whole = rules is None or run.budget == rules.budget
            counts = is_whole and not run.forked and run.value is not None and possible(run.value)
            past[run.id] = _past(run) if counts and is_heard(run.author, run.time, context, me) else None
        return past[run.id]

    for child in children:
        if child.parent is None:
            continue
        if child.parent not in parents:
            pairs.waiting[child.parent].append(child.id)
            continue
        after, before = past_run(child), past_run(parents[child.parent])
        if after and before and (changed := differences(before, after)):
            pairs.found.append(_Pair(_signed(child), _signed(parents[child.parent]), tuple(changed)))
    return pairs


def _past(run: HistoryRow) -> PastRun:
    genome = _genome.decode(run.genome)
    return PastRun(run.id, run.source_digest, genome, run.value, run.replicate, run.parent, run.base)


def _signed(run: HistoryRow) -> _Signed:
    return _Signed(run.id, run.author, run.time, run.seq)
