"""Programs by reported values, the best first; and the run that the next change builds on, verified before reported.

Where trust names nobody, all participants are equal: a program has the mean of all its runs. Elsewhere it has the mean
of the runs of one device: of the attested participant that published it first, else of whoever did. A repetition by
another participant does not count. No committee verifies that other run, so a false value in it would cost its author
nothing.

One selector decides what is built upon, :func:`buildable`: for the next change (:func:`next_base`), ``@``, ``best`` and
what is kept.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

from autoresearch.judging.states import Judgement
from autoresearch.judging.statistics import rank
from autoresearch.log.log import Log
from autoresearch.log.rows import Program, ProgramRow
from autoresearch.log.standing.cache import cached, in_snapshot
from autoresearch.log.standing.context import TrustContext, board_hardware, whose
from autoresearch.log.standing.verification import judgements
from autoresearch.log.tables.runs import ATTESTED, COUNTED, KINDS, OTHERS, UNVOUCHED, WITH_DOUBTED
from autoresearch.task.model import possible_value
from autoresearch.words import MISBEHAVED, SOUND, VERIFIED, RunState

# So many rows are read where all participants are equal.
BOARD_ROWS = 2000
# Most who ask want the first few.
_FIRST_PAGE, _PAGE = 100, 500


def walk(log: Log, task: bytes, *, visible: bool = False) -> Iterator[ProgramRow]:
    """The programs of a task by the reports of all participants, the best first, up to a bound.

    ``visible``: without what a person here hides.
    """
    start, size, hardware = 0, _FIRST_PAGE, board_hardware(log, task)
    while start < BOARD_ROWS:
        limit = min(size, BOARD_ROWS - start)
        page = log.programs.ranked(task, hardware=hardware, limit=limit, skip=start, visible=visible)
        yield from page
        if len(page) < size:
            return
        start, size = start + size, _PAGE


def vouched(
    log: Log, task: bytes, context: TrustContext, *, own: bool = False, forked: bool = False, visible: bool = False
) -> Iterator[ProgramRow]:
    """The programs of a task by the reports of attested participants; with ``own`` also by this participant's.

    With ``forked`` also by unverified runs after a fork. Records of other participants change none of them and take no
    time. ``visible``: without what a person here hides.
    """
    if not context.naming:
        return walk(log, task, visible=visible)
    what, hardware = WITH_DOUBTED if forked else COUNTED, board_hardware(log, task) or ""
    rows = log.entries.placed(task, hardware, [what, COUNTED + WITH_DOUBTED], visible=visible)
    return heapq.merge(rows, _own(log, task, hardware, context), key=_order) if own and context.mine else rows


def _own(log: Log, task: bytes, hardware: str, context: TrustContext) -> Iterator[ProgramRow]:
    """The programs of the participant that asks by runs that it signed while it was not attested, each once."""
    seen: set[Program] = set()
    for row in log.entries.of_devices(task, hardware, context.mine, [OTHERS]):
        program = (row.task, row.seedless, row.budget)
        is_own = whose(row.author, row.first_time, context).own and program not in seen
        if is_own and not log.entries.has(program, row.author, vouch=ATTESTED):
            seen.add(program)
            yield row


def unvouched(log: Log, task: bytes, context: TrustContext, *, up_to: float | None = None) -> Iterator[ProgramRow]:
    """The programs of a task that no attested participant published, by whoever published them first, up to a rank.

    Without what a person here hides.
    """
    if not context.naming:
        return iter(())
    rows = log.entries.placed(task, board_hardware(log, task) or "", [UNVOUCHED], visible=True)
    return takewhile(lambda row: up_to is None or row.rank is None or row.rank <= up_to, rows)


def program_as_reported(log: Log, program: Program, context: TrustContext) -> ProgramRow | None:
    """A program by the reports of attested participants, else by all reports; None when no run of it counts."""
    return (log.entries.first(program) if context.naming else None) or log.programs.find(*program)


def of_device(log: Log, task: bytes, device: bytes, context: TrustContext) -> Iterator[ProgramRow]:
    """The programs of a device, the best first; where trust names anybody, by its own reports."""
    if context.naming:
        return log.entries.of_devices(task, board_hardware(log, task) or "", [device], [OTHERS, ATTESTED])
    return (row for row in walk(log, task) if row.author == device)


def best_of(log: Log, task: bytes, device: bytes, context: TrustContext) -> ProgramRow | None:
    """The best program of a device that is believed."""
    rows = of_device(log, task, device, context)
    believed = (row for row in rows if judgements(log, [row.first])[row.first].state is not RunState.NOT_BELIEVED)
    return next(believed, None)


def _order(row: ProgramRow) -> tuple[float, int, bytes]:
    assert row.rank is not None
    return row.rank, row.first_time, row.first


# So many programs of each kind are read of those that others measured.
CHECKED_MOST = 200
# So many programs are judged to find those that may be built upon.
JUDGED_ROWS = 300
# So many of them at once, fewer at first.
JUDGED_FIRST, JUDGED_PAGE = 10, 50

# The tier of unattested participants, where trust names anybody.
LAST = 4


class Placed(NamedTuple):
    """A program with its judgement, and whether its author is attested or this participant."""

    row: ProgramRow
    judgement: Judgement
    attested: bool
    own: bool

    @property
    def value(self) -> float:
        """The value that others measured, else the reported mean."""
        return self.row.mean if self.judgement.value is None else self.judgement.value


def tier(state: RunState, *, attested: bool, own: bool, verifying: bool) -> int | None:
    """The tier of a run as a base of the next change: the smallest first, None for never.

    Confirmed, provisional, own reported, reported by another attested participant, unattested. Where nothing can be
    confirmed, all attested participants and this one share the first tier.
    """
    if state not in SOUND:
        return None
    if not verifying:
        return 0 if attested or own else LAST
    if attested and state is not RunState.REPORTED:
        return 0 if state is RunState.CONFIRMED else 1
    return 2 if own else 3 if attested else LAST


def placed(log: Log, rows: Collection[ProgramRow], context: TrustContext) -> list[Placed]:
    """Programs with their judgements, by their first runs."""
    by_run = judgements(log, (row.first for row in rows))
    return [Placed(row, by_run[row.first], *whose(row.author, row.first_time, context)) for row in rows]


def judged_rows(
    log: Log,
    rows: Iterable[ProgramRow],
    context: TrustContext,
    *,
    condition: Callable[[ProgramRow], bool] = lambda _: True,
) -> Iterator[Placed]:
    """Programs with their judgements, until enough were judged. Banned and fraudulent ones do not use up the limit."""
    judged, following, size = 0, iter(rows), JUDGED_FIRST
    while page := list(islice(following, size)):
        size = JUDGED_PAGE
        for program in placed(log, page, context):
            if not condition(program.row):
                continue
            yield program
            judged += program.judgement.state not in MISBEHAVED
            if judged >= JUDGED_ROWS:
                return


def tier_of(placed: Placed, context: TrustContext) -> int | None:
    """The tier of a program as a base of the next change, by its state alone."""
    return tier(placed.judgement.state, attested=placed.attested, own=placed.own, verifying=context.verifying)


def is_possible(log: Log, task: bytes) -> Callable[[float], bool]:
    """A predicate: whether a value on a task is possible, and not past its floor."""
    stated = cached(log, ("floor", task), lambda: log.tasks.stated(task, "metric", "floor"), lasting=True)
    sign, floor = log.tasks.sign(task), possible_value(stated)
    return lambda value: possible_value(value, sign=sign, floor=floor) is not None


def backed(log: Log, task: bytes, context: TrustContext, state: RunState) -> Iterator[Placed]:
    """The programs of attested participants in a verified state that nobody here hides: confirmed by measured value."""
    return checked(log, task, context, [KINDS[1][state]], visible=True)


def verified_programs(log: Log, task: bytes, context: TrustContext) -> Iterator[Placed]:
    """The programs that may be in a verified state: enough attested participants measured them."""
    return checked(log, task, context, {*KINDS[context.verifying].values()})


def checked(
    log: Log, task: bytes, context: TrustContext, kinds: Collection[int], *, visible: bool = False
) -> Iterator[Placed]:
    """The programs that attested participants measured, as their first measured runs are, the best first.

    ``kinds`` of entries, see ``KINDS``. Unattested participants take no places, neither with runs nor with
    verifications, however many they publish. ``visible``: without what a person here hides.
    """
    rules, hardware = log.tasks.rules(task), board_hardware(log, task) or ""
    rows = log.entries.placed(task, hardware, [1 << kind for kind in kinds], visible=visible)
    some = islice(rows, CHECKED_MOST if context.naming and rules else 0)
    return judged_rows(log, (row._replace(rank=rules and rank(row.mean, row.runs, rules)) for row in some), context)


def leading(log: Log, task: bytes) -> float | None:
    """The value of the best confirmed run of a task; smaller is better."""
    return log.standings.best_confirmed(task, board_hardware(log, task) or "") if log.trust.names_anybody else None


def preferred(log: Log, task: bytes, context: TrustContext) -> Placed | None:
    """The program to build upon, or None."""
    return next(buildable(log, task, context), None)


def next_base(log: Log, task: bytes, context: TrustContext) -> Placed | None:
    """The program to change next: the preferred one of those that had the task's full budget, or None.

    Where none had it, the preferred one: that of an agent which was trained for longer or shorter.
    """
    rules, first = log.tasks.rules(task), None
    for placed in buildable(log, task, context):
        first = first or placed
        if rules is None or placed.row.budget == rules.budget:
            return placed
    return first


def buildable(log: Log, task: bytes, context: TrustContext) -> Iterator[Placed]:
    """The programs that the next change may build on, by tier, the best of each first. The only such selector.

    Lazy: reads no more of the log than is asked for. What a person hides is not built on here.
    """
    possible = is_possible(log, task)

    def placed_in(rows: Iterable[Placed]) -> Iterator[tuple[int, Placed]]:
        for placed in rows:
            at = tier_of(placed, context)
            if at is not None and possible(placed.value):
                yield at, placed

    seen: set[bytes] = set()
    for state in VERIFIED if context.verifying else ():
        for _, placed in placed_in(backed(log, task, context, state)):
            seen.add(placed.row.first)
            yield placed
    # No later row can be in a better tier than one's own runs, or than any run where nothing can be confirmed.
    at_once = 2 if context.verifying else 0
    later: list[tuple[int, Placed]] = []
    for at, placed in placed_in(judged_rows(log, vouched(log, task, context, own=True, visible=True), context)):
        if placed.row.first in seen:
            continue
        if at <= at_once:
            yield placed
        else:
            later.append((at, placed))
    yield from (placed for _, placed in sorted(later, key=lambda item: item[0]))
    yield from (placed for _, placed in placed_in(judged_rows(log, unvouched(log, task, context), context)))


@in_snapshot
def contenders(
    log: Log,
    task: bytes,
    context: TrustContext,
    *,
    limit: int,
    each: int | None = None,
    rows: Iterable[ProgramRow] | None = None,
) -> list[Placed]:
    """The programs that may be the best once others verified them, by the values of attested participants.

    Programs found wrong or no better are left out, so they take no places. With ``each``, at most so many reported
    runs of one participant are among them. With ``rows`` they are of these.
    """
    chosen: list[Placed] = []
    reported: Counter[bytes] = Counter()

    def voter(row: ProgramRow) -> bytes:
        return context.roster.voter(row.author, row.first_time).voter

    if rows is None:
        rows = vouched(log, task, context, forked=True)  # how else would others come to verify what follows a fork?
    for placed in judged_rows(log, rows, context, condition=lambda row: each is None or reported[voter(row)] < each):
        if placed.judgement.state in SOUND or placed.judgement.state is RunState.DISPUTED:
            chosen.append(placed)
            reported[voter(placed.row)] += placed.judgement.state is RunState.REPORTED
        if len(chosen) >= limit:
            break
    return chosen
