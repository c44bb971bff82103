"""Running strangers' code: sandbox, limits, outcome."""

from __future__ import annotations

from autoresearch.running.channel import Progress
from autoresearch.running.execute import execute
from autoresearch.running.job import Job, Limits, Outcome
from autoresearch.running.level import Level

__all__ = ["Job", "Level", "Limits", "Outcome", "Progress", "execute"]
