"""The sentence about a run's verdict, from the verifications in a log: what every screen says."""

from __future__ import annotations

from autoresearch.judging.committee import network_rules
from autoresearch.judging.verdicts import missing_sentence, verdict_sentence
from autoresearch.log.log import Log
from autoresearch.log.standing.verification import (
    is_exact,
    is_pairs_only,
    is_state_only,
    judgement,
    voters_at,
)
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.words import UNDECIDED, RunState


def verdict(log: Log, run: Record) -> str:
    """Who measured a run and what follows; of an undecided one in a network that attests participants, what is missing.

    A run of which nobody can measure anything lacks nothing.
    """
    found, body = judgement(log, run.id), run.body
    assert isinstance(body, Run)
    missing = ""
    if found.state in UNDECIDED and body.value is not None and log.trust.names_anybody:
        rules = log.tasks.rules(body.task)
        missing = missing_sentence(
            found,
            voters=voters_at(log, run),
            rules=network_rules(log.network),
            noise=rules.noise if rules else 0.0,
            exact=is_exact(log, body.task),
            has_parent=body.parent is not None,
            pairs_only=is_pairs_only(log, body),
            state_only=is_state_only(body),
        )
    return verdict_sentence(found, missing=missing)


def verdict_of(log: Log, run_id: bytes) -> str:
    """The same for a run in a list; empty where nothing but its author's record tells of it."""
    found = judgement(log, run_id)
    if not (found.voters or any(found.evidence) or found.state is not RunState.REPORTED):
        return ""
    # What is missing follows from the run; nothing is missing of one that is decided, and its record is not read.
    return verdict(log, log.records.get(run_id)) if found.state in UNDECIDED else verdict_sentence(found)
