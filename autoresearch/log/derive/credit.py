"""Credit: what a judged run says of its author and of its verifiers, rows of ``fact``; triggers keep their sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from autoresearch.judging.states import REPLICATE, Judgement
from autoresearch.log.derive.step import Items, Step
from autoresearch.log.rows import CountedVerification, FactRow
from autoresearch.log.standing.cache import cached, roster_of
from autoresearch.log.standing.verification import count_verifications, is_state_only
from autoresearch.log.tables.standings import WORK_UNITS, fixed_point
from autoresearch.log.tables.tables import Tables
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.words import CONTESTED, UPHELD, RunState, VerificationKind

# No run or verification counts for more time than about 35 years, so that sums stay whole numbers.
_MOST_MS = 2**40
_INSERT = """
INSERT INTO fact SELECT ?1, n, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13 FROM record WHERE id = ?2
"""
# By a run in one of these states its author was right or wrong.
_OUTCOMES = {RunState.CONFIRMED: 1, RunState.REFUTED: -1}
# No machine that runs one program has more processors than this.
_PROCESSORS = 1024
# A run, and the questions to its model, take no longer together than so many times the task's limit.
_LIMITS = 4


class Spent(NamedTuple):
    """The compute of a run that counts: processor milliseconds, work as a share of the task's budget."""

    cpu_ms: int
    work: float


def derive(log: Tables, runs: Sequence[tuple[int, bytes | None, Judgement | None]], _: float) -> Items:
    """Note what runs say, in place of what they said before: their numbers, ids and judgements."""
    connection = log.reader.connection
    connection.executemany("DELETE FROM fact WHERE n = ?", [(n,) for n, *_ in runs])
    for n, run, judgement in runs:
        if run and judgement:
            rows = _facts_of(log, log.records.get(run), judgement)
            connection.executemany(_INSERT, [(n, *_stored(row)) for row in rows])
    return {}


def _facts_of(log: Tables, run: Record, judgement: Judgement) -> list[FactRow]:
    """What a run says, by its judgement and the verifications that count; nothing where nobody verified it."""
    if not log.verifications.of(run.id):
        return []
    body, voter = run.body_as(Run), roster_of(log).voter
    facts = [
        FactRow(
            verification.id,
            voter(verification.author, verification.time).root,
            verification.voter,
            body.task,
            _kind(verification, judgement.state).value,
            verification.time,
            outcome=(1 if verification.passed == (judgement.state in UPHELD) else -1) if verification.decides else 0,
            ms=verification.spent_ms,
        )
        for verification in count_verifications(log, run, judgement.state)
    ]
    if judgement.state in UPHELD | CONTESTED:
        author = voter(run.author, run.time)
        used = _spent(log, body) if judgement.state in UPHELD else Spent(0, 0.0)
        own = FactRow(run.id, author.root, author.voter, body.task, judgement.state.value, run.time)
        own = own._replace(outcome=_OUTCOMES.get(judgement.state, 0), implausible=used is None)
        own = own._replace(gain=judgement.improvement if judgement.state is RunState.CONFIRMED else None)
        facts.append(own._replace(ms=used.cpu_ms, work=used.work) if used else own)
    return facts


def _kind(verification: CountedVerification, state: RunState) -> VerificationKind:
    if verification.stage == REPLICATE:
        return VerificationKind.REPLICATION
    if state is RunState.REFUTED:
        return VerificationKind.RUBBER_STAMP if verification.passed else VerificationKind.REFUTATION
    return VerificationKind.PASSED if verification.passed else VerificationKind.FAILED


def _spent(log: Tables, run: Run) -> Spent | None:
    """What a run spent; None where it cannot have spent what it states. Nothing of it counts then.

    Processor time is at most that of 1,024 processors in the run's time. Work is the budget of an experiment, which
    every replication spends too: what its author states in ``metrics`` counts nowhere. None counts of a learned state,
    whose training nobody repeats, nor where the budget is time.
    """
    rules = log.tasks.rules(run.task)
    limit_ms = cached(log, ("limit", run.task), lambda: _limit_ms(log, run.task), lasting=True)
    if run.cpu_ms > _PROCESSORS * run.duration_ms or (limit_ms is not None and run.duration_ms > limit_ms):
        return None
    if rules is None or rules.clocked or is_state_only(run):
        return Spent(run.cpu_ms, 0.0)
    return Spent(run.cpu_ms, min(max(run.budget, 0.0), rules.budget) / rules.budget)


def _limit_ms(log: Tables, task: bytes) -> float | None:
    seconds = log.tasks.stated(task, "limits", "seconds")
    return _LIMITS * 1000 * float(seconds) if isinstance(seconds, int | float) else None


def _stored(row: FactRow) -> tuple[object, ...]:
    gain, scale = (None, 0) if row.gain is None else fixed_point(row.gain)
    *first, outcome, ms, implausible, work, _ = row
    return (*first, outcome, min(ms, _MOST_MS), implausible, round(work * WORK_UNITS), gain, scale)


CREDIT = Step("credit", reads="record verification commitment rules task", writes="fact credit", derive=derive)
