"""What a run in a sandbox tells of itself: lines on the result channel, whose descriptor a variable names."""

from __future__ import annotations

import math
import os

import msgspec

from autoresearch.projects.own_process.messages import Done, Figures
from autoresearch.running.channel import Progress, Result


class Teller:
    """Writes figures and the end of a run of so many ``episodes``. Without a channel it writes nothing."""

    def __init__(self, episodes: float) -> None:
        self._episodes = episodes
        self._descriptor = int(os.environ.get("AUTORESEARCH_RESULT_FD", "-1"))

    def figures(self, figures: Figures) -> None:
        """Tell how far it is."""
        done = min(1.0, figures.episodes / self._episodes) if self._episodes else 1.0
        self._write(Progress(fraction=done, step=figures.steps, reward=_finite(figures.recent_reward)))

    def result(self, done: Done) -> None:
        """Tell how it ended. Numbers that are not finite are left out."""
        metrics = {name: float(value) for name, value in done.metrics.items() if math.isfinite(value)}
        curve = tuple(done.curve) if all(map(math.isfinite, done.curve)) else ()
        self._write(Result(status="ok", metrics=metrics, curve=curve))

    def _write(self, event: Progress | Result) -> None:
        if self._descriptor >= 0:
            os.write(self._descriptor, msgspec.json.encode(event) + b"\n")


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
