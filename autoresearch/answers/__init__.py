"""What the daemon's API answers and the commands print: the models, and the builders that fill them from the log."""

from __future__ import annotations

from autoresearch.answers.models import (
    Answer,
    BestAnswer,
    DiffAnswer,
    Event,
    Failure,
    Health,
    LineageAnswer,
    LogAnswer,
    PauseRequest,
    RecordView,
    RunAccepted,
    RunInHand,
    RunRequest,
    ShowAnswer,
    StatusAnswer,
    TaskStatus,
    TopAnswer,
    WorkerStatus,
    WorkRequest,
)

__all__ = [
    "Answer",
    "BestAnswer",
    "DiffAnswer",
    "Event",
    "Failure",
    "Health",
    "LineageAnswer",
    "LogAnswer",
    "PauseRequest",
    "RecordView",
    "RunAccepted",
    "RunInHand",
    "RunRequest",
    "ShowAnswer",
    "StatusAnswer",
    "TaskStatus",
    "TopAnswer",
    "WorkRequest",
    "WorkerStatus",
]
