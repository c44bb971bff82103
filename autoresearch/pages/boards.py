"""The confirmed programs as rows of a board: their shared places, their intervals on one axis. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from autoresearch.api import CreditView, ProgramView, RunRow, best_value
from autoresearch.pages.axes import Axis, axis_over
from autoresearch.pages.places import Interval, Place, places
from autoresearch.words import BoardSection, RunMark

# The intervals of so many programs decide on the axis; worse ones lie beyond its end.
SCALED = 15
# The marks of the runs in a section, where a board is made of runs.
SECTION_MARKS = {
    BoardSection.CONFIRMED: (RunMark.CONFIRMED,),
    BoardSection.OPEN: (RunMark.PROVISIONAL, RunMark.LEADING, RunMark.REPORTED),
    BoardSection.FAILED: (
        *(RunMark.NOT_REPLICATED, RunMark.DISPUTED, RunMark.REFUTED),
        *(RunMark.FRAUD, RunMark.BANNED),
    ),
}


class BoardRow(NamedTuple):
    """A confirmed program: its place, its run as a row where that is known, and its interval in percent of the axis.

    ``beyond``: all of the interval is outside the axis.
    """

    program: ProgramView
    row: RunRow | None
    place: Place
    low: float
    middle: float
    high: float
    beyond: bool


class ConfirmedBoard(NamedTuple):
    """The rows, the best first, and the axis of their intervals."""

    rows: list[BoardRow]
    axis: Axis


def confirmed_board(
    programs: Sequence[ProgramView], rows: Mapping[str, RunRow], *, maximize: bool = False
) -> ConfirmedBoard:
    """The board of confirmed programs, which are given the best first; ``rows`` are runs by their ids."""
    ends = [_interval(program) for program in programs]
    axis = axis_over([value for interval in ends[:SCALED] for value in interval])
    return ConfirmedBoard(
        [
            BoardRow(
                program=program,
                row=rows.get(program.id),
                place=place,
                low=axis.at(interval.low),
                middle=axis.at(best_value(program)),
                high=axis.at(interval.high),
                beyond=interval.high < axis.low or interval.low > axis.high,
            )
            for program, interval, place in zip(programs, ends, places(ends, maximize=maximize), strict=True)
        ],
        axis,
    )


def as_program(row: RunRow, section: BoardSection) -> ProgramView:
    """A run as a program of a section, where a board is made of the runs on one kind of hardware."""
    return ProgramView(
        position=0,
        id=row.id,
        source_digest="",
        runs=1,
        mean=row.reported or 0.0,
        score=row.value or 0.0,
        state=row.state,
        title=row.headline,
        author="",
        parent=row.parent,
        time_ms=row.time_ms,
        value=row.value,
        margin=row.margin,
        section=section.value,
        retest=row.retest,
        participant=row.participant,
    )


def by_credit(participants: Sequence[CreditView], task: str) -> list[CreditView]:
    """Participants in the order of a board: by confirmed improvement on a task, verifications, then compute."""
    return sorted(participants, key=lambda one: (-improvement(one, task), -verifications(one), -one.cpu_ms))


def improvement(participant: CreditView, task: str) -> float:
    """The confirmed improvement of a participant on a task, in the metric's unit."""
    return sum(gain.total for gain in participant.improvements if gain.task == task)


def verifications(participant: CreditView) -> int:
    """How many verifications of a participant count."""
    return len(participant.passes) + len(participant.fails) + len(participant.replications)


def _interval(program: ProgramView) -> Interval:
    middle, margin = best_value(program), program.margin or 0.0
    return Interval(middle - margin, middle + margin)
