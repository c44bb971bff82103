"""Which runs wait for verifiers, as lines."""

from __future__ import annotations

from autoresearch.api import AwaitedView, VerificationsAnswer
from autoresearch.figures import figure, lately, moment, value
from autoresearch.sanitise import one_line
from autoresearch.words import STAGE_NAMES
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.names import person
from autoresearch_cli.rendering.output import is_rich, print_rows, print_table

TITLE_CHARACTERS = 80


def print_awaited(answer: VerificationsAnswer, *, now_ms: int) -> None:
    """The runs that wait for verifiers, the most urgent first; whole for a program."""
    if not is_rich():
        print_rows(_cells(one) for one in answer.waiting)
        return
    rows = [
        (
            short(one.run),
            value(one.value),
            one.state,
            stage(one),
            verifiers(one),
            one.part.replace("_", " "),
            lately(one.time_ms, now_ms),
            person(one.participant),
            one_line(one.title, TITLE_CHARACTERS),
        )
        for one in answer.waiting
    ]
    columns = ("id", "reported", "state", "stage", "verifiers", "this node", "when", "by", "title")
    print_table(columns, rows, right=("reported",), optional=("when", "by"))


def stage(one: AwaitedView) -> str:
    """What verifiers measure, and in which round."""
    name = STAGE_NAMES.get(one.stage, one.stage)
    return f"{name}, round {one.round + 1}" if one.round else name


def verifiers(one: AwaitedView) -> str:
    """How many verifiers measured a run, and how many it takes before they reveal."""
    of = f" of {one.needed}" if one.measured < one.needed else ""
    more = f", {one.committed} committed" if one.committed else ""
    return f"{one.measured}{of}{more}"


def _cells(one: AwaitedView) -> tuple[object, ...]:
    said = (one.run, figure(one.value), one.state, one.stage, one.round, one.measured, one.committed, one.needed)
    return (*said, one.part, moment(one.time_ms), one.participant.key, one.participant.name, one.title)
