"""What a run was before: its state after each verification, in the order of the records, whenever they arrived."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from autoresearch.log import Log
from autoresearch.records import Record, Run
from autoresearch.verification import Report
from autoresearch.views.standing import counted_reports, judge_reports
from autoresearch.words import RunState


class Change(NamedTuple):
    """A run came into a state by a verification, or was published in it: the record, and its time."""

    state: RunState
    record: bytes
    time_ms: int


def states_over_time(log: Log, run_id: bytes) -> list[Change]:
    """The states that a run was in, the first first: a function of the records, not of when they were heard of."""
    run = log.get(run_id)
    if not isinstance(run.body, Run):
        return []
    # What strangers say, or somebody says again, changes no state: it costs no time here, however much it is.
    first: dict[tuple[bytes, str, int], tuple[Record, Report]] = {}
    for record, report in sorted(counted_reports(log, run), key=lambda pair: pair[1].order):
        if report.attested:
            first.setdefault((report.voice, report.stage, report.round), (record, report))
    heard = list(first.values())
    reports = [report for _, report in heard]
    changes = [Change(judge_reports(log, run, []).state, run.id, run.time)]
    for number, (record, _) in enumerate(heard, start=1):
        state = judge_reports(log, run, reports[:number]).state
        if state is not changes[-1].state:
            changes.append(Change(state, record.id, record.time))
    return changes


def confirmed_until(log: Log, run_id: bytes) -> Change | None:
    """The verification after which a run that was confirmed no longer was, or None."""
    changes = states_over_time(log, run_id)
    if not changes or changes[-1].state is RunState.CONFIRMED:
        return None
    ends = [after for before, after in pairwise(changes) if before.state is RunState.CONFIRMED]
    return ends[-1] if ends else None
