"""How far a task has come: its numbers, its best, its leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from autoresearch.answers.counting import too_few
from autoresearch.answers.finding import FoundTask, task_of
from autoresearch.answers.models import BestAnswer, TasksAnswer, TaskStatus, TopAnswer
from autoresearch.log import Log, SubjectRow
from autoresearch.plain import one_line
from autoresearch.records import parse_id
from autoresearch.views import (
    CHECKING_AUTHORS,
    OPEN,
    Company,
    SubjectView,
    backed,
    board,
    board_hardware,
    checked,
    company,
    confirmed_until,
    place,
    preferred,
    run,
    statistics,
    subject_as_said,
    subject_view,
    vouched,
    with_marks,
)
from autoresearch.words import STOPPED, BoardSection, RunState, RunStatus

# As far down the board as the best that nobody checked is looked for.
JUDGED_ROWS = 300
DEFAULT_ROWS = 20


def task_status(log: Log, task: FoundTask, *, author: bytes | None = None) -> TaskStatus:
    """The task and how far the network has come with it; ``best`` is what ``author`` would build upon."""
    numbers = statistics(log, task.digest)
    best = best_subject(log, task, author=author)
    baseline = _baseline(log, task, company(log, author))
    return TaskStatus(
        name=task.name,
        digest=task.digest.hex(),
        metric=task.metric,
        direction=task.direction,
        floor=task.floor,
        baseline=baseline.mean if baseline else None,
        best=best,
        closed=closed(baseline.mean, best_value(best), task.floor) if baseline and best else None,
        runs=numbers.runs,
        failed=sum(count for status, count in numbers.statuses.items() if status not in {RunStatus.OK, *STOPPED}),
    )


def tasks_answer(log: Log) -> TasksAnswer:
    """All tasks that somebody published, those with the most runs first."""
    published = [task_of(log, digest) for digest in dict.fromkeys(row.digest for row in log.tasks())]
    tasks = [task_status(log, task) for task in published if task is not None]
    return TasksAnswer(tasks=sorted(tasks, key=lambda task: (-task.runs, task.digest)))


def best_answer(log: Log, task: FoundTask, *, author: bytes | None = None) -> BestAnswer:
    """The best confirmed subject, the best provisional and the best reported one; ``run`` is the one to build upon.

    ``author`` is the device that asks: while nothing is checked, its own runs come before what others say.
    """
    status = task_status(log, task, author=author)
    here = company(log, author)
    confirmed = _best_backed(log, task, here, RunState.CONFIRMED)
    leader = run(log, parse_id(status.best.id)) if status.best else None
    provisional, reported = _best_backed(log, task, here, RunState.PROVISIONAL), _best_reported(log, task, here)
    demoted = _demoted(log, task, here, confirmed)
    shown = _with_marks(log, [status.best, confirmed, provisional, reported, demoted])
    return BestAnswer(
        task=msgspec.structs.replace(status, best=shown[0]),
        confirmed=shown[1],
        provisional=shown[2],
        reported=shown[3],
        demoted=shown[4],
        run=leader,
        note=_note(log, task, status, confirmed),
    )


def top_answer(log: Log, task: FoundTask, *, limit: int = DEFAULT_ROWS, author: bytes | None = None) -> TopAnswer:
    """The leaderboard of a task, in sections where others' words count."""
    here = company(log, author)
    status = task_status(log, task, author=author)
    subjects = board(log, task.digest, here, limit=limit)
    confirmed = next((row for row in subjects if row.section == BoardSection.CONFIRMED), None)
    note = _note(log, task, status, confirmed)
    best, *shown = _with_marks(log, [status.best, *subjects])
    status = msgspec.structs.replace(status, best=best)
    return TopAnswer(task=status, subjects=[subject for subject in shown if subject], note=note)


def best_subject(log: Log, task: FoundTask, *, author: bytes | None = None) -> SubjectView | None:
    """The subject that the next change builds upon, and that ``@`` names."""
    found = preferred(log, task.digest, company(log, author))
    return subject_view(log, found.row, found.found, position=1) if found else None


def best_value(subject: SubjectView) -> float:
    """A subject's value: what others measured where they did, else what its authors say."""
    return subject.mean if subject.value is None else subject.value


def _best_backed(log: Log, task: FoundTask, here: Company, state: RunState) -> SubjectView | None:
    found = next(iter(backed(log, task.digest, here, state)), None)
    return subject_view(log, found.row, found.found, position=1) if found else None


def _best_reported(log: Log, task: FoundTask, here: Company) -> SubjectView | None:
    """The best that nobody checked, by a participant who counts where anybody is named."""
    for number, row in enumerate(islice(vouched(log, task.digest, here), JUDGED_ROWS), start=1):
        placed = place(log, row, here)
        if placed.found.state is RunState.REPORTED:
            return subject_view(log, row, placed.found, position=number)
    return None


def _with_marks(log: Log, subjects: Sequence[SubjectView | None]) -> list[SubjectView | None]:
    """What there is of these with what the log shows of their authors, looked for once."""
    found = iter(with_marks(log, [subject for subject in subjects if subject]))
    return [next(found) if subject else None for subject in subjects]


def _demoted(log: Log, task: FoundTask, here: Company, confirmed: SubjectView | None) -> SubjectView | None:
    """What was confirmed, is no more, and would lead: people who built on it have to know."""
    sign = -1.0 if task.direction == "maximize" else 1.0
    for placed in checked(log, task.digest, here, voices=CHECKING_AUTHORS):
        if confirmed is not None and sign * placed.row.mean >= sign * confirmed.mean:
            return None
        end = None if placed.found.state in OPEN or not placed.attested else confirmed_until(log, placed.row.first)
        if end is not None:
            view = subject_view(log, placed.row, placed.found, position=0)
            return msgspec.structs.replace(view, confirmed_until_ms=end.time_ms)
    return None


def _note(log: Log, task: FoundTask, status: TaskStatus, confirmed: SubjectView | None) -> str:
    """What has to be said of the numbers: that nobody confirmed them, that they are of one kind of hardware."""
    hardware = board_hardware(log, task.digest)
    compared = f"Wall-clock numbers are compared on one kind of hardware: {one_line(hardware, 80)}." if hardware else ""
    return " ".join(filter(None, (_standing_note(log, task, status, confirmed), compared)))


def _standing_note(log: Log, task: FoundTask, status: TaskStatus, confirmed: SubjectView | None) -> str:
    """What has to be said of numbers that nobody confirmed."""
    if status.best is None:
        return f"No run of {task.name} has a value yet."
    if confirmed is not None:
        return ""
    claim = "Reported numbers are their author's claim"
    few = too_few(log)
    return f"{claim}: {few}" if few else f"{claim}: none is confirmed yet."


def closed(baseline: float, best: float, floor: float | None) -> float | None:
    """The share of the way from the baseline to the floor that is done, 0 to 1, for both directions.

    None when there is no way. The best may be a little worse than the baseline when it has more seeds behind it: 0.
    """
    if floor is None or baseline == floor:
        return None
    return min(1.0, max(0.0, (baseline - best) / (baseline - floor)))


def _baseline(log: Log, task: FoundTask, here: Company) -> SubjectRow | None:
    """The subject of the task's own program."""
    return subject_as_said(log, (task.digest, task.baseline, task.budget), here) if task.baseline else None
