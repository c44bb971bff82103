"""The runs of a task as a table."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.api import RunRow, RunsAnswer
from autoresearch.figures import figure, interval, lately, moment, signed, value
from autoresearch.words import RETEST, RETEST_SENTENCE, RUN_STATUS_SENTENCES, RunMark, RunStatus
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.names import person
from autoresearch_cli.rendering.output import is_rich, print_rows, print_table

# Before a change that the noise over seeds could be.
ABOUT = "≈"
# Before a value that does not count: refuted, fraud, banned.
DOUBT = "×"


def print_runs(answer: RunsAnswer, *, now_ms: int) -> None:
    """Runs in the order asked for: short and aligned for a person; whole ids, times and numbers for a program."""
    if not is_rich():
        print_rows(_cells(row) for row in answer.runs)
        return
    metric = answer.task.metric
    alone = len({row.participant.key for row in answer.runs}) == 1
    rows = [
        (
            short(row.id),
            _value(row),
            _change(row),
            _state(row),
            lately(row.time_ms, now_ms),
            "" if alone else person(row.participant),
            row.headline,
        )
        for row in answer.runs
    ]
    print_table(("id", metric, "change", "state", "when", "by", "what"), rows, right=(metric, "change"))


def row_words(rows: Sequence[RunRow]) -> list[str]:
    """What signs and words in these rows mean, each once."""
    lines = [f"{ABOUT}: the noise over seeds can make such a change"] if any(row.within_noise for row in rows) else []
    lines += (
        [f"{DOUBT}: this value does not count"] if any(row.in_doubt and row.value is not None for row in rows) else []
    )
    lines += [f"{RETEST}: {RETEST_SENTENCE}"] if any(row.retest for row in rows) else []
    statuses = dict.fromkeys(row.status for row in rows if row.mark == RunMark.FAILED)
    return lines + [f"{status}: {RUN_STATUS_SENTENCES[RunStatus(status)]}" for status in statuses]


def _value(row: RunRow) -> str:
    shown = interval(row.value, row.margin) if row.margin is not None else value(row.value)
    return f"{DOUBT} {shown}" if row.in_doubt and row.value is not None else shown


def _change(row: RunRow) -> str:
    if row.delta is None:
        return ""
    return f"{ABOUT} {signed(row.delta)}" if row.within_noise else signed(row.delta)


def _state(row: RunRow) -> str:
    word = row.status if row.mark == RunMark.FAILED else row.mark
    return f"{word}, {RETEST}" if row.retest else word


def _cells(row: RunRow) -> tuple[object, ...]:
    told = " ".join(change.text for change in row.change)
    numbers = (figure(row.reported), figure(row.value), figure(row.margin), figure(row.delta))
    who = (row.participant.key, row.participant.name, row.device)
    retest = RETEST if row.retest else ""
    said = (row.number, row.id, row.mark, row.state, row.status, *numbers, moment(row.time_ms), row.cpu_ms, *who)
    return (*said, row.parent or "", row.headline, told, row.because, retest)
