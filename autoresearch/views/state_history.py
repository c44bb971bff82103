"""The history of a run's state: after each verification, in the order of the records."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from autoresearch.log import Log
from autoresearch.records import Record, Run
from autoresearch.verification import Report
from autoresearch.views.verification_state import counted_reports, judge_reports
from autoresearch.words import RunState


class Change(NamedTuple):
    """A change of state: by which record, and its time. The first is the run's publication."""

    state: RunState
    record: bytes
    time_ms: int


def states_over_time(log: Log, run_id: bytes) -> list[Change]:
    """The states of a run, the oldest first: a function of the records, whenever they arrived."""
    run = log.records.get(run_id)
    if not isinstance(run.body, Run):
        return []
    # Unattested and repeated verifications change no state, so they are skipped: any number of them takes no time.
    first: dict[tuple[bytes, str, int], tuple[Record, Report]] = {}
    for record, report in sorted(counted_reports(log, run), key=lambda pair: pair[1].order):
        if report.attested:
            first.setdefault((report.voter, report.stage, report.round), (record, report))
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
