"""The lists of a contest: its participants with their places, and what each submission came to. Pure."""

from __future__ import annotations

from autoresearch.ask.challenges.answers import ContestantView, SubmissionView
from autoresearch.face.columns.column import (
    COUNT,
    RUN,
    WORDS,
    Column,
    Columns,
    Face,
    person,
    short,
)
from autoresearch.judging.places import BoardPlace
from autoresearch.log.standing.answers import leading, leading_gain
from autoresearch.text import change_interval, figure, interval, one_line
from autoresearch.words import RunState

_STATES = frozenset(state.value for state in RunState)


def place_words(row: SubmissionView | None) -> str:
    """The places of a submission: ``1``, ``1–3``, empty where it takes none."""
    return str(BoardPlace(row.position, row.last_position)) if row and row.position else ""


def verified(row: SubmissionView | None) -> float | None:
    """The value that verifiers measured of a submission, if any."""
    return row.verified if row else None


def gain(row: SubmissionView | None) -> float | None:
    """The gain of a submission: the one in pairs of verifiers, else that of reported values."""
    return leading_gain(row).value if row else None


def contestant_reason(row: ContestantView) -> str:
    """Why a participant has its place, or none."""
    if row.best is None:
        return (
            "no run of it counts" if row.runs else "published no run" if row.participant.key else "its code is unused"
        )
    return row.best.reason


CONTESTANT_COLUMNS: Columns[ContestantView] = (
    Column("place", lambda row: place_words(row.best), heading="#"),
    Column("alias", lambda row: row.alias),
    Column("participant", lambda row: row.participant.key, display=lambda row, _: person(row.participant)),
    Column("name", lambda row: row.participant.name, faces=Face.PIPE),
    Column("runs", lambda row: row.runs, COUNT),
    Column("counted", lambda row: row.counted, COUNT, varies=True),
    Column("reported", lambda row: figure(row.best.reported if row.best else None), faces=Face.PIPE),
    Column("verified", lambda row: figure(verified(row.best)), display=lambda row, _: _value(row.best)),
    Column("gain", lambda row: figure(gain(row.best)), display=lambda row, _: _gain(row.best)),
    Column("run", lambda row: row.best.id if row.best else "", RUN),
    Column("reason", contestant_reason, WORDS, late=3),
)


SUBMISSION_HEAD = ("place", "run", "by", "value", "why")


def submission_cells(row: SubmissionView) -> list[str]:
    """A submission as a row of the final board: its places, the run, its participant, its number, and why."""
    value, margin, origin = leading(row)
    number = "" if value is None else f"{interval(value, margin, row.decimals)} {origin.value}"
    title = f" “{one_line(row.title, 80)}”" if row.title else ""
    state = f"{row.outcome}, " if row.outcome in _STATES and row.outcome != RunState.REPORTED else ""
    return [place_words(row), f"{short(row.id)}{title}", person(row.participant), number, f"{state}{row.reason}"]


def _value(row: SubmissionView | None) -> str:
    return interval(row.verified, row.verified_margin, row.decimals) if row and row.verified is not None else ""


def _gain(row: SubmissionView | None) -> str:
    if row is None or gain(row) is None:
        return ""
    number, margin, _ = leading_gain(row)
    return change_interval(number, margin, row.decimals)
