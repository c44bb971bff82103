"""The leaderboard in sections: confirmed programs are ranked, others have sections of their own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from autoresearch.api import ProgramView
from autoresearch.log import Log
from autoresearch.views.base_selection import OPEN, Placed, backed, judged_rows, place
from autoresearch.views.cache import in_snapshot
from autoresearch.views.queries import leaderboard, program_view
from autoresearch.views.ranking import unvouched, vouched
from autoresearch.views.trust_context import TrustContext
from autoresearch.views.verification_state import judge_soon
from autoresearch.words import BoardSection, RunState

# How many rows each section takes in turn while there is room.
_TURNS = {
    BoardSection.CONFIRMED: 3,
    BoardSection.OPEN: 3,
    BoardSection.FAILED: 1,
    BoardSection.UNATTESTED: 1,
}


@in_snapshot
def board(log: Log, task: bytes, here: TrustContext, *, limit: int) -> list[ProgramView]:
    """The best programs of a task by section, at most ``limit`` together. Where trust names nobody, one section.

    Only confirmed programs have a position, by the measured value. In a network too small to confirm anything the open
    ones have one, by the reported value.
    """
    if not here.naming:
        return leaderboard(log, task, limit)
    sections = _sections(log, task, here, limit)
    shares = _shares({name: len(rows) for name, rows in sections.items()}, limit)
    judge_soon(log, [placed.row.parent for rows in sections.values() for placed in rows if placed.row.parent])
    ranked = BoardSection.CONFIRMED if here.verifying else BoardSection.OPEN
    return [
        program_view(log, placed.row, placed.found, position=number if name is ranked else 0, section=name.value)
        for name, rows in sections.items()
        for number, placed in enumerate(rows[: shares[name]], start=1)
    ]


def _sections(log: Log, task: bytes, here: TrustContext, limit: int) -> dict[BoardSection, Sequence[Placed]]:
    confirmed = backed(log, task, here, RunState.CONFIRMED)[:limit]
    waiting = backed(log, task, here, RunState.PROVISIONAL)[:limit] if here.verifying else []
    failed: list[Placed] = []
    seen = {(placed.row.source_digest, placed.row.budget) for placed in (*confirmed, *waiting)}
    last: float | None = None  # the rank at which the search ended, None where there was nothing more
    rows = (row for row in vouched(log, task, here) if (row.source_digest, row.budget) not in seen)
    for placed in judged_rows(log, rows, here):
        (waiting if placed.found.state in OPEN else failed).append(placed)
        if len(waiting) >= limit:
            last = placed.row.rank
            break
    unattested = list(islice(unvouched(log, task, here, up_to=last), limit))
    judge_soon(log, [row.first for row in unattested])
    return {
        BoardSection.CONFIRMED: confirmed,
        BoardSection.OPEN: waiting,
        BoardSection.FAILED: failed,
        BoardSection.UNATTESTED: [place(log, row, here) for row in unattested],
    }


def _shares(lengths: dict[BoardSection, int], limit: int) -> dict[BoardSection, int]:
    """How many rows of each section are shown: the sections take turns until there is no more room."""
    shares = dict.fromkeys(lengths, 0)
    while sum(shares.values()) < min(limit, sum(lengths.values())):
        for name, turns in _TURNS.items():
            room = limit - sum(shares.values())
            shares[name] += min(turns, room, lengths[name] - shares[name])
    return shares
