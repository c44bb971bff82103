"""Settling: what is judged of runs becomes rows, in the transaction that stores a record, or in pieces later.

A record that says something of few runs settles them at once, and new runs that nobody verified are settled together.
The rest is noted as unsettled. So is all that comes while rows follow from another trust list, or from other people,
than a log has now: only :func:`settle` takes these in. What a run says of participants, its facts, is settled with it.

Last, programs are ranked as single devices ran them, with the device that published each first (:func:`place`).
Boards are these rows. No committee verifies the repetitions of others, so a program is ranked by the runs of one
device. After an unmerged fork of a device's log its runs count once others verified them.
"""

from __future__ import annotations

import hashlib
import math
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from autoresearch.judging.committee import network_rules
from autoresearch.judging.states import REPLICATE, Judgement
from autoresearch.judging.statistics import CountedRun, TaskRules, pool, rank
from autoresearch.log.rows import (
    CountedVerification,
    Device,
    DeviceRun,
    Entry,
    EntryRow,
    FactRow,
    Place,
    Program,
    RunFacts,
)
from autoresearch.log.standing.belief import find_reach, with_beliefs
from autoresearch.log.standing.cache import cached, roster_of
from autoresearch.log.standing.hiding import hide_stored
from autoresearch.log.standing.precedence import Bans, bans, first_of, settle_copies
from autoresearch.log.standing.verification import checkers_of, count_verifications, is_state_only, judge_now
from autoresearch.log.tables.runs import RIVALS
from autoresearch.log.tables.standings import EVERYBODY, Settled, Weights
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.trust.roster import Trust, Voter
from autoresearch.words import CONTESTED, UPHELD, RunState, VerificationKind

if TYPE_CHECKING:
    from autoresearch.log.log import Log

# Whose word an entry is, see schema.sql.
OTHERS, ATTESTED, DOUBTED = 0, 1, 2
# What an entry is the first of: all that counts, that and unverified runs after a fork, what nobody attested has.
COUNTED, WITH_DOUBTED, UNVOUCHED = 1, 2, 4


def add_new(log: Log, runs: Iterable[RunFacts], settled: Iterable[Settled]) -> list[Device]:
    """Write the entries of new runs that nobody verified where each is all of its program; returns the others."""
    rules = cache(log.tasks.rules)
    entries: dict[Program, Entry] = {}
    others: list[Device] = []
    for run, row in zip(runs, settled, strict=True):
        if not run.valued:
            continue
        program = (run.task, run.seedless, run.budget)
        is_plain = not (run.forked or run.copied)
        if program in entries or not is_plain or not log.entries.is_new(program):
            others.append(Device(*program, run.author))
            continue
        vouch, ruling = (ATTESTED if row.attested else OTHERS), rules(run.task)
        entries[program] = Entry(
            *program,
            run.author,
            vouch,
            run.device if ruling and ruling.clocked else "",
            run.n,
            run.time,
            run.id,
            1,
            run.value,
            _rank(run.value, 1, ruling, run.budget),
            copy=False,
            measured=0,
            place=COUNTED + WITH_DOUBTED if row.attested else UNVOUCHED,
        )
    log.entries.add(entries.values())
    return others


def place(log: Log, devices: Collection[Device]) -> None:
    """Compute anew the entries of programs by devices, and which of each program is the first."""
    log.entries.replace(devices, [entry for device in devices for entry in _entries(log, device)])
    for program in dict.fromkeys(device[:3] for device in devices):
        log.entries.set_places(program, _places(log, program))


def _entries(log: Log, device: Device) -> Iterator[Entry]:
    rules, runs = log.tasks.rules(device.task), log.entries.runs_of(device)
    counted = [run for run in runs if not run.forked or RunState(run.state) in UPHELD]
    attested = [run for run in runs if run.attested]
    words = {
        OTHERS: [run for run in counted if not run.attested],
        ATTESTED: [run for run in counted if run.attested],
        DOUBTED: attested if any(run not in counted for run in attested) else [],
    }
    for vouch, some in words.items():
        by_hardware: defaultdict[str, list[DeviceRun]] = defaultdict(list)
        for run in some:
            by_hardware[run.device if rules and rules.clocked else ""].append(run)
        for hardware, same in by_hardware.items():
            pooled = pool((CountedRun(*run[:7]) for run in same), clocked=False)
            assert pooled is not None, "at least one run"
            first = min(same)
            yield Entry(
                *device,
                vouch,
                hardware,
                first.n,
                first.time,
                first.id,
                pooled.runs,
                pooled.mean,
                _rank(pooled.mean, pooled.runs, rules, device.budget),
                copy=first.copied,
                measured=0 if vouch == DOUBTED else max(run.checkers for run in same),
                place=0,
            )


def _rank(mean: float, runs: int, rules: TaskRules | None, budget: float) -> float | None:
    return rank(mean, runs, rules) if rules and rules.ranks(budget) else None


def _places(log: Log, program: Program) -> Iterator[Place]:
    """The entries of a program whose places have changed."""
    rows, places = log.entries.rivals(program), defaultdict[EntryRow, int](int)
    counted, doubted, others = ([row for row in rows if row.vouch == vouch] for vouch in (ATTESTED, DOUBTED, OTHERS))
    # Where a device has runs after a fork, that entry has its other runs too.
    with_doubted = [*doubted, *(row for row in counted if row.author not in {one.author for one in doubted})]
    for some, what in ((counted, COUNTED), (with_doubted, WITH_DOUBTED), ([] if counted else others, UNVOUCHED)):
        if some:
            places[_first(log, some)] += what
    return (Place(*row[:3], places[row]) for row in rows if places[row] != row.place)


def _first(log: Log, rows: Sequence[EntryRow]) -> EntryRow:
    """The entry of the device that published a program first, of those with the earliest runs."""
    by_device: dict[bytes, EntryRow] = {}
    for row in sorted(rows, key=lambda row: (row.time, row.id))[:RIVALS]:
        by_device.setdefault(row.author, row)
    return first_of(log, by_device.values())


# So many runs of which somebody said something are judged in the transaction of the record that says it.
AT_ONCE = 50
# Of so few people it is found in the transaction of a record about one of them what that changes.
_PEOPLE = 100
# So many runs are settled in one transaction, and of those that somebody verified so many, unless time is over before.
_PIECE, _JUDGED = 200, 50
# And so many programs by devices are ranked in one, and copies found of so many programs and checkpoints.
_PLACED = 50
# Of programs and checkpoints that so few runs share it is found in the transaction of a record which are copies.
_ALIKE = 200


def settle_stored(log: Log, after: int) -> None:
    """Settle what was stored after the record with this number, in the transaction that stores it."""
    with log.reader.pin():
        hide_stored(log, after)
        if not is_weighed(log):
            if not is_trusted(log) or len(roster_of(log).everybody) > _PEOPLE:
                log.standings.put_off(after)
                return
            weigh(log)
        groups = log.evidence.unmatched(AT_ONCE)
        if sum(map(log.evidence.count_like, groups)) <= _ALIKE:
            for group in groups:
                settle_copies(log, group)
        devices = _write_unheard(log, log.standings.new_runs(after))
        if len(runs := log.standings.unsettled(AT_ONCE + 1)) > AT_ONCE:
            log.standings.hold_places(after)
        else:
            devices += _settle(log, runs, math.inf)
            _find_reaches(log)
            # Where others than these are believed by it, or no longer.
            devices += _settle(log, log.standings.unsettled(AT_ONCE), math.inf)
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
    while groups := log.evidence.unmatched(_PLACED):
        with log.writer.settling():
            for group in groups:
                settle_copies(log, group)
                if time.monotonic() > end:
                    break
        if time.monotonic() > end:
            break
    if log.beliefs.unreached():
        with log.writer.settling():
            _find_reaches(log)
    while runs := log.standings.unsettled(_PIECE):
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


class Belief(NamedTuple):
    """What came of believing a run: whether that changed anything, its state, and how many other runs have another."""

    changed: bool
    state: RunState
    others: int


def believe_run(log: Log, run: Record, *, wanted: bool) -> Belief:
    """Believe the value of a run on this machine, or with ``wanted`` false no longer, and settle what follows."""
    body = run.body
    assert isinstance(body, Run)
    with log.writer.settling():
        before = log.beliefs.disbelieved(body.task)
        changed = log.beliefs.believe(run.id, wanted=wanted)
        log.beliefs.unsettle_like(body.task, body.source_digest, run.id)
        find_reach(log, body.task)
        while runs := log.standings.unsettled(_PIECE):
            place(log, dict.fromkeys(_settle(log, runs, math.inf)))
        others = (before ^ log.beliefs.disbelieved(body.task)) - {run.id}
    return Belief(changed, log.standings.of([run.id])[run.id].state, len(others))


def _find_reaches(log: Log) -> None:
    """Of tasks whose runs went, find again what is believed."""
    for task in log.beliefs.unreached():
        find_reach(log, task)


def _settle(log: Log, runs: Sequence[bytes], end: float) -> list[Device]:
    """Settle runs: all that nobody verified, of the others a part, unless time is over before; at least one.

    Returns the programs by devices that this changes.
    """
    heard, facts = log.standings.heard(runs), log.standings.facts(runs)
    log.standings.forget(set(runs) - {run.id for run in facts})
    unheard = [run for run in facts if run.id not in heard]
    devices = _write_unheard(log, unheard)
    some = [run for run in facts if run.id in heard][:_JUDGED]
    done = []
    for run, row in zip(some, _settled(log, some, heard=True), strict=True):
        done.append(row)
        if run.valued:
            devices.append(Device(run.task, run.seedless, run.budget, run.author))
        if time.monotonic() > end:
            break
    done = with_beliefs(log, some[: len(done)], done)
    log.standings.write(done)
    log.credits.forget([run.n for run in unheard])  # they may have lost their verifications
    log.credits.write(done)
    return devices


def _write_unheard(log: Log, runs: Sequence[RunFacts]) -> list[Device]:
    """Settle runs that nobody verified; returns the programs by devices that are to be ranked besides."""
    rows = with_beliefs(log, runs, list(_settled(log, runs, heard=False)))
    log.standings.write(rows)
    return add_new(log, runs, rows)


def _settled(log: Log, runs: Sequence[RunFacts], *, heard: bool) -> Iterator[Settled]:
    """Rows of runs that somebody verified, or of runs that nobody did."""
    voter, named = roster_of(log).voter, log.trust.names_anybody
    rules, banned = cache(log.tasks.rules), bans(log)
    for run in runs:
        record = log.records.get(run.id) if heard else None
        found, ruling = judge_now(log, record) if record else _unheard(run, banned, voter), rules(run.task)
        compared = bool(
            run.valued
            and ruling is not None
            and ruling.ranks(run.budget)
            and (not run.forked or found.state in UPHELD)
            and not run.copied
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


def facts_of(log: Log, run: Record, found: Judgement) -> list[FactRow]:
    """What a run says, by its judgement and the verifications that count; nothing where nobody verified it."""
    if not log.verifications.of(run.id):
        return []
    body, voter = run.body, roster_of(log).voter
    assert isinstance(body, Run)
    facts = [
        FactRow(
            one.id,
            voter(one.author, one.time).root,
            one.voter,
            body.task,
            _kind(one, found.state).value,
            one.time,
            outcome=(1 if one.passed == (found.state in UPHELD) else -1) if one.decides else 0,
            ms=one.spent_ms,
        )
        for one in count_verifications(log, run, found.state)
    ]
    if found.state in UPHELD | CONTESTED:
        author = voter(run.author, run.time)
        used = spent(log, body) if found.state in UPHELD else Spent(0, 0.0)
        own = FactRow(run.id, author.root, author.voter, body.task, found.state.value, run.time)
        own = own._replace(outcome=_OUTCOMES.get(found.state, 0), implausible=used is None)
        own = own._replace(gain=found.improvement if found.state is RunState.CONFIRMED else None)
        facts.append(own._replace(ms=used.cpu_ms, work=used.work) if used else own)
    return facts


def _kind(one: CountedVerification, state: RunState) -> VerificationKind:
    if one.stage == REPLICATE:
        return VerificationKind.REPLICATION
    if state is RunState.REFUTED:
        return VerificationKind.RUBBER_STAMP if one.passed else VerificationKind.REFUTATION
    return VerificationKind.PASSED if one.passed else VerificationKind.FAILED


def spent(log: Log, run: Run) -> Spent | None:
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


def _limit_ms(log: Log, task: bytes) -> float | None:
    limits = (log.tasks.definition(task) or {}).get("limits")
    seconds = limits.get("seconds") if isinstance(limits, Mapping) else None
    return _LIMITS * 1000 * float(seconds) if isinstance(seconds, int | float) else None


def weights_of(log: Log) -> Weights:
    """Whose verifications count in a log, by its trust list."""
    roster, banned = roster_of(log), bans(log).by_key
    # Where trust names nobody all are attested, also those of whom nothing is known.
    keys = {EVERYBODY: bytes([log.trust.names_anybody])}
    for key in roster.everybody | banned.keys():
        course, voters = roster.course(key)
        decisive = course, [banned.get(who) for who in sorted(voters | {key})]
        keys[key] = hashlib.blake2b(repr(decisive).encode(), digest_size=16).digest()
    counts = roster.voter_counts
    return Weights(keys, [at for at, before in zip(counts, [(0, -1), *counts], strict=False) if at[1] != before[1]])


def _unsettle(log: Log, before: Weights, now: Weights) -> None:
    """Note which runs are to be judged again: about which it makes a difference that others count."""
    people = {key for key in before.keys | now.keys if before.keys.get(key) != now.keys.get(key)}
    if EVERYBODY in people:
        log.standings.put_off(0)
    runs, age_ms = log.standings.of_keys(people), network_rules(log.network).age_ms
    for start_ms, end_ms in _differing(before.voters, now.voters):
        runs |= log.standings.verified_in(start_ms + age_ms, end_ms + age_ms)
    if people or runs:
        log.standings.unsettle(runs, people)


def _differing(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> Iterator[tuple[float, float]]:
    """The stretches of time in which two step functions differ; each begins with its value at -1."""
    moments = sorted({moment for moment, _ in (*one, *other)})
    for moment, end in zip(moments, [*moments[1:], math.inf], strict=True):
        if _at(one, moment) != _at(other, moment):
            yield -math.inf if moment == moments[0] else moment, end


def _at(steps: list[tuple[int, int]], moment: int) -> int | None:
    place = bisect_right(steps, moment, key=lambda step: step[0])
    return steps[place - 1][1] if place else None


@lru_cache(maxsize=8)
def _digest(trust: Trust) -> bytes:
    lists = (sorted(trust.attestors), trust.needed, sorted(trust.participants), sorted(trust.founders))
    return hashlib.blake2b(repr(lists).encode(), digest_size=16).digest()


def is_weighed(log: Log) -> bool:
    """Whether rows follow from the trust list and from who is who as they are now."""
    return log.standings.weighed_by() == (_digest(log.trust), True)


def is_trusted(log: Log) -> bool:
    """Whether rows follow from the trust list of this log, or there are none."""
    return log.standings.weighed_by()[0] in (None, _digest(log.trust))


def weigh(log: Log) -> None:
    """Note by whose word runs are judged from now on. Those that this changes are to be judged again.

    Called in :meth:`Writer.settling`, or in the transaction that stores a record.
    """
    weights = weights_of(log)
    before = log.standings.weigh(weights, _digest(log.trust))
    if before.keys:  # else all runs that are there are noted
        _unsettle(log, before, weights)
