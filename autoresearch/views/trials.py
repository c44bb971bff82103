"""Trials: all runs on a task, each with its tier as a base and whether the search believes its value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from autoresearch.log import HistoryRow, Log
from autoresearch.views.base_selection import DOUBTED, is_possible, preferred, tier, tier_of
from autoresearch.views.trust_context import TrustContext, Whose, whose
from autoresearch.views.verification_state import UPHELD, judge_soon, judging
from autoresearch.words import RunState

# So many rows are judged at once.
_PAGE = 2_000


class Trial(NamedTuple):
    """A run with its state. ``value`` is what others measured where the run is upheld, else the reported value.

    ``tier`` is its tier as a base of the next change, the smallest first, None for never. ``believed``: the search
    learns from its value. ``preferred`` is the value of the run that :func:`preferred` selects, None for other runs.
    """

    row: HistoryRow
    state: RunState
    value: float | None
    tier: int | None
    believed: bool
    preferred: float | None


def trials(log: Log, task: bytes, here: TrustContext, *, device: bytes) -> Iterator[Trial]:
    """All runs on a task, the oldest first, as ``device`` may use them. No tier is above the preferred run's."""
    leads = preferred(log, task, here)
    first_tier = tier_of(leads, here) if leads else None
    possible, judged = is_possible(log, task), judging(log)
    for row in _soon_judged(log, log.history(task)):
        found = judged(row.id, row.author, row.time, row.seq)
        said, upheld = whose(row.author, row.time, here), found.state in UPHELD
        value = found.value if upheld and found.value is not None else row.value
        counts = (upheld or not row.forked) and value is not None and possible(value)
        at = tier(found.state, attested=said.attested, own=said.own, verifying=here.verifying) if counts else None
        is_first = leads is not None and row.id == leads.row.first
        yield Trial(
            row,
            found.state,
            value,
            None if at is None or first_tier is None else max(at, first_tier),
            found.state not in DOUBTED and (upheld or is_first or _is_heard(row, said, here, device)),
            leads.value if leads and is_first else None,
        )


def _soon_judged(log: Log, rows: Sequence[HistoryRow]) -> Iterator[HistoryRow]:
    """The same rows, read ahead for judging."""
    for start in range(0, len(rows), _PAGE):
        page = rows[start : start + _PAGE]
        judge_soon(log, (row.id for row in page))
        yield from page


def _is_heard(row: HistoryRow, said: Whose, here: TrustContext, device: bytes) -> bool:
    """Whether an unverified value is believed: an attested participant's or one's own; after a fork one's own alone."""
    if row.forked:
        return row.author == device
    return said.attested or said.own or not here.roster.keys
