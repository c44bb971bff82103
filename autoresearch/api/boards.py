"""Tasks, and the best runs of one."""

from __future__ import annotations

from autoresearch.api.base import Answer
from autoresearch.api.runs import LineageStep, ProgramView, RunView


class TaskStatus(Answer, frozen=True, kw_only=True):
    """A task, and how far the network has come with it. ``archived``: a person put it away on this machine."""

    name: str
    digest: str
    metric: str
    direction: str
    floor: float | None = None
    noise: float = 0.0  # the standard deviation of the value over seeds
    baseline: float | None = None
    best: ProgramView | None = None
    closed: float | None = None  # share of the way from the baseline to the floor, 0..1
    runs: int = 0
    failed: int = 0
    archived: bool = False


class TasksAnswer(Answer, frozen=True, kw_only=True):
    """The published tasks that are not archived here, or all."""

    schema: str = "autoresearch.tasks/1"
    tasks: list[TaskStatus]


class BestAnswer(Answer, frozen=True, kw_only=True):
    """The best confirmed program of a task, and beside it the best provisional and the best reported one.

    ``run`` is the one to build upon, ``@``: the first of these, but one's own before others' where nothing is checked.
    ``demoted`` was the best confirmed one before others came to another number. ``other_tasks`` are the names of the
    other tasks.
    """

    schema: str = "autoresearch.best/1"
    task: TaskStatus
    confirmed: ProgramView | None = None
    provisional: ProgramView | None = None
    reported: ProgramView | None = None
    demoted: ProgramView | None = None
    run: RunView | None = None
    note: str = ""
    other_tasks: list[str] = []


class TopAnswer(Answer, frozen=True, kw_only=True):
    """The leaderboard of a task, section by section. ``other_tasks`` are the names of the other tasks.

    ``hardware`` is the kind whose numbers are compared where the budget is wall-clock time; empty where all are.
    """

    schema: str = "autoresearch.top/1"
    task: TaskStatus
    programs: list[ProgramView]
    note: str = ""
    other_tasks: list[str] = []
    hardware: str = ""


class LineageAnswer(Answer, frozen=True, kw_only=True):
    """The path from the baseline to a run."""

    schema: str = "autoresearch.lineage/1"
    task: TaskStatus | None = None
    steps: list[LineageStep]
