"""Best, leaderboard, lineage, history: computed from the log, the same on every machine that has the same records."""

from autoresearch.views.models import (
    ClaimView,
    HistoryEntry,
    LineageStep,
    RunView,
    SubjectView,
    TaskStatistics,
)
from autoresearch.views.standing import (
    Duty,
    counted_reports,
    duty_for,
    fits,
    judgement,
    make_duty,
    next_duty,
    roster_of,
    state_of,
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
    statistics,
)

__all__ = [
    "ClaimView",
    "Duty",
    "HistoryEntry",
    "LineageStep",
    "RunView",
    "SubjectView",
    "TaskStatistics",
    "best",
    "counted_reports",
    "duty_for",
    "fits",
    "history",
    "judgement",
    "leaderboard",
    "lineage",
    "live_claims",
    "make_duty",
    "next_duty",
    "roster_of",
    "run",
    "run_view",
    "runs",
    "state_of",
    "statistics",
]
