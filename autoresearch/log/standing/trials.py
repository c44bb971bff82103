"""Trials: runs on a task, each with its tier as a base and whether the search believes its value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from autoresearch.log.log import Log
from autoresearch.log.rows import HistoryRow
from autoresearch.log.standing.bases import (
    Placed,
    is_possible,
    judged_rows,
    next_base,
    tier,
    tier_of,
    verified_programs,
    vouched,
)
from autoresearch.log.standing.cache import in_snapshot
from autoresearch.log.standing.context import TrustContext, Whose, whose
from autoresearch.log.standing.verification import judgements
from autoresearch.words import DISBELIEF_SENTENCES, DOUBTED, MISBEHAVED, UPHELD, Disbelief, RunState

# Of a task with more runs than these together, so many best programs are read, newest runs, and runs of a sample.
BEST, NEWEST, SAMPLE = 100, 100, 400
# So many runs of one program with one seed: any more say the same.
_EACH = 3


class Trial(NamedTuple):
    """A run with its state. ``value`` is what others measured where the run is upheld, else the reported value.

    ``tier`` is its tier as a base of the next change, the smallest first, None for never. ``believed``: the search
    learns from its value. ``preferred`` is the value of the run that :func:`next_base` selects, None for other runs.
    ``failure`` says why a value is impossible, such as 1e16 from a reward that diverged: the run counts as failed.
    """

    row: HistoryRow
    state: RunState
    value: float | None
    tier: int | None
    believed: bool
    preferred: float | None
    failure: str = ""


class Extent(NamedTuple):
    """How many of the best programs, of the newest runs and of a sample of runs are read."""

    best: int = BEST
    newest: int = NEWEST
    sample: int = SAMPLE


@in_snapshot
def trials(
    log: Log,
    task: bytes,
    context: TrustContext,
    *,
    device: bytes,
    always: Collection[bytes] = (),
    extent: Extent = Extent(),
) -> list[Trial]:
    """The runs on a task, the oldest first, as ``device`` may use them, without those that a person here hides.

    No tier is above the preferred run's.

    Of a task with more runs than ``extent`` names together, only those of so many best programs, of
    the verified ones, of the programs of so many newest runs and of a sample of runs, and of those that ``always``
    names by their source digests. Without the sample the search would take what it sees for all that there is.
    """
    leads, (best, newest, sample) = next_base(log, task, context), extent
    if log.runs.has_more(task, best + newest + sample):
        came = log.runs.newest_attested(task, newest, own=sorted(context.mine), ended=True)
        # A sample of the runs that ended. Unattested participants take no places.
        eligible = (run for time_ms, run, author in log.runs.sample(task) if any(whose(author, time_ms, context)))
        some = {*came, *islice(eligible, sample)}
        digests = {*always, *_best(log, task, context, best), *(row.source_digest for row in log.runs.history_of(some))}
        rows = _selected(log, task, context, leads, digests)
    else:
        rows = log.runs.history(task)
    return list(_trials(log, task, context, device, leads, rows))


def _selected(
    log: Log, task: bytes, context: TrustContext, leads: Placed | None, digests: set[bytes]
) -> list[HistoryRow]:
    """The runs of these programs, of the verified ones, and of the programs that they change."""
    upheld = [leads] if leads else []
    upheld += verified_programs(log, task, context)
    digests |= {placed.row.source_digest for placed in upheld}
    rows = log.runs.history_of({placed.row.first for placed in upheld} | _some_runs(log, task, context, digests))
    programs = {row.base for row in rows if row.base is not None} - digests
    rows += log.runs.history_of(_some_runs(log, task, context, programs))
    return sorted(rows, key=lambda row: (row.time, row.id))


def _best(log: Log, task: bytes, context: TrustContext, most: int) -> Iterator[bytes]:
    """The best programs by reported values. Unattested, banned and fraudulent participants take no places."""
    rows = judged_rows(log, vouched(log, task, context, own=True, visible=True), context)
    return islice((program.row.source_digest for program in rows if program.judgement.state not in MISBEHAVED), most)


def _some_runs(log: Log, task: bytes, context: TrustContext, digests: Collection[bytes]) -> set[bytes]:
    """Of each of these programs and of each seed some runs: first those of attested participants, then the oldest."""
    by_seed: defaultdict[tuple[bytes, int], list[tuple[bool, int, bytes]]] = defaultdict(list)
    for digest, replicate, time_ms, run, author in log.runs.of_programs(task, digests, any_seeds=True):
        by_seed[digest, replicate].append((not any(whose(author, time_ms, context)), time_ms, run))
    return {run for group in by_seed.values() for _, _, run in sorted(group)[:_EACH]}


def _trials(
    log: Log, task: bytes, context: TrustContext, device: bytes, leads: Placed | None, rows: Sequence[HistoryRow]
) -> Iterator[Trial]:
    first_tier = tier_of(leads, context) if leads else None
    possible = is_possible(log, task)
    judged, hidden = judgements(log, (row.id for row in rows)), log.hidden.of([row.id for row in rows])
    doubts = log.beliefs.of([run for run, judgement in judged.items() if judgement.state is RunState.NOT_BELIEVED])
    for row in rows:
        if row.id in hidden:
            continue
        judgement = judged[row.id]
        who, upheld = whose(row.author, row.time, context), judgement.state in UPHELD
        value = judgement.value if upheld and judgement.value is not None else row.value
        counts = (upheld or not row.forked) and value is not None and possible(value)
        at = tier(judgement.state, attested=who.attested, own=who.own, verifying=context.verifying) if counts else None
        is_first = leads is not None and row.id == leads.row.first
        is_heard, doubt = _is_heard(row, who, context, device), doubts.get(row.id)
        yield Trial(
            row,
            judgement.state,
            value,
            None if at is None or first_tier is None else max(at, first_tier),
            judgement.state not in DOUBTED and (upheld or is_first or is_heard),
            leads.value if leads and is_first else None,
            # One that is measured in another way may be as good as it says.
            DISBELIEF_SENTENCES[doubt] if is_heard and doubt and doubt is not Disbelief.MEASURE else "",
        )


def _is_heard(row: HistoryRow, who: Whose, context: TrustContext, device: bytes) -> bool:
    """Whether an unverified value is believed: an attested participant's or one's own; after a fork one's own alone."""
    if row.forked:
        return row.author == device
    return who.attested or who.own or not context.roster.keys
