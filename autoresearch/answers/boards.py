"""How far a task has come: its numbers, its best, its leaderboard."""

from __future__ import annotations

from autoresearch.answers.finding import FoundTask, task_of
from autoresearch.answers.models import BestAnswer, TasksAnswer, TaskStatus, TopAnswer
from autoresearch.log import Log, SubjectRow
from autoresearch.records import parse_id
from autoresearch.views import SubjectView, leaderboard, run, statistics
from autoresearch.words import STOPPED, RunState, RunStatus

# What may still turn out to be the best, and as far down the board as such a subject is looked for.
OPEN_STATES = (RunState.REPORTED, RunState.PROVISIONAL, RunState.DISPUTED)
OPEN_ROWS = 20
# As far down the board as a confirmed subject is looked for.
BOARD_ROWS = 200
DEFAULT_ROWS = 20


def task_status(log: Log, task: FoundTask) -> TaskStatus:
    """The task and how far the network has come with it; ``best`` is the confirmed one, or else the reported one."""
    numbers = statistics(log, task.digest)
    confirmed, reported = leaders(log, task)
    best = confirmed or reported
    baseline = _baseline(log, task)
    return TaskStatus(
        name=task.name,
        digest=task.digest.hex(),
        metric=task.metric,
        direction=task.direction,
        floor=task.floor,
        baseline=baseline.mean if baseline else None,
        best=best,
        closed=closed(baseline.mean, best.mean, task.floor) if baseline and best else None,
        runs=numbers.runs,
        failed=sum(count for status, count in numbers.statuses.items() if status not in {RunStatus.OK, *STOPPED}),
    )


def tasks_answer(log: Log) -> TasksAnswer:
    """All tasks that somebody published, those with the most runs first."""
    published = [task_of(log, digest) for digest in dict.fromkeys(row.digest for row in log.tasks())]
    tasks = [task_status(log, task) for task in published if task is not None]
    return TasksAnswer(tasks=sorted(tasks, key=lambda task: (-task.runs, task.digest)))


def best_answer(log: Log, task: FoundTask) -> BestAnswer:
    """The best confirmed subject and the best that is only reported; ``run`` stands for the first of the two."""
    status = task_status(log, task)
    confirmed, reported = leaders(log, task)
    note = ""
    if status.best is None:
        note = f"No run of {task.name} has a value yet."
    elif confirmed is None:
        note = (
            "Reported numbers are their author's claim: none is confirmed yet, "
            f"and verification needs at least {log.network.verify_least} participants."
        )
    leader = run(log, parse_id(status.best.id)) if status.best else None
    return BestAnswer(task=status, confirmed=confirmed, reported=reported, run=leader, note=note)


def top_answer(log: Log, task: FoundTask, *, limit: int = DEFAULT_ROWS) -> TopAnswer:
    """The leaderboard of a task."""
    return TopAnswer(task=task_status(log, task), subjects=leaderboard(log, task.digest, limit))


def leaders(log: Log, task: FoundTask) -> tuple[SubjectView | None, SubjectView | None]:
    """The best confirmed subject, and the best of those that are not found to be wrong or no better."""
    checked = log.verified_runs(task.digest)
    confirmed = None
    if checked:
        board = leaderboard(log, task.digest, BOARD_ROWS, only=checked)
        confirmed = next((subject for subject in board if subject.state == RunState.CONFIRMED), None)
    board = leaderboard(log, task.digest, OPEN_ROWS)
    return confirmed, next((subject for subject in board if subject.state in OPEN_STATES), None)


def closed(baseline: float, best: float, floor: float | None) -> float | None:
    """The share of the way from the baseline to the floor that is done, 0 to 1, for both directions.

    None when there is no way. The best may be a little worse than the baseline when it has more seeds behind it: 0.
    """
    if floor is None or baseline == floor:
        return None
    return min(1.0, max(0.0, (baseline - best) / (baseline - floor)))


def _baseline(log: Log, task: FoundTask) -> SubjectRow | None:
    """The subject of the task's own program."""
    return log.subject(task.digest, task.baseline, task.budget) if task.baseline else None
