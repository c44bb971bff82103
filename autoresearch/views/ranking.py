"""Programs by what is said of them, the best first.

Where the network names nobody all words are alike: a program has the mean of all its runs. Elsewhere it is the word of
the attested participant's device that published it first, by its own runs alone. Whoever repeats it elsewhere is heard
by verifying: nobody ever asks about that other run, so that a false number in it would cost its author nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator

from autoresearch.log import CountedRun, EntryRow, Log, MeasuredRow, SubjectRow, TaskRules, pool, rank
from autoresearch.views.company import Company, Whose, whose
from autoresearch.views.hardware import comparing
from autoresearch.views.witnesses import first_of

# As far down the board as something is looked for where all words are alike.
BOARD_ROWS = 2000
# Most who ask want the first few.
_FIRST_PAGE, _PAGE = 20, 500

Counts = Callable[[Whose], bool]


def walk(log: Log, task: bytes) -> Iterator[SubjectRow]:
    """The subjects of a task by what everybody says, the best first, as far down as it is looked."""
    start, size, is_comparable = 0, _FIRST_PAGE, comparing(log, task)
    while start < BOARD_ROWS:
        page = log.ranked(task, limit=min(size, BOARD_ROWS - start), skip=start)
        yield from filter(is_comparable, page)
        if len(page) < size:
            return
        start, size = start + size, _PAGE


def vouched(log: Log, task: bytes, here: Company, *, own: bool = False) -> Iterator[SubjectRow]:
    """The subjects of a task by what those say who count; with ``own`` by what the one who asks says as well.

    What others write moves none of them and takes no time.
    """
    if not here.naming:
        return walk(log, task)
    rules, is_comparable = log.rules(task), comparing(log, task)
    entries = log.entries(task, here.roster.keys | here.mine if own else here.roster.keys)
    rows = ((entry.bound, _standing(log, entry, here, rules, own=own)) for entry in entries)
    return filter(is_comparable, _in_order(rows))


def unvouched(log: Log, task: bytes, here: Company, *, up_to: float | None = None) -> Iterator[SubjectRow]:
    """The subjects of a task that no attested participant published, by what everybody says, up to a rank."""
    if not here.naming:
        return
    for row in walk(log, task):
        if up_to is not None and row.rank is not None and row.rank > up_to:
            return
        if whose(row.author, row.first_time, here).attested:
            continue
        if vouched_subject(log, (task, row.source_digest, row.budget), here) is None:
            yield row


def vouched_subject(log: Log, subject: tuple[bytes, bytes, float], here: Company) -> SubjectRow | None:
    """A subject as the attested participant stands by it who published it first, or None."""
    devices = log.entrants(*subject, here.roster.keys)
    return _row(subject, _first_runs(log, subject, here, _is_attested, devices), log.rules(subject[0]))


def subject_as_said(log: Log, subject: tuple[bytes, bytes, float], here: Company) -> SubjectRow | None:
    """A subject by the word of those who count, else by everybody's, or None when no run of it counts."""
    return (vouched_subject(log, subject, here) if here.naming else None) or log.subject(*subject)


def best_of(log: Log, task: bytes, device: bytes, here: Company) -> SubjectRow | None:
    """The best subject of a task that a device published first, by what it says itself where anybody is named."""
    if not here.naming:
        return next((row for row in walk(log, task) if row.author == device), None)
    rules = log.rules(task)
    rows = ((entry.bound, _row(entry[:3], entry.runs, rules)) for entry in log.entries(task, [device]))
    return next(filter(comparing(log, task), _in_order(rows)), None)


def measured(log: Log, task: bytes, here: Company, *, authors: int) -> Iterator[SubjectRow]:
    """The runs of those who count, and of the one who asks, that so many devices measured, each as a subject.

    That need not be the subject's first run: whoever writes the same program under an earlier time takes nothing
    away from it. One that was measured in several runs is here as often.
    """
    rules, keys = log.rules(task), here.roster.keys | here.mine
    found = (row for row in log.measured(task, authors=authors) if row.author in keys)
    rows = ((row.bound, _measured(log, row, here, rules)) for row in found)
    return filter(comparing(log, task), _in_order(rows))


def _in_order(met: Iterable[tuple[float, SubjectRow | None]]) -> Iterator[SubjectRow]:
    """Rows by their ranks, from rows that come by numbers which their ranks are not below."""
    waiting: list[tuple[float, int, bytes, SubjectRow]] = []
    for bound, row in met:
        while waiting and waiting[0][0] < bound:
            yield heapq.heappop(waiting)[-1]
        if row is not None and row.rank is not None:
            heapq.heappush(waiting, (row.rank, row.first_time, row.first, row))
    while waiting:
        yield heapq.heappop(waiting)[-1]


def _standing(log: Log, entry: EntryRow, here: Company, rules: TaskRules | None, *, own: bool) -> SubjectRow | None:
    """A device's entry as a subject, None when its word does not count or another one published that before."""
    known = [(run, whose(entry.author, run.time, here)) for run in entry.runs]
    sides: list[tuple[Counts, frozenset[bytes]]] = [(_is_attested, here.roster.keys)]
    if own:
        sides.append((_is_own, here.mine))
    for counts, keys in sides:
        if runs := [run for run, said in known if counts(said)]:
            row = _row(entry[:3], runs, rules)
            return None if entry.shared and _is_repeated(log, entry, here, counts, keys) else row
    return None


def _is_repeated(log: Log, entry: EntryRow, here: Company, counts: Counts, keys: frozenset[bytes]) -> bool:
    """Whether another device whose word counts alike published the program before."""
    devices = log.entrants(*entry[:3], keys)
    if devices == [entry.author]:
        return False
    return any(run.author != entry.author for run in _first_runs(log, entry[:3], here, counts, devices))


def _first_runs(
    log: Log, subject: tuple[bytes, bytes, float], here: Company, counts: Counts, devices: Iterable[bytes]
) -> list[CountedRun]:
    """The runs of a program by the device that published it first, of those of these whose word counts."""
    by_first: dict[CountedRun, list[CountedRun]] = {}
    for device in devices:
        runs = [run for run in log.counted_runs(*subject, device) if counts(whose(device, run.time, here))]
        if runs:
            by_first[min(runs)] = runs
    return by_first[first_of(log, by_first)] if by_first else []


def _measured(log: Log, found: MeasuredRow, here: Company, rules: TaskRules | None) -> SubjectRow | None:
    """A run that was measured as a subject that stands by it, None when its word does not count."""
    said = whose(found.author, found.time, here)
    if not any(said):
        return None
    counts = _is_attested if said.attested else _is_own
    subject = (found.task, found.source_digest, found.budget)
    runs = [run for run in log.counted_runs(*subject, found.author) if counts(whose(found.author, run.time, here))]
    return _row(subject, runs, rules, first=next((run for run in runs if run.id == found.run), None))


def _row(
    subject: tuple[bytes, bytes, float],
    runs: Iterable[CountedRun],
    rules: TaskRules | None,
    *,
    first: CountedRun | None = None,
) -> SubjectRow | None:
    pooled = pool(runs, clocked=bool(rules and rules.clocked), first=first)
    if pooled is None:
        return None
    run = pooled.first
    ranked = rank(pooled.mean, pooled.runs, rules) if rules and rules.budget == subject[2] else None
    return SubjectRow(
        *subject, pooled.runs, pooled.mean, run.id, run.time, ranked, run.author, run.title, run.parent, run.device
    )


def _is_attested(said: Whose) -> bool:
    return said.attested


def _is_own(said: Whose) -> bool:
    return said.own
