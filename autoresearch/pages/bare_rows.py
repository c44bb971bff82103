"""A run as a row of a table where the table of its task does not have it: its author withdrew it. Pure."""

from __future__ import annotations

from autoresearch.api import RunRow, RunView
from autoresearch.words import RunMark, RunStatus


def bare_row(run: RunView, *, own: bool = False) -> RunRow:
    """What a run says of itself, as a row."""
    return RunRow(
        id=run.id,
        number=0,
        time_ms=run.time_ms,
        cost_ms=0,
        cpu_ms=run.cpu_ms,
        mark=run.state if run.status == RunStatus.OK else RunMark.FAILED.value,
        state=run.state,
        status=run.status,
        reason=run.reason,
        reported=run.value,
        value=run.value,
        headline=run.title,
        parent=run.parent,
        replicate=run.replicate,
        proposer=run.proposer,
        device=run.device,
        participant=run.participant,
        own=own,
    )
