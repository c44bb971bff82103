"""What an export of an extension returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExportResult:
    """How many runs it wrote, and the commands that read its folder."""

    runs: int
    next_steps: Sequence[str] = ()
