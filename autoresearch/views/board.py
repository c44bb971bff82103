"""The leaderboard in sections: what others confirmed is ranked, what is only said stands apart from it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from autoresearch.log import Log
from autoresearch.views.company import Company
from autoresearch.views.models import SubjectView
from autoresearch.views.preference import OPEN, Placed, backed, judged_rows, place
from autoresearch.views.ranking import unvouched, vouched
from autoresearch.views.views import leaderboard, subject_view
from autoresearch.words import BoardSection, RunState

# How many rows each section takes in turn while there is room.
_TURNS = {
    BoardSection.CONFIRMED: 3,
    BoardSection.OPEN: 3,
    BoardSection.FAILED: 1,
    BoardSection.UNATTESTED: 1,
}


def board(log: Log, task: bytes, here: Company, *, limit: int) -> list[SubjectView]:
    """The best subjects of a task by section, at most ``limit`` together; where nobody is named, all in one.

    Only the confirmed have a position, by what others measured; in a network too small to confirm anything the open
    ones have, by what their authors say.
    """
    if not here.naming:
        return leaderboard(log, task, limit)
    sections = _sections(log, task, here, limit)
    shares = _shares({name: len(rows) for name, rows in sections.items()}, limit)
    ranked = BoardSection.CONFIRMED if here.verifying else BoardSection.OPEN
    return [
        subject_view(log, placed.row, placed.found, position=number if name is ranked else 0, section=name.value)
        for name, rows in sections.items()
        for number, placed in enumerate(rows[: shares[name]], start=1)
    ]


def _sections(log: Log, task: bytes, here: Company, limit: int) -> dict[BoardSection, Sequence[Placed]]:
    confirmed = backed(log, task, here, RunState.CONFIRMED)[:limit]
    waiting = backed(log, task, here, RunState.PROVISIONAL)[:limit] if here.verifying else []
    failed: list[Placed] = []
    seen = {placed.row.source_digest for placed in (*confirmed, *waiting)}
    last: float | None = None  # the rank at which the search ended, None where there was nothing more
    rows = (row for row in vouched(log, task, here) if row.source_digest not in seen)
    for placed in judged_rows(log, rows, here):
        (waiting if placed.found.state in OPEN else failed).append(placed)
        if len(waiting) >= limit:
            last = placed.row.rank
            break
    return {
        BoardSection.CONFIRMED: confirmed,
        BoardSection.OPEN: waiting,
        BoardSection.FAILED: failed,
        BoardSection.UNATTESTED: [
            place(log, row, here) for row in islice(unvouched(log, task, here, up_to=last), limit)
        ],
    }


def _shares(lengths: dict[BoardSection, int], limit: int) -> dict[BoardSection, int]:
    """How many rows of each section are shown: all that there is room for, shared out in turns."""
    shares = dict.fromkeys(lengths, 0)
    while sum(shares.values()) < min(limit, sum(lengths.values())):
        for name, turns in _TURNS.items():
            room = limit - sum(shares.values())
            shares[name] += min(turns, room, lengths[name] - shares[name])
    return shares
