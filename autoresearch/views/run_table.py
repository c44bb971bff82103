"""The runs of a task as columns, kept in memory and extended as records come: what tables and charts are made of.

A question about a hundred thousand runs takes milliseconds so. Like all views it is a function of the set of records:
the order in which they came changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from autoresearch.direction import sign_of
from autoresearch.log import Log, Revision, RunColumns, TaskRules
from autoresearch.verification import Judgement, margin
from autoresearch.views.cache import ABOUT_ALL, Cache, cache_of, roster_of, verified
from autoresearch.views.copies import same_models
from autoresearch.views.hardware import board_hardware
from autoresearch.views.run_columns import NOBODY, Columns, Flags, Floats, Ints
from autoresearch.views.verification_state import UPHELD, judge_soon, judging
from autoresearch.words import RunMark, RunState

STATES = tuple(RunState)
MARKS = tuple(RunMark)
# In these states a reported value leads nothing.
DOUBTED = frozenset({RunState.NOT_REPLICATED, RunState.DISPUTED, RunState.REFUTED, RunState.FRAUD, RunState.BANNED})
_MARK_OF_STATE = np.array([MARKS.index(RunMark(state.value)) for state in STATES])
_REPORTED, _CONFIRMED = STATES.index(RunState.REPORTED), STATES.index(RunState.CONFIRMED)
_DOUBTED = np.array([state in DOUBTED for state in STATES])
_UPHELD = np.array([state in UPHELD for state in STATES])


@dataclass(frozen=True, slots=True)
class RunTable:
    """All runs of a task in order of time, then id. Each column has a value for each run.

    ``columns`` is what the records say. ``value`` is what verifiers measured where they did, else what is reported,
    ``margin`` half of the 95 % interval of that, else NaN. ``gain`` is how much better than its parent verifiers found
    a run, in the metric's sign, else NaN. ``delta`` is that, or the difference of the reported values. ``compared`` are
    runs whose values may be compared: full budget, the board's hardware, no copies, no unverified run after a fork.
    ``mark`` indexes MARKS, ``state`` STATES. ``cost`` is the processor time up to a run in ms. ``before`` is the best
    confirmed value before a run that leads by one, else the best reported one.
    """

    task: bytes
    rules: TaskRules | None
    columns: Columns
    cost: Ints
    value: Floats
    margin: Floats
    gain: Floats
    delta: Floats
    compared: Flags
    state: Ints
    mark: Ints
    leads: Flags
    led_by_claim: Flags
    before: Floats
    children: Ints

    def __len__(self) -> int:
        return len(self.columns.ids)

    @property
    def sign(self) -> float:
        """1 where smaller values are better, -1 where larger ones are."""
        return sign_of(self.rules.direction) if self.rules else 1

    @property
    def noise(self) -> float:
        """The standard deviation of a value over seeds."""
        return self.rules.noise if self.rules else 0.0


# State, value, half an interval, gain; NaN where there is none.
_Verdict = tuple[int, float, float, float]


@dataclass(slots=True)
class _Known:
    """What is kept of a task between questions: its runs, and the verdicts on those that are not just reported."""

    roster: object
    trust: object
    drops: int
    frauds: int
    row: int = 0
    columns: Columns = field(default_factory=Columns)
    verdicts: dict[bytes, _Verdict] = field(default_factory=dict)
    table: RunTable | None = None


_known: WeakKeyDictionary[Log, dict[bytes, _Known]] = WeakKeyDictionary()


def run_table(log: Log, task: bytes) -> RunTable:
    """The runs of a task as they are known now."""
    with log.reader.snapshot() as revision:
        cache = cache_of(log)
        tasks = _known.setdefault(log, {})
        known = tasks.get(task)
        if known is None or _is_over(log, known, cache, revision):
            known = tasks[task] = _Known(cache.roster, cache.trust, revision.drops, len(cache.frauds))
        if known.table is None or known.row < revision.row:
            came = log.runs.columns(task, known.row)
            _judge(log, task, known, came)
            voter = roster_of(log).voter
            known.columns = known.columns.extended(came, lambda device, time_ms: voter(device, time_ms).root)
            known.row = revision.row
            known.table = _build(log, task, known)
        return known.table


def _is_over(log: Log, known: _Known, cache: Cache, revision: Revision) -> bool:
    """Whether records came that may change everything."""
    if known.roster is not cache.roster or known.trust != cache.trust or known.drops != revision.drops:
        return True
    if known.row > revision.row or known.frauds != len(cache.frauds):
        return True
    return known.row < revision.row and bool(log.changes.kinds_after(known.row) & ABOUT_ALL)


def _judge(log: Log, task: bytes, known: _Known, came: Iterable[RunColumns]) -> None:
    """Judge the runs that came, and those of which verifiers say something else now."""
    heard, judge, rules = verified(log), judging(log), log.tasks.rules(task)
    runs, index = list(came), known.columns.index
    if known.row:
        said = log.changes.said_after(known.row)
        again = {index[run] for run in (*said.runs, *said.parents, *said.children) if run in index}
        runs += [known.columns.runs[at] for at in again]
    judge_soon(log, [run.id for run in runs if run.id in heard])
    for run in runs:
        found = judge(run.id, run.author, run.time, run.seq)
        if run.id in heard or found.state is not RunState.REPORTED:
            known.verdicts[run.id] = _verdict(found, rules)


def _verdict(found: Judgement, rules: TaskRules | None) -> _Verdict:
    half = margin(found.error, found.runs, noise=rules.noise if rules else 0.0) if found.value is not None else None
    sign = sign_of(rules.direction) if rules else 1
    return (
        STATES.index(found.state),
        np.nan if found.value is None else found.value,
        np.nan if half is None else half,
        np.nan if found.improvement is None else -sign * found.improvement,
    )


def _build(log: Log, task: bytes, known: _Known) -> RunTable:
    columns, rules = known.columns, log.tasks.rules(task)
    reported, parent, size = columns.reported, columns.parent, len(columns.ids)
    places = np.fromiter((columns.index[run] for run in known.verdicts), np.int64, len(known.verdicts))
    verdicts = np.array(list(known.verdicts.values()), float).reshape(-1, 4)
    state = np.full(size, _REPORTED)
    state[places] = verdicts[:, 0].astype(np.int64)
    value, error, gain = reported.copy(), np.full(size, np.nan), np.full(size, np.nan)
    value[places] = np.where(np.isnan(verdicts[:, 1]), reported[places], verdicts[:, 1])
    error[places], gain[places] = verdicts[:, 2], verdicts[:, 3]
    has_parent = parent != NOBODY
    above = np.where(has_parent, reported[parent], np.nan) if size else reported
    compared = _compared(log, task, rules, columns, state)
    leads, led_by_claim, before = _leads(sign_of(rules.direction) if rules else 1, reported, value, state, compared)
    mark = np.where((state == _REPORTED) & led_by_claim, MARKS.index(RunMark.LEADING), _MARK_OF_STATE[state])
    return RunTable(
        task=task,
        rules=rules,
        columns=columns,
        cost=np.cumsum(columns.cpu),
        value=value,
        margin=error,
        gain=gain,
        delta=np.where(np.isnan(gain), reported - above, gain),
        compared=compared,
        state=state,
        mark=np.where(columns.failed == 1, MARKS.index(RunMark.FAILED), mark),
        leads=leads,
        led_by_claim=led_by_claim,
        before=before,
        children=np.bincount(parent[has_parent], minlength=size).astype(np.int64),
    )


def _compared(log: Log, task: bytes, rules: TaskRules | None, columns: Columns, state: Ints) -> Flags:
    """Which runs' values are compared with each other; none where the task's rules are not here."""
    there = ~np.isnan(columns.reported)
    if rules is None or not there.any():
        return np.zeros(len(there), bool)
    there &= columns.budget == rules.budget
    hardware = board_hardware(log, task)
    if hardware is not None:
        there &= columns.device == columns.devices.get(hardware, NOBODY)
    there[[columns.index[run] for run in same_models(log) if run in columns.index]] = False
    for author, after in log.runs.suspects().items():
        if author in columns.authors:
            doubted = (columns.author == columns.authors[author]) & (columns.seq >= after)
            there &= ~doubted | _UPHELD[state]
    return there


def _leads(sign: float, reported: Floats, value: Floats, state: Ints, compared: Flags) -> tuple[Flags, Flags, Floats]:
    """Which runs had the best confirmed value, and the best reported one, of those up to them; and the best before.

    The best before a run is the confirmed value where the run leads by one, else the reported value.
    """
    claimed = np.where(compared & ~_DOUBTED[state], sign * reported, np.inf)
    sure = np.where(compared & (state == _CONFIRMED), sign * value, np.inf)
    before_claim, before_sure = _best_before(claimed), _best_before(sure)
    led_by_claim, leads = claimed < before_claim, sure < before_sure
    before = sign * np.where(leads, before_sure, before_claim)
    return leads, led_by_claim, np.where(np.isinf(before), np.nan, before)


def _best_before(values: Floats) -> Floats:
    """The smallest of the values before each one; infinite for the first."""
    return np.concatenate([[np.inf], np.minimum.accumulate(values)[:-1]]) if len(values) else values
