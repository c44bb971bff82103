"""Programs by reported values, the best first, as rows say.

Where trust names nobody, all participants are equal: a program has the mean of all its runs. Elsewhere it has the mean
of the runs of one device: of the attested participant that published it first, else of whoever did. A repetition by
another participant does not count. No committee verifies that other run, so a false value in it would cost its author
nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import takewhile

from autoresearch.log.log import Log
from autoresearch.log.rows import Program, ProgramRow
from autoresearch.log.standing.context import TrustContext, board_hardware, comparing, whose
from autoresearch.log.standing.placing import ATTESTED, COUNTED, OTHERS, UNVOUCHED, WITH_DOUBTED

# So many rows are read where all participants are equal.
BOARD_ROWS = 2000
# Most who ask want the first few.
_FIRST_PAGE, _PAGE = 100, 500


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
    what, hardware = WITH_DOUBTED if forked else COUNTED, board_hardware(log, task) or ""
    rows = log.entries.placed(task, hardware, [what, COUNTED + WITH_DOUBTED])
    return heapq.merge(rows, _own(log, task, hardware, here), key=_order) if own and here.mine else rows


def _own(log: Log, task: bytes, hardware: str, here: TrustContext) -> Iterator[ProgramRow]:
    """The programs of the participant that asks by runs that it signed while it was not attested, each once."""
    seen: set[Program] = set()
    for row in log.entries.of_devices(task, hardware, here.mine, [OTHERS]):
        program = (row.task, row.source_digest, row.budget)
        is_own = whose(row.author, row.first_time, here).own and program not in seen
        if is_own and not log.entries.has(program, row.author, vouch=ATTESTED):
            seen.add(program)
            yield row


def unvouched(log: Log, task: bytes, here: TrustContext, *, up_to: float | None = None) -> Iterator[ProgramRow]:
    """The programs of a task that no attested participant published, by whoever published them first, up to a rank."""
    if not here.naming:
        return iter(())
    rows = log.entries.placed(task, board_hardware(log, task) or "", [UNVOUCHED])
    return takewhile(lambda row: up_to is None or row.rank is None or row.rank <= up_to, rows)


def program_as_reported(log: Log, program: Program, here: TrustContext) -> ProgramRow | None:
    """A program by the reports of attested participants, else by all reports; None when no run of it counts."""
    return (log.entries.first(program) if here.naming else None) or log.programs.find(*program)


def best_of(log: Log, task: bytes, device: bytes, here: TrustContext) -> ProgramRow | None:
    """The best program of a task that a device published first; where trust names anybody, by its own reports."""
    if not here.naming:
        return next((row for row in walk(log, task) if row.author == device), None)
    hardware = board_hardware(log, task) or ""
    return next(log.entries.of_devices(task, hardware, [device], [OTHERS, ATTESTED]), None)


def measured(log: Log, task: bytes, here: TrustContext, *, voters: int) -> list[ProgramRow]:
    """The runs of attested participants, and of this one, that ``voters`` attested ones measured, each as a program.

    A measured run need not be the first of its program: a run under an earlier time takes nothing away from it. A
    program that was measured in several runs appears once for each.
    """
    rows = log.entries.measured(task, board_hardware(log, task) or "", voters=voters, own=sorted(here.mine))
    return [row for row in rows if any(whose(row.author, row.first_time, here))]


def _order(row: ProgramRow) -> tuple[float, int, bytes]:
    assert row.rank is not None
    return row.rank, row.first_time, row.first
