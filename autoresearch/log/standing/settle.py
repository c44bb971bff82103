"""Settling: what is judged of runs becomes rows, in the transaction that stores a record, or in pieces later.

A record that says something of few runs settles them at once, and new runs that nobody verified are settled together.
The rest is noted as unsettled. So is all that comes while rows follow from another trust list, or from other people,
than a log has now: only :func:`settle` takes these in.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from autoresearch.judging.states import Judgement
from autoresearch.log.rows import Device, RunFacts
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.facts import facts_of
from autoresearch.log.standing.placing import add_new, place
from autoresearch.log.standing.precedence import Bans, bans, copied_models
from autoresearch.log.standing.verification import checkers_of, judge_now
from autoresearch.log.standing.weighing import is_trusted, is_weighed, weigh
from autoresearch.log.tables.standings import Settled
from autoresearch.trust.roster import Voter
from autoresearch.words import UPHELD, RunState

if TYPE_CHECKING:
    from autoresearch.log.log import Log

# So many runs of which somebody said something are judged in the transaction of the record that says it.
AT_ONCE = 50
# Of so few people it is found in the transaction of a record about one of them what that changes.
_PEOPLE = 100
# So many runs are settled in one transaction, and of those that somebody verified so many, unless time is over before.
_PIECE, _JUDGED = 200, 50
# And so many programs by devices are ranked in one.
_PLACED = 50


def settle_stored(log: Log, after: int) -> None:
    """Settle what was stored after the record with this number, in the transaction that stores it."""
    with log.reader.pin():
        if not is_weighed(log):
            if not is_trusted(log) or len(roster_of(log).everybody) > _PEOPLE:
                log.standings.put_off(after)
                return
            weigh(log)
        devices = _write_unheard(log, log.standings.new_runs(after))
        if len(runs := log.standings.unsettled(AT_ONCE + 1)) > AT_ONCE:
            log.standings.hold_places(after)
        else:
            devices += _settle(log, runs, math.inf)
        devices += log.entries.unranked(AT_ONCE)
        place(log, dict.fromkeys(devices))


def settle(log: Log, seconds: float) -> int:
    """Settle what is not, for about so long, and return how much is left.

    Each transaction is short, since writers wait for it. The caller has nothing else to do with ``log`` meanwhile.
    """
    if not is_weighed(log):
        with log.writer.settling():
            weigh(log)
    end = time.monotonic() + seconds
    while runs := log.standings.unsettled(_PIECE):
        with log.reader.snapshot():  # what takes long at first is read before writers have to wait
            heard = log.standings.heard(runs)
            log.verifications.read_ahead([run for run in runs if run in heard][:_JUDGED])
        with log.writer.settling():
            place(log, dict.fromkeys(_settle(log, runs, end)))
        if time.monotonic() > end:
            break
    while devices := log.entries.unranked(_PLACED):
        if time.monotonic() > end:
            break
        with log.writer.settling():
            place(log, devices)
    return log.standings.count_unsettled()


def _settle(log: Log, runs: Sequence[bytes], end: float) -> list[Device]:
    """Settle runs: all that nobody verified, of the others a part, unless time is over before; at least one.

    Returns the programs by devices that this changes.
    """
    heard, facts = log.standings.heard(runs), log.standings.facts(runs)
    log.standings.forget(set(runs) - {run.id for run in facts})
    unheard = [run for run in facts if run.id not in heard]
    devices = _write_unheard(log, unheard)
    some = [run for run in facts if run.id in heard][:_JUDGED]
    log.verifications.read_ahead([run.id for run in some])
    done = []
    for run, row in zip(some, _settled(log, some, heard=True), strict=True):
        done.append(row)
        if run.valued:
            devices.append(Device(run.task, run.source_digest, run.budget, run.author))
        if time.monotonic() > end:
            break
    log.standings.write(done)
    log.credits.forget([run.n for run in unheard])  # they may have lost their verifications
    log.credits.write(done)
    return devices


def _write_unheard(log: Log, runs: Sequence[RunFacts]) -> list[Device]:
    """Settle runs that nobody verified; returns the programs by devices that are to be ranked besides."""
    rows = list(_settled(log, runs, heard=False))
    log.standings.write(rows)
    return add_new(log, runs, rows)


def _settled(log: Log, runs: Sequence[RunFacts], *, heard: bool) -> Iterator[Settled]:
    """Rows of runs that somebody verified, or of runs that nobody did."""
    voter, named = roster_of(log).voter, log.trust.names_anybody
    rules, banned = cache(log.tasks.rules), bans(log)
    copied = cache(lambda task, checkpoint: copied_models(log, task, checkpoint))
    for run in runs:
        record = log.records.get(run.id) if heard else None
        found, ruling = judge_now(log, record) if record else _unheard(run, banned, voter), rules(run.task)
        compared = bool(
            run.valued
            and ruling is not None
            and ruling.ranks(run.budget)
            and (not run.forked or found.state in UPHELD)
            and (run.checkpoint is None or run.id not in copied(run.task, run.checkpoint))
        )
        attested = voter(run.author, run.time).attested if named else True
        facts = facts_of(log, record, found) if record else ()
        checkers = len(checkers_of(log, run.id)) if record else 0
        yield Settled(run.n, found, facts, checkers, attested, compared)


def _unheard(run: RunFacts, banned: Bans, voter: Callable[[bytes, int], Voter]) -> Judgement:
    """What is judged of a run that nobody verified."""
    state = RunState.REPORTED
    if run.id in banned.frauds:
        state = RunState.FRAUD
    elif banned.by_key and banned.cover(voter(run.author, run.time).voter, run.time, device=run.author, seq=run.seq):
        state = RunState.BANNED
    return Judgement(state, None, None, 0, 0)
