"""The runs of a task as columns, kept in memory and extended as records come: what tables and charts are made of.

A question about a hundred thousand runs takes milliseconds so. Like all views it is a function of the set of records:
the order in which they came changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from autoresearch.direction import sign_of
from autoresearch.log import Log, Revision, RunColumns, TaskRules
from autoresearch.verification import Judgement, margin
from autoresearch.views.cache import ABOUT_ALL, Cache, cache_of, verified
from autoresearch.views.copies import same_models
from autoresearch.views.hardware import board_hardware
from autoresearch.views.verification_state import UPHELD, judge_soon, judging
from autoresearch.words import RunMark, RunState, RunStatus

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
STATES = tuple(RunState)
MARKS = tuple(RunMark)
# In these states a reported value leads nothing.
DOUBTED = frozenset({RunState.NOT_REPLICATED, RunState.DISPUTED, RunState.REFUTED, RunState.FRAUD, RunState.BANNED})
_MARK_OF_STATE = np.array([MARKS.index(RunMark(state.value)) for state in STATES])
_REPORTED, _CONFIRMED = STATES.index(RunState.REPORTED), STATES.index(RunState.CONFIRMED)
_DOUBTED = np.array([state in DOUBTED for state in STATES])
_NOBODY = -1


@dataclass(frozen=True, slots=True)
class RunTable:
    """All runs of a task in order of time, then id. Each column has a value for each run.

    ``reported`` is NaN where a run has no value; ``value`` is what verifiers measured where they did, ``margin`` half
    of the 95 % interval of that, else NaN. ``gain`` is how much better than its parent verifiers found it, in the
    metric's sign, else NaN. ``delta`` is that, or the difference of the reported values. ``compared`` are runs whose
    values may be compared: full budget, the board's hardware, no copies, no unverified run after a fork. ``mark``
    indexes MARKS, ``state`` STATES, ``parent`` this table (-1: not here). ``cost`` is the processor time up to a run in
    ms. ``step_before`` is the best confirmed value before a run, else the best reported one.
    """

    task: bytes
    rules: TaskRules | None
    ids: list[bytes]
    authors: list[bytes]
    devices: list[str]
    statuses: list[str]
    digests: list[bytes]
    index: dict[bytes, int]
    n: Ints
    time: Ints
    cpu: Ints
    cost: Ints
    parent: Ints
    reported: Floats
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
        return len(self.ids)

    @property
    def sign(self) -> float:
        """1 where smaller values are better, -1 where larger ones are."""
        return sign_of(self.rules.direction) if self.rules else 1

    @property
    def noise(self) -> float:
        """The standard deviation of a value over seeds."""
        return self.rules.noise if self.rules else 0.0


@dataclass(slots=True)
class _Known:
    """What is kept of a task between questions: its runs as they came, and how verifiers judge those they measured."""

    roster: object
    trust: object
    drops: int
    frauds: int
    row: int = 0
    runs: list[RunColumns] = field(default_factory=list)
    judged: dict[bytes, Judgement] = field(default_factory=dict)
    states: dict[bytes, RunState] = field(default_factory=dict)  # of other runs, where they are not just reported
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
            _judge(log, known, came)
            known.runs += came
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


def _judge(log: Log, known: _Known, came: Iterable[RunColumns]) -> None:
    """Judge the runs that came, and those of which verifiers say something else now."""
    heard, judge = verified(log), judging(log)
    said = log.changes.said_after(known.row) if known.row else None
    changed: Collection[bytes] = said.runs | said.parents | said.children if said else ()
    judge_soon(log, [run.id for run in came if run.id in heard])
    again = [run for run in known.runs if run.id in changed] if changed else []
    for run in (*again, *came):
        found = judge(run.id, run.author, run.time, run.seq)
        if run.id in heard:
            known.judged[run.id] = found
        elif found.state is not RunState.REPORTED:
            known.states[run.id] = found.state


def _build(log: Log, task: bytes, known: _Known) -> RunTable:
    runs = sorted(known.runs, key=lambda run: (run.time, run.id))
    rules, size = log.tasks.rules(task), len(runs)
    index = {run.id: at for at, run in enumerate(runs)}
    reported = np.array(
        [np.nan if run.value is None or run.status != RunStatus.OK else run.value for run in runs], float
    )
    state = np.full(size, _REPORTED)
    value, error, gain = reported.copy(), np.full(size, np.nan), np.full(size, np.nan)
    sign = sign_of(rules.direction) if rules else 1
    for run, found in known.judged.items():
        at = index[run]
        state[at] = STATES.index(found.state)
        if found.value is not None:
            value[at] = found.value
            half = margin(found.error, found.runs, noise=rules.noise if rules else 0.0)
            error[at] = np.nan if half is None else half
        if found.improvement is not None:
            gain[at] = -sign * found.improvement
    for run, other in known.states.items():
        state[index[run]] = STATES.index(other)
    parent = np.array([index.get(run.parent, _NOBODY) if run.parent else _NOBODY for run in runs], np.int64)
    has_parent = parent >= 0
    above = np.where(has_parent, reported[parent], np.nan) if size else reported
    cpu = np.array([run.cpu_ms for run in runs], np.int64)
    compared = _compared(log, task, rules, runs, known) & ~np.isnan(reported)
    leads, led_by_claim, before = _leads(sign, reported, value, state, compared)
    failed = np.array([run.status != RunStatus.OK for run in runs], bool)
    mark = _MARK_OF_STATE[state] if size else state
    mark = np.where((state == _REPORTED) & led_by_claim, MARKS.index(RunMark.LEADING), mark)
    mark = np.where(failed, MARKS.index(RunMark.FAILED), mark)
    return RunTable(
        task=task,
        rules=rules,
        ids=[run.id for run in runs],
        authors=[run.author for run in runs],
        devices=[run.device for run in runs],
        statuses=[run.status for run in runs],
        digests=[run.source_digest for run in runs],
        index=index,
        n=np.array([run.n for run in runs], np.int64),
        time=np.array([run.time for run in runs], np.int64),
        cpu=cpu,
        cost=np.cumsum(cpu),
        parent=parent,
        reported=reported,
        value=value,
        margin=error,
        gain=gain,
        delta=np.where(np.isnan(gain), reported - above, gain),
        compared=compared,
        state=state,
        mark=mark,
        leads=leads,
        led_by_claim=led_by_claim,
        before=before,
        children=np.bincount(parent[has_parent], minlength=size).astype(np.int64),
    )


def _value(run: RunColumns) -> float:
    return run.value if run.value is not None and run.status == RunStatus.OK else math.nan


def _compared(log: Log, task: bytes, rules: TaskRules | None, runs: list[RunColumns], known: _Known) -> Flags:
    """Which runs' values are compared with each other."""
    copies, hardware, suspects = same_models(log), board_hardware(log, task), log.runs.suspects()
    budget = rules.budget if rules else None

    def is_compared(run: RunColumns) -> bool:
        if run.budget != budget or run.id in copies or hardware not in (None, run.device):
            return False
        after = suspects.get(run.author)
        return after is None or run.seq < after or (run.id in known.judged and known.judged[run.id].state in UPHELD)

    return np.array([is_compared(run) for run in runs], bool)


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
