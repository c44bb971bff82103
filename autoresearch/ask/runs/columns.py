"""The runs of a task as columns, kept in memory and extended as records come: tables and charts are made of them.

A question about a hundred thousand runs takes milliseconds so. Also which runs changed which setting: their genome
differs from their parent's there. Like all views it is a function of the set of records, whatever the order in which
they came.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoresearch.judging.scoring import TaskRules
from autoresearch.judging.states import Judgement
from autoresearch.judging.statistics import margin
from autoresearch.log.log import Log
from autoresearch.log.rows import HistoryRow, RunColumns
from autoresearch.log.standing.cache import grown, verified
from autoresearch.log.standing.context import TrustContext, board_hardware, trust_context, whose
from autoresearch.log.standing.precedence import same_models
from autoresearch.log.standing.verification import judge_soon, judging
from autoresearch.propose.program.ranges import Value
from autoresearch.text import sign_of
from autoresearch.words import SOUND, UPHELD, RunMark, RunState, RunStatus

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
STATES = tuple(RunState)
MARKS = tuple(RunMark)
_MARK_OF_STATE = np.array([MARKS.index(RunMark(state.value)) for state in STATES])
_REPORTED, _CONFIRMED = STATES.index(RunState.REPORTED), STATES.index(RunState.CONFIRMED)
_SOUND = np.array([state in SOUND for state in STATES])
_NOBODY = -1


@dataclass(frozen=True, slots=True)
class RunTable:
    """All runs of a task in order of time, then id. Each column has a value for each run.

    ``reported`` is NaN where a run has no value; ``verified`` is what verifiers measured, else NaN, ``margin`` half of
    the 95 % interval of that, ``value`` the verified value or else the reported one. ``gain`` is how much better than
    its parent verifiers found it, in the metric's sign, else NaN. ``delta`` is that, or the difference of the reported
    values. ``compared`` are runs whose values may be compared: full budget, the board's hardware, no copies, no
    unverified run after a fork. ``mark`` indexes MARKS, ``state`` STATES, ``parent`` this table (-1: not here).
    ``cost`` is the processor time up to a run in ms. ``step_before`` is the best confirmed value before a run, else the
    best reported one.
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
    verified: Floats
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
    """What is kept of a task between questions: its runs in order, and how verifiers judge those they measured.

    ``states`` are those of other runs that are not just reported. ``waiting`` are runs whose parent is not here, by it.
    """

    runs: list[RunColumns] = field(default_factory=list)
    judged: dict[bytes, Judgement] = field(default_factory=dict)
    states: dict[bytes, RunState] = field(default_factory=dict)
    columns: _Columns | None = None
    table: RunTable | None = None


@dataclass(slots=True)
class _Columns:
    """What records say of the runs, in order, as it stays until a run comes with an earlier time."""

    ids: list[bytes]
    authors: list[bytes]
    devices: list[str]
    statuses: list[str]
    digests: list[bytes]
    index: dict[bytes, int]
    n: Ints
    time: Ints
    cpu: Ints
    seq: Ints
    budget: Floats
    reported: Floats
    failed: Flags
    vouched: Flags
    parent: Ints
    waiting: dict[bytes, list[int]]


def run_table(log: Log, task: bytes) -> RunTable:
    """The runs of a task as they are known now."""
    known = grown(log, ("run table", task), lambda found, row: _grown(log, task, found or _Known(), row))
    assert known.table is not None
    return known.table


def _grown(log: Log, task: bytes, known: _Known, row: int) -> _Known:
    """What is known with the runs that came after a record, and with what verifiers say since then."""
    came = sorted(log.runs.columns(task, row), key=_order)
    here = trust_context(log)
    _judge(log, known, came, row)
    if known.columns is None or (came and known.runs and _order(came[0]) < _order(known.runs[-1])):
        known.runs = sorted([*known.runs, *came], key=_order)
        known.columns = _extended(None, known.runs, here)
    else:
        known.runs += came
        known.columns = _extended(known.columns, came, here)
    known.table = _table(log, task, known, known.columns)
    return known


def _order(run: RunColumns) -> tuple[int, bytes]:
    return run.time, run.id


def _judge(log: Log, known: _Known, came: Collection[RunColumns], row: int) -> None:
    """Judge the runs that came, and those of which verifiers say something else now."""
    heard, judge = verified(log), judging(log)
    said = log.changes.said_after(row) if row else None
    changed: Collection[bytes] = said.runs | said.parents | said.children if said else ()
    index = known.columns.index if known.columns else {}
    again = [known.runs[index[run]] for run in changed if run in index]
    judge_soon(log, [run.id for run in (*again, *came) if run.id in heard])
    for run in (*again, *came):
        found = judge(run.id, run.author, run.time, run.seq)
        if run.id in heard:
            known.judged[run.id] = found
        elif found.state is not RunState.REPORTED:
            known.states[run.id] = found.state


def _no_columns() -> _Columns:
    ints, floats = np.empty(0, np.int64), np.empty(0, np.float64)
    flags = np.empty(0, np.bool_)
    return _Columns([], [], [], [], [], {}, ints, ints, ints, ints, floats, floats, flags, flags, ints, {})


def _extended(before: _Columns | None, came: Sequence[RunColumns], here: TrustContext) -> _Columns:
    """Columns with further runs, all of which are later. Lists are copied: a table that is in use stays as it is."""
    old = before or _no_columns()
    start = len(old.ids)
    index, waiting = old.index, old.waiting
    index |= {run.id: start + at for at, run in enumerate(came)}
    parent = np.concatenate([old.parent, np.full(len(came), _NOBODY, np.int64)])
    for at, run in enumerate(came, start):
        for child in waiting.pop(run.id, ()):
            parent[child] = at
        if run.parent is None:
            continue
        parent[at] = index.get(run.parent, _NOBODY)
        if parent[at] == _NOBODY:
            waiting.setdefault(run.parent, []).append(at)

    def longer(column: NDArray[Any], values: Iterable[float]) -> NDArray[Any]:
        return np.concatenate([column, np.fromiter(values, column.dtype, len(came))])

    return _Columns(
        ids=[*old.ids, *(run.id for run in came)],
        authors=[*old.authors, *(run.author for run in came)],
        devices=[*old.devices, *(run.device for run in came)],
        statuses=[*old.statuses, *(run.status for run in came)],
        digests=[*old.digests, *(run.source_digest for run in came)],
        index=index,
        n=longer(old.n, (run.n for run in came)),
        time=longer(old.time, (run.time for run in came)),
        cpu=longer(old.cpu, (run.cpu_ms for run in came)),
        seq=longer(old.seq, (run.seq for run in came)),
        budget=longer(old.budget, (run.budget for run in came)),
        reported=longer(old.reported, map(_value, came)),
        failed=longer(old.failed, (run.status != RunStatus.OK for run in came)),
        vouched=longer(old.vouched, (whose(run.author, run.time, here).attested for run in came)),
        parent=parent,
        waiting=waiting,
    )


def _table(log: Log, task: bytes, known: _Known, columns: _Columns) -> RunTable:
    rules, size, index = log.tasks.rules(task), len(columns.ids), columns.index
    noise, sign = (rules.noise, sign_of(rules.direction)) if rules else (0.0, 1)
    state = np.full(size, _REPORTED)
    verified, error, gain = np.full(size, np.nan), np.full(size, np.nan), np.full(size, np.nan)
    for run, found in known.judged.items():
        at = index[run]
        state[at] = STATES.index(found.state)
        if found.value is not None:
            verified[at] = found.value
            half = margin(found.error, found.runs, noise=noise)
            error[at] = np.nan if half is None else half
        if found.improvement is not None:
            gain[at] = -sign * found.improvement
    value = np.where(np.isnan(verified), columns.reported, verified)
    for run, other in known.states.items():
        state[index[run]] = STATES.index(other)
    parent, has_parent = columns.parent, columns.parent >= 0
    above = np.where(has_parent, columns.reported[parent], np.nan) if size else columns.reported
    compared = _compared(log, task, rules, columns, known)
    leads, led_by_claim, before = _leads(sign, columns.reported, value, state, compared, columns.vouched)
    mark = np.where((state == _REPORTED) & led_by_claim, MARKS.index(RunMark.LEADING), _MARK_OF_STATE[state])
    return RunTable(
        task=task,
        rules=rules,
        ids=columns.ids,
        authors=columns.authors,
        devices=columns.devices,
        statuses=columns.statuses,
        digests=columns.digests,
        index=index,
        n=columns.n,
        time=columns.time,
        cpu=columns.cpu,
        cost=np.cumsum(columns.cpu),
        parent=parent,
        reported=columns.reported,
        verified=verified,
        value=value,
        margin=error,
        gain=gain,
        delta=np.where(np.isnan(gain), columns.reported - above, gain),
        compared=compared,
        state=state,
        mark=np.where(columns.failed, MARKS.index(RunMark.FAILED), mark),
        leads=leads,
        led_by_claim=led_by_claim,
        before=before,
        children=np.bincount(parent[has_parent], minlength=size).astype(np.int64),
    )


def _value(run: RunColumns) -> float:
    return run.value if run.value is not None and run.status == RunStatus.OK else math.nan


def _compared(log: Log, task: bytes, rules: TaskRules | None, columns: _Columns, known: _Known) -> Flags:
    """Which runs' values are compared with each other."""
    kept: Flags = ~np.isnan(columns.reported) & _is_ranked(rules, columns.budget)
    hardware = board_hardware(log, task)
    if hardware is not None:
        kept &= np.array([device == hardware for device in columns.devices], bool)
    for run in same_models(log):
        if (at := columns.index.get(run)) is not None:
            kept[at] = False
    for author, seq in log.runs.suspects().items():
        for at in [at for at, one in enumerate(columns.authors) if one == author and columns.seq[at] >= seq]:
            found = known.judged.get(columns.ids[at])
            kept[at] &= found is not None and found.state in UPHELD
    return kept


def _is_ranked(rules: TaskRules | None, budgets: Floats) -> Flags:
    if rules is None:
        return np.zeros(len(budgets), bool)
    return np.full(len(budgets), fill_value=True) if rules.any_budget else budgets == rules.budget


def _leads(
    sign: float, reported: Floats, value: Floats, state: Ints, compared: Flags, vouched: Flags
) -> tuple[Flags, Flags, Floats]:
    """Which runs had the best confirmed value, and the best reported one, of those up to them; and the best before.

    Where trust names anybody, what the others report leads nothing. The best before a run is the confirmed value where
    the run leads by one, else the reported value.
    """
    claimed = np.where(compared & vouched & _SOUND[state], sign * reported, np.inf)
    sure = np.where(compared & (state == _CONFIRMED), sign * value, np.inf)
    before_claim, before_sure = _best_before(claimed), _best_before(sure)
    led_by_claim, leads = claimed < before_claim, sure < before_sure
    before = sign * np.where(leads, before_sure, before_claim)
    return leads, led_by_claim, np.where(np.isinf(before), np.nan, before)


def _best_before(values: Floats) -> Floats:
    """The smallest of the values before each one; infinite for the first."""
    return np.concatenate([[np.inf], np.minimum.accumulate(values)[:-1]]) if len(values) else values


_genome = msgspec.json.Decoder(dict[str, Value])


@dataclass(slots=True)
class _Changes:
    """The runs by what they changed, and the runs whose parent is not here yet, by that."""

    runs: defaultdict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    waiting: defaultdict[bytes, list[bytes]] = field(default_factory=lambda: defaultdict(list))


def runs_that_change(
    log: Log, task: bytes, setting: str, *, baseline: bytes | None, default: Mapping[str, Value]
) -> frozenset[bytes]:
    """The runs of a task that differ from their parent in a setting, or in a part with or without its plus sign.

    A run without a genome changes nothing, unless its program is the ``baseline``: that has the ``default`` one.
    """
    runs = _changes(log, task, baseline, default).runs
    return frozenset(runs.get(setting, set()) | runs.get(f"+{setting}", set()))


def changed_settings(log: Log, task: bytes, *, baseline: bytes | None, default: Mapping[str, Value]) -> list[str]:
    """The settings and parts that runs of a task changed, by name."""
    return sorted(name for name, runs in _changes(log, task, baseline, default).runs.items() if runs)


def _changes(log: Log, task: bytes, baseline: bytes | None, default: Mapping[str, Value]) -> _Changes:
    def genome(run: HistoryRow) -> Mapping[str, Value]:
        return _genome.decode(run.genome) or (default if run.source_digest == baseline else {})

    name = "changed settings", task, bool(default)
    return grown(log, name, lambda known, row: _changes_since(log, task, known or _Changes(), row, genome))


def _changes_since(
    log: Log, task: bytes, known: _Changes, row: int, genome: Callable[[HistoryRow], Mapping[str, Value]]
) -> _Changes:
    came = log.runs.history_after(task, row) if row else log.runs.history(task)
    here = {run.id: run for run in came}
    children = [*came, *log.runs.history_of([child for run in here for child in known.waiting.pop(run, ())])]
    missing = {run.parent for run in children if run.parent} - here.keys()
    parents = here | {run.id: run for run in log.runs.history_of(missing)}
    genomes: dict[bytes, Mapping[str, Value]] = {}
    for run in children:
        if run.parent is None:
            continue
        if (above := parents.get(run.parent)) is None:
            known.waiting[run.parent].append(run.id)
            continue
        for one in (above, run):
            if one.id not in genomes:
                genomes[one.id] = genome(one)
        old, new = genomes[above.id], genomes[run.id]
        if not old or not new or above.base != run.base:
            continue
        for setting in old.keys() | new.keys():
            if old.get(setting) != new.get(setting):
                known.runs[setting].add(run.id)
    return known
