"""The progress page and the board from the answers of the API. Pure but for reading the templates.

Confirmed programs stand with their intervals on one axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from autoresearch.ask.runs.answers import (
    BestAnswer,
    GroupsAnswer,
    ProgressAnswer,
    RunnerView,
    RunRow,
    RunsAnswer,
    SinceAnswer,
)
from autoresearch.face.columns.people import improvement, verifications
from autoresearch.face.columns.runs import size_line
from autoresearch.face.pages.chart import Query, Scale, axis_over, chart_data
from autoresearch.face.pages.groups import group_picture
from autoresearch.judging.places import Interval, places
from autoresearch.log.standing.answers import CreditView, Leading, ProgramView, RunView, leading, numbers_of
from autoresearch.text import one_line, sign_of
from autoresearch.words import BoardSection, RunMark, RunState, RunStatus


def bare_row(view: RunView, *, own: bool = False) -> RunRow:
    """What a run says of itself, as a row."""
    run, state = view.run, view.standing.state
    return RunRow(
        id=view.id,
        number=0,
        time_ms=view.time_ms,
        cost_ms=0,
        cpu_ms=run.cpu_ms,
        mark=state if run.status == RunStatus.OK else RunMark.FAILED.value,
        state=state,
        status=run.status,
        reason=run.reason,
        **msgspec.structs.asdict(numbers_of(view.standing)),
        headline=run.title,
        parent=run.parent,
        replicate=run.replicate,
        proposer=run.proposed_by,
        device=run.device,
        participant=view.participant,
        own=own,
    )


# A difference of two runs has twice the variance of one: below about two deviations it says nothing.
DEVIATIONS = 2.0


@dataclass(frozen=True, slots=True)
class TaskStanding:
    """How far a task has come.

    ``best`` is the program to build upon, ``@``. ``row`` is its run as a row of the table. ``rival`` is provisional or
    only reported, and better by ``ahead`` (in the metric's unit and sign); ``is_noise``: by less than two standard
    deviations over seeds.
    """

    best: ProgramView
    row: RunRow | None = None
    rival: ProgramView | None = None
    ahead: float = 0.0
    is_noise: bool = False

    @property
    def is_confirmed(self) -> bool:
        """Whether the best one is confirmed."""
        return self.best.state == RunState.CONFIRMED

    @property
    def number(self) -> Leading:
        """The value of the best one."""
        return leading(self.best)

    @property
    def rivals_number(self) -> Leading | None:
        """The value of its rival."""
        return leading(self.rival) if self.rival else None


def standing(answer: BestAnswer, row: RunRow | None = None) -> TaskStanding | None:
    """How far the task of an answer has come; None while no run has a value."""
    best = answer.task.best
    if best is None:
        return None
    sign = sign_of(answer.task.direction)
    open_ones = [row for row in (answer.reported, answer.provisional) if row and row.id != best.id]
    rival = min(open_ones, key=lambda row: sign * _value(row), default=None)
    ahead = _value(rival) - _value(best) if rival else 0.0
    if rival is None or sign * ahead >= 0:
        return TaskStanding(best, row)
    return TaskStanding(best, row, rival, ahead, is_noise=abs(ahead) < DEVIATIONS * answer.task.noise)


# The intervals of so many programs decide on the axis; worse ones lie beyond its end.
SCALED = 15


class BoardRow(NamedTuple):
    """A confirmed program: its run as a row where that is known, and its interval in percent of the axis.

    ``beyond``: all of the interval is outside the axis.
    """

    program: ProgramView
    row: RunRow | None
    low: float
    middle: float
    high: float
    beyond: bool


class ConfirmedBoard(NamedTuple):
    """The rows, the best first, and the axis of their intervals."""

    rows: list[BoardRow]
    axis: Scale


def confirmed_board(programs: Sequence[ProgramView], rows: Mapping[str, RunRow]) -> ConfirmedBoard:
    """The board of confirmed programs, which are given the best first; ``rows`` are runs by their ids."""
    ends = [_interval(program) for program in programs]
    axis = axis_over([value for interval in ends[:SCALED] for value in interval])
    return ConfirmedBoard(
        [
            BoardRow(
                program=program,
                row=rows.get(program.id),
                low=axis.at(interval.low),
                middle=axis.at(_value(program)),
                high=axis.at(interval.high),
                beyond=interval.high < axis.low or interval.low > axis.high,
            )
            for program, interval in zip(programs, ends, strict=True)
        ],
        axis,
    )


def programs_of(rows: Iterable[RunRow], section: BoardSection, *, maximize: bool) -> list[ProgramView]:
    """Runs with a value as the programs of a section, where a board is made of the runs on one kind of hardware."""
    programs = [_as_program(row, section) for row in rows if leading(row).value is not None]
    if section is not BoardSection.CONFIRMED:
        return programs
    return [
        msgspec.structs.replace(program, position=place.first, last_position=place.last)
        for program, place in zip(programs, places([*map(_interval, programs)], maximize=maximize), strict=True)
    ]


def _as_program(row: RunRow, section: BoardSection) -> ProgramView:
    return ProgramView(
        **msgspec.structs.asdict(numbers_of(row)),
        position=0,
        id=row.id,
        source_digest="",
        score=leading(row).value or 0.0,
        state=row.state,
        title=row.headline,
        author="",
        parent=row.parent,
        time_ms=row.time_ms,
        section=section.value,
        retest=row.retest,
        participant=row.participant,
    )


def by_credit(participants: Sequence[CreditView], task: str) -> list[CreditView]:
    """Participants in the order of a board: by confirmed improvement on a task, verifications, then compute."""
    return sorted(participants, key=lambda row: (-improvement(row, task), -verifications(row), -row.cpu_ms))


def _value(program: ProgramView) -> float:
    return leading(program).value or 0.0


def _interval(program: ProgramView) -> Interval:
    return Interval.around(_value(program), program.verified_margin)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressContent:
    """What the progress page shows: its answers, and what its filters offer.

    ``newest`` is the last run, where there is one. ``best_row`` is the best program's run as a row. ``settings`` are
    the names that runs changed. ``since`` is what happened in the last day. ``progress`` is the chart's data where it
    is in the page: a file asks nobody.
    """

    query: Query
    runs: RunsAnswer
    newest: Sequence[RunRow]
    best: BestAnswer
    best_row: RunRow | None = None
    runners: Sequence[RunnerView] = ()
    settings: Sequence[str] = ()
    since: SinceAnswer | None = None
    groups: GroupsAnswer | None = None
    progress: ProgressAnswer | None = None

    def values(self) -> dict[str, object]:
        """What the template takes."""
        leaders = standing(self.best, self.best_row)
        leading = (leaders.best, leaders.rival) if leaders else ()
        return {
            "query": self.query,
            "answer": self.runs,
            "chart": chart_data(self.progress, self.query) if self.progress else None,
            "standing": leaders,
            "note": self.best.note,
            "sizes": [size_line(size) for size in self.best.sizes],
            "compute_ms": max((run.cost_ms for run in self.newest), default=0),
            "last_step_ms": max((row.time_ms for row in leading if row), default=0),
            "runners": self.runners,
            "devices": plain({device for runner in self.runners for device in runner.devices}),
            "settings": plain(self.settings),
            "since": self.since,
            "groups": group_picture(self.groups) if self.groups else None,
        }


def plain(names: Iterable[str]) -> list[str]:
    """Names to choose from: a filter takes them as they are, so those that cannot be shown as they are are left out."""
    return sorted(name for name in names if name and one_line(name) == name)
