"""The progress page from the answers of the API. Pure but for reading the templates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autoresearch.api import BestAnswer, ProgressAnswer, RunnerView, RunRow, RunsAnswer
from autoresearch.pages.chart import chart_data
from autoresearch.pages.query import Query
from autoresearch.pages.standing import standing
from autoresearch.sanitise import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressContent:
    """What the progress page shows: its answers, and what its filters offer.

    ``newest`` is the last run, where there is one. ``best_row`` is the best program's run as a row. ``settings`` are
    the names that runs changed.
    """

    query: Query
    runs: RunsAnswer
    progress: ProgressAnswer
    newest: Sequence[RunRow]
    best: BestAnswer
    best_row: RunRow | None = None
    runners: Sequence[RunnerView] = ()
    settings: Sequence[str] = ()

    def values(self) -> dict[str, object]:
        """What the template takes."""
        steps = [mark.time_ms for mark in self.progress.marks if mark.leads or mark.led_by_claim]
        return {
            "query": self.query,
            "answer": self.runs,
            "chart": chart_data(self.progress, self.query),
            "standing": standing(self.best, self.best_row),
            "note": self.best.note,
            "compute_ms": max((run.cost_ms for run in self.newest), default=0),
            "last_step_ms": max(steps, default=0),
            "runners": self.runners,
            "devices": _plain({device for one in self.runners for device in one.devices}),
            "settings": _plain(self.settings),
        }


def _plain(names: Iterable[str]) -> list[str]:
    """Names to choose from: a filter takes them as they are, so those that cannot be shown as they are are left out."""
    return sorted(name for name in names if name and one_line(name) == name)


def no_progress(query: Query) -> dict[str, object]:
    """What the template takes while there is no task."""
    return {"query": query, "answer": None}
