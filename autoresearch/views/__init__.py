"""Best, leaderboard, lineage, history: computed from the log, the same on every machine that has the same records."""

from autoresearch.views.models import (
    ClaimView,
    HistoryEntry,
    LineageStep,
    RunView,
    SubjectView,
    TaskStatistics,
)
from autoresearch.views.views import (
    best,
    history,
    leaderboard,
    lineage,
    live_claims,
    run,
    run_view,
    runs,
    state_of,
    statistics,
)

__all__ = [
    "ClaimView",
    "HistoryEntry",
    "LineageStep",
    "RunView",
    "SubjectView",
    "TaskStatistics",
    "best",
    "history",
    "leaderboard",
    "lineage",
    "live_claims",
    "run",
    "run_view",
    "runs",
    "state_of",
    "statistics",
]
