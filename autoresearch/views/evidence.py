"""EvidenceItem against the authors of records: forks, chosen seeds, false lineages, false values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from autoresearch.log import Fork, Log, task_of
from autoresearch.records import Record, Run, Verification
from autoresearch.verification import EVALUATE, network_rules
from autoresearch.views.cache import cache_of, cached, roster_of
from autoresearch.views.verification_state import counted_reports, judged
from autoresearch.words import Consequence, EvidenceKind, RunState


class EvidenceItem(NamedTuple):
    """EvidenceItem: what ``records`` prove against the device that signed the first of them, and the consequence.

    ``time_ms`` is the time of the record that completed it, ``until_ms`` the end of the consequence.
    """

    kind: EvidenceKind
    device: bytes
    records: tuple[bytes, ...]
    time_ms: int
    follows: Consequence
    until_ms: int | None = None


def all_evidence(log: Log) -> list[EvidenceItem]:
    """All evidence in a log, the newest first."""
    return cached(log, "evidence", lambda: _all_evidence(log))


def _all_evidence(log: Log) -> list[EvidenceItem]:
    every = [*_forks(log), *_frauds(log), *_values(log, log.verifications.verified())]
    return sorted(every, key=lambda one: (-one.time_ms, one.kind, one.records))


def evidence_with(log: Log, kind: EvidenceKind, record: bytes) -> EvidenceItem | None:
    """The evidence of a kind that a record is part of, if there is any. Reads no more than needed."""
    match kind:
        case EvidenceKind.FORK:
            found = _forks(log)
        case EvidenceKind.SEED | EvidenceKind.LINEAGE:
            found = _frauds(log)
        case EvidenceKind.VALUE:
            there = log.records.find(record)
            of = there.body.run if there is not None and isinstance(there.body, Verification) else record
            found = _values(log, [of])
    return next((one for one in found if one.kind is kind and record in one.records), None)


def fork_at(log: Log, author: bytes, seq: int) -> Fork | None:
    """The fork of a device at a sequence number, if it has one there."""
    return next((fork for fork in log.devices.forks(author) if fork.seq == seq), None)


def merge_of(log: Log, fork: Fork) -> bytes | None:
    """The newest merge record of a device's root key for a fork; None where there is none."""
    return next(iter(log.devices.merges(fork.author)), None) if fork.merged else None


def evaluations(log: Log, run: Record) -> list[bytes]:
    """The evaluations of a run that count: first those against it, then those for it, the oldest first."""
    author = roster_of(log).voter(run.author, run.time).voter
    counted = [
        (report.passed, report.order, record.id)
        for record, report in counted_reports(log, run)
        if report.stage == EVALUATE and report.attested and report.measured and report.voter != author
    ]
    return [record for _, _, record in sorted(counted)]


def _forks(log: Log) -> Iterator[EvidenceItem]:
    for fork in log.devices.forks():
        times = [record.time for record_id in fork.ids if (record := log.records.find(record_id)) is not None]
        follows = Consequence.MERGED if fork.merged else Consequence.UNCOUNTED
        yield EvidenceItem(EvidenceKind.FORK, fork.author, fork.ids, max(times, default=0), follows)


def _frauds(log: Log) -> Iterator[EvidenceItem]:
    """The frauds, each with its kind. A run may have both a chosen seed and a parent on another task."""
    ban_ms = network_rules(log.network).ban_ms
    for row in cache_of(log).frauds:
        record = log.records.get(row.id)
        banned = (Consequence.BANNED, row.time + ban_ms)
        if log.evidence.has_chosen_seed(row.id):
            yield EvidenceItem(EvidenceKind.SEED, row.author, (row.id,), row.time, *banned)
        parent = made_up_parent(log, record)
        if parent is not None:
            yield EvidenceItem(EvidenceKind.LINEAGE, row.author, (row.id, parent), row.time, *banned)


def made_up_parent(log: Log, record: Record) -> bytes | None:
    """The parent of a run when it is in the log and on another task, else None."""
    body = record.body
    if not isinstance(body, Run) or body.parent is None:
        return None
    parent = log.records.find(body.parent)
    return parent.id if parent is not None and task_of(parent.body) != body.task else None


def _values(log: Log, runs: Iterable[bytes]) -> Iterator[EvidenceItem]:
    """The disputed and refuted ones of these runs, each with the evaluations that came to another value."""
    words = {RunState.DISPUTED: Consequence.DISPUTED, RunState.REFUTED: Consequence.REFUTED}
    for run_id in runs:
        run = log.records.find(run_id)
        if run is None or not isinstance(run.body, Run) or (state := judged(log, run).state) not in words:
            continue
        author = roster_of(log).voter(run.author, run.time).voter
        against = [
            record
            for record, report in counted_reports(log, run)
            if (report.stage, report.attested, report.measured, report.passed) == (EVALUATE, True, True, False)
            and report.voter != author
        ]
        time_ms = max((record.time for record in against), default=run.time)
        records = (run.id, *(record.id for record in against))
        yield EvidenceItem(EvidenceKind.VALUE, run.author, records, time_ms, words[state])
