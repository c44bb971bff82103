"""What the daemon's API answers and the commands print: models, and what fills them from the log and the blobs."""

from __future__ import annotations

from autoresearch.answers.boards import best_answer, task_status, tasks_answer, top_answer
from autoresearch.answers.changes import diff_answer, lineage_answer, open_blob, run_checkpoint, run_log, run_source
from autoresearch.answers.finding import FoundTask, find_task
from autoresearch.answers.listing import log_answer, record_view, show_answer
from autoresearch.answers.models import (
    Answer,
    BestAnswer,
    DialRequest,
    DiffAnswer,
    Event,
    Failure,
    FetchRequest,
    Health,
    LineageAnswer,
    LogAnswer,
    NetworkStatus,
    PauseRequest,
    PeersAnswer,
    PeerView,
    RecordView,
    RunAccepted,
    RunInHand,
    RunRequest,
    ShowAnswer,
    StatusAnswer,
    TasksAnswer,
    TaskStatus,
    TopAnswer,
    WorkerStatus,
    WorkRequest,
)
from autoresearch.answers.published import published_task
from autoresearch.answers.references import resolve_reference
from autoresearch.answers.summaries import one_line

__all__ = [
    "Answer",
    "BestAnswer",
    "DialRequest",
    "DiffAnswer",
    "Event",
    "Failure",
    "FetchRequest",
    "FoundTask",
    "Health",
    "LineageAnswer",
    "LogAnswer",
    "NetworkStatus",
    "PauseRequest",
    "PeerView",
    "PeersAnswer",
    "RecordView",
    "RunAccepted",
    "RunInHand",
    "RunRequest",
    "ShowAnswer",
    "StatusAnswer",
    "TaskStatus",
    "TasksAnswer",
    "TopAnswer",
    "WorkRequest",
    "WorkerStatus",
    "best_answer",
    "diff_answer",
    "find_task",
    "lineage_answer",
    "log_answer",
    "one_line",
    "open_blob",
    "published_task",
    "record_view",
    "resolve_reference",
    "run_checkpoint",
    "run_log",
    "run_source",
    "show_answer",
    "task_status",
    "tasks_answer",
    "top_answer",
]
