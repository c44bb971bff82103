"""Ranks programs by reported values, the best first.

Where trust names nobody, all participants are equal: a program has the mean of all its runs. Elsewhere it has the mean
of the runs of one device: of the attested participant that published it first. A repetition by another participant does
not count. No committee verifies that other run, so a false value in it would cost its author nothing. After an unmerged
fork of a device's log its runs count once others verified them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice

from autoresearch.judging.scoring import CountedRun, TaskRules, pool, rank
from autoresearch.log.log import Log
from autoresearch.log.rows import Bound, EntryRow, MeasuredRow, ProgramRow
from autoresearch.log.standing.cache import cache_of, kept, roster_of
from autoresearch.log.standing.context import TrustContext, Whose, comparing, whose
from autoresearch.log.standing.precedence import first_of
from autoresearch.log.standing.verification import is_upheld
from autoresearch.log.tables.entries import FirstEntries

# So many rows are read where all participants are equal.
BOARD_ROWS = 2000
# Most who ask want the first few.
_FIRST_PAGE, _PAGE = 100, 500

Counts = Callable[[CountedRun, Whose], bool]


def walk(log: Log, task: bytes) -> Iterator[ProgramRow]:
    """The programs of a task by the reports of all participants, the best first, up to a bound."""
    start, size, is_comparable = 0, _FIRST_PAGE, comparing(log, task)
    while start < BOARD_ROWS:
        page = log.programs.ranked(task, limit=min(size, BOARD_ROWS - start), skip=start)
        yield from filter(is_comparable, page)
        if len(page) < size:
            return
        start, size = start + size, _PAGE


def vouched(
    log: Log, task: bytes, here: TrustContext, *, own: bool = False, forked: bool = False
) -> Iterator[ProgramRow]:
    """The programs of a task by the reports of attested participants; with ``own`` also by this participant's.

    With ``forked`` also by unverified runs after a fork. Records of other participants change none of them and take no
    time.
    """
    if not here.naming:
        return walk(log, task)
    rules, is_comparable = log.tasks.rules(task), comparing(log, task)
    entries = entries_of(log, task, here.roster.keys | here.mine if own else here.roster.keys)
    attested = _is_attested if forked else _counting(log, _is_attested)
    sides = [_Side(log, here, attested, here.roster.keys, ("attested", forked))]
    if own:
        sides.append(_Side(log, here, _counting(log, _is_own), here.mine, ("own", here.me)))
    rows = ((entry.bound, _standing(entry, here, rules, sides)) for entry in entries)
    return filter(is_comparable, _in_order(rows))


def unvouched(log: Log, task: bytes, here: TrustContext, *, up_to: float | None = None) -> Iterator[ProgramRow]:
    """The programs of a task that no attested participant published, by all reports, up to a rank."""
    if not here.naming:
        return
    rows = walk(log, task)
    while page := list(islice(rows, _FIRST_PAGE)):
        others = [row for row in page if not whose(row.author, row.first_time, here).attested]
        log.entries.read_entrants_ahead([(task, row.source_digest, row.budget) for row in others], here.roster.keys)
        for row in page:
            if up_to is not None and row.rank is not None and row.rank > up_to:
                return
            if row in others and vouched_program(log, (task, row.source_digest, row.budget), here) is None:
                yield row


def vouched_program(log: Log, program: tuple[bytes, bytes, float], here: TrustContext) -> ProgramRow | None:
    """A program by the runs of the attested participant that published it first, or None."""
    devices = log.entries.entrants(*program, here.roster.keys)
    counts = _counting(log, _is_attested)
    return _row(program, _first_runs(log, program, here, counts, devices), log.tasks.rules(program[0]))


def program_as_reported(log: Log, program: tuple[bytes, bytes, float], here: TrustContext) -> ProgramRow | None:
    """A program by the reports of attested participants, else by all reports; None when no run of it counts."""
    return (vouched_program(log, program, here) if here.naming else None) or log.programs.find(*program)


def best_of(log: Log, task: bytes, device: bytes, here: TrustContext) -> ProgramRow | None:
    """The best program of a task that a device published first; where trust names anybody, by its own reports."""
    if not here.naming:
        return next((row for row in walk(log, task) if row.author == device), None)
    rules, counts = log.tasks.rules(task), _counting(log, _is_anyone)
    said = (
        (entry, [run for run in entry.runs if counts(run, whose(device, run.time, here))])
        for entry in log.entries.by_bound(task, [device], FirstEntries())
    )
    rows = ((entry.bound, _row(entry[:3], runs, rules)) for entry, runs in said)
    return next(filter(comparing(log, task), _in_order(rows)), None)


def measured(log: Log, task: bytes, here: TrustContext, *, authors: int) -> Iterator[ProgramRow]:
    """The runs of attested participants, and of this one, that ``authors`` devices measured, each as a program.

    A measured run need not be the first of its program: a run under an earlier time takes nothing away from it. A
    program that was measured in several runs appears once for each.
    """
    rules, keys, is_now = log.tasks.rules(task), here.roster.keys | here.mine, here.roster is roster_of(log)

    def as_program(row: MeasuredRow) -> ProgramRow | None:
        if not is_now:
            return _measured(log, row, here, rules)[0]
        return kept(log, _name(row, here), lambda: _measured(log, row, here, rules))

    found = _entries_ahead(
        log, (row for row in log.entries.measured(task, authors=authors) if row.author in keys), here
    )
    return filter(comparing(log, task), _in_order((row.bound, as_program(row)) for row in found))


def entries_of(log: Log, task: bytes, devices: Collection[bytes]) -> Iterator[EntryRow]:
    """The entries of devices by their bounds, each device's first ones kept between questions."""
    return log.entries.by_bound(task, devices, cache_of(log).first_entries.setdefault(task, FirstEntries()))


def _entries_ahead(log: Log, rows: Iterable[MeasuredRow], here: TrustContext) -> Iterator[MeasuredRow]:
    """The same rows, with the runs of their entries read some at a time where they are not known."""
    following, known = iter(rows), cache_of(log).kept
    while page := list(islice(following, _FIRST_PAGE)):
        wanted = [row for row in page if _name(row, here) not in known]
        log.entries.read_entries_ahead([(row.task, row.source_digest, row.budget, row.author) for row in wanted])
        yield from page


def _name(row: MeasuredRow, here: TrustContext) -> tuple[object, ...]:
    return ("measured", row.run, here.me)


def _in_order(met: Iterable[tuple[Bound, ProgramRow | None]]) -> Iterator[ProgramRow]:
    """Rows by rank, time and id, from rows in the order of what they do not stand before."""
    waiting: list[tuple[float, int, bytes, ProgramRow]] = []
    for bound, row in met:
        while waiting and waiting[0][:3] < bound:
            yield heapq.heappop(waiting)[-1]
        if row is not None and row.rank is not None:
            heapq.heappush(waiting, (row.rank, row.first_time, row.first, row))
    while waiting:
        yield heapq.heappop(waiting)[-1]


class _Side:
    """Runs whose words count alike, and the devices that may have written them."""

    def __init__(
        self, log: Log, here: TrustContext, counts: Counts, keys: frozenset[bytes], name: tuple[object, ...]
    ) -> None:
        self.counts = counts
        self._log, self._here, self._keys, self._name = log, here, keys, name
        self._is_now = here.roster is roster_of(log)

    def is_repeated(self, entry: EntryRow) -> bool:
        """Whether another device whose word counts alike published the program before."""
        program = entry[:3]
        if self._is_now:
            first = kept(self._log, ("first", *self._name, *program), lambda: self._first(program))
        else:
            first, _ = self._first(program)
        return first not in (None, entry.author)

    def _first(self, program: tuple[bytes, bytes, float]) -> tuple[bytes | None, list[bytes]]:
        """The device that published a program first, if several did, and the runs that say so, with the program."""
        devices = self._log.entries.entrants(*program, self._keys)
        if len(devices) < 2:
            return None, [program[1]]
        by_first = _by_first(self._log, program, self._here, self.counts, devices)
        first = first_of(self._log, by_first).author if by_first else None
        forked = [
            run.id for device in devices for run in self._log.entries.counted_runs(*program, device) if run.forked
        ]
        return first, [program[1], *(run.id for run in by_first), *forked]


def _standing(
    entry: EntryRow, here: TrustContext, rules: TaskRules | None, sides: Iterable[_Side]
) -> ProgramRow | None:
    """A device's entry as a program; None when its runs do not count or another device published it before."""
    known = [(run, whose(entry.author, run.time, here)) for run in entry.runs]
    for side in sides:
        if runs := [run for run, said in known if side.counts(run, said)]:
            return None if entry.shared and side.is_repeated(entry) else _row(entry[:3], runs, rules)
    return None


def _first_runs(
    log: Log, program: tuple[bytes, bytes, float], here: TrustContext, counts: Counts, devices: Iterable[bytes]
) -> list[CountedRun]:
    """The runs of a program that count, of the one of ``devices`` that published it first."""
    by_first = _by_first(log, program, here, counts, list(devices))
    return by_first[first_of(log, by_first)] if by_first else []


def _by_first(
    log: Log, program: tuple[bytes, bytes, float], here: TrustContext, counts: Counts, devices: Sequence[bytes]
) -> dict[CountedRun, list[CountedRun]]:
    """The runs of a program that count, of each of these devices by its first."""
    by_first: dict[CountedRun, list[CountedRun]] = {}
    log.entries.read_entries_ahead([(*program, device) for device in devices])
    for device in devices:
        runs = [run for run in log.entries.counted_runs(*program, device) if counts(run, whose(device, run.time, here))]
        if runs:
            by_first[min(runs)] = runs
    return by_first


def _measured(
    log: Log, found: MeasuredRow, here: TrustContext, rules: TaskRules | None
) -> tuple[ProgramRow | None, list[bytes]]:
    """A measured run as a program that is judged by it, and its sources; None when its author's runs do not count."""
    said = whose(found.author, found.time, here)
    if not any(said):
        return None, []
    counts = _counting(log, _is_attested if said.attested else _is_own)
    program = (found.task, found.source_digest, found.budget)
    every = log.entries.counted_runs(*program, found.author)
    runs = [run for run in every if counts(run, whose(found.author, run.time, here))]
    first = next((run for run in runs if run.id == found.run), None)
    sources = [found.source_digest, *(run.id for run in every if run.forked)]
    return _row(program, runs, rules, first=first) if first else None, sources


def _row(
    program: tuple[bytes, bytes, float],
    runs: Iterable[CountedRun],
    rules: TaskRules | None,
    *,
    first: CountedRun | None = None,
) -> ProgramRow | None:
    pooled = pool(runs, clocked=bool(rules and rules.clocked), first=first)
    if pooled is None:
        return None
    run = pooled.first
    ranked = rank(pooled.mean, pooled.runs, rules) if rules and rules.ranks(program[2]) else None
    return ProgramRow(
        *program, pooled.runs, pooled.mean, run.id, run.time, ranked, run.author, run.title, run.parent, run.device
    )


def _counting(log: Log, counts: Counts) -> Counts:
    """The same predicate, without runs after a fork that others did not verify."""
    return lambda run, said: counts(run, said) and (not run.forked or is_upheld(log, run.id))


def _is_attested(_: CountedRun, said: Whose) -> bool:
    return said.attested


def _is_own(_: CountedRun, said: Whose) -> bool:
    return said.own


def _is_anyone(_: CountedRun, __: Whose) -> bool:
    return True
