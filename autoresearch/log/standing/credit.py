"""Credit: what participants have done, as facts with their records, without points and without decay.

Also the evidence against authors (forks, chosen seeds, false lineages, false values), and how the runs that cite a note
ended.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any, NamedTuple

from autoresearch.errors import AmbiguousId, NotFound, UsageError
from autoresearch.judging.committee import network_rules
from autoresearch.judging.states import EVALUATE, REPLICATE, Judgement
from autoresearch.log.log import Log
from autoresearch.log.reader import in_parts
from autoresearch.log.rows import CountedVerification, Fork, HistoryRow
from autoresearch.log.standing.answers import CreditView, ImprovementView
from autoresearch.log.standing.cache import cache_of, cached, in_snapshot, roster_of
from autoresearch.log.standing.context import TrustContext, participant_with_key, whose
from autoresearch.log.standing.participants import TrackRecord, mark_view, track_records
from autoresearch.log.standing.trials import Spent, spent
from autoresearch.log.standing.verification import (
    counted_reports,
    counted_verifications,
    judge_soon,
    judged,
    judging,
)
from autoresearch.record.encoding import SHORT, format_id
from autoresearch.record.kinds import Run, Verification, task_of_body
from autoresearch.record.record import Record
from autoresearch.text import NOTE_EVIDENCE
from autoresearch.words import DOUBTED, STOPPED, UPHELD, Consequence, EvidenceKind, RunState, RunStatus


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
    return parent.id if parent is not None and task_of_body(parent.body) != body.task else None


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


# Of one note so many runs are looked at: ids are hashes, so that these are as good as drawn at random.
CITING_MOST = 100
_ID = re.compile(rf"\b[a-z2-7]{{{SHORT},59}}\b")


class Citations(NamedTuple):
    """How many of the runs that cite a note were better than their parent run, and how many failed or were not."""

    better: int = 0
    worse: int = 0


@in_snapshot
def citations(
    log: Log, task: bytes, notes: Collection[bytes], here: TrustContext, *, me: bytes | None = None
) -> dict[bytes, Citations]:
    """What became of the runs that cite these notes; a note that no run cites is left out.

    Runs of unattested participants do not count where trust names anybody, nor those with another than the task's
    full budget. Of a run that repeats its parent's program only the failure counts.
    """
    rules = log.tasks.rules(task)
    if rules is None:
        return {}
    citing = {note: list(islice(log.mentions.runs_that_link(note), CITING_MOST)) for note in notes}
    found = {row.id: row for row in log.runs.history_of({run for runs in citing.values() for run in runs})}
    heard = {
        run: row
        for run, row in found.items()
        if row.budget == rules.budget and row.status not in STOPPED and is_heard(row.author, row.time, here, me)
    }
    parents = {row.id: row for row in log.runs.history_of({row.parent for row in heard.values() if row.parent})}
    judge_soon(log, [*heard, *parents])
    told = {run: _is_better(log, row, parents.get(row.parent or b""), rules.sign) for run, row in heard.items()}
    counted = {note: [told[run] for run in runs if told.get(run) is not None] for note, runs in citing.items()}
    cited = {note for note, runs in citing.items() if any(run in heard for run in runs)}
    return {note: Citations(told.count(True), told.count(False)) for note, told in counted.items() if note in cited}


def is_heard(author: bytes, time_ms: int, here: TrustContext, me: bytes | None) -> bool:
    """Whether what an author wrote comes before that of strangers: an attested participant's, or one's own."""
    return author == me or any(whose(author, time_ms, here))


def _is_better(log: Log, row: HistoryRow, parent: HistoryRow | None, sign: float) -> bool | None:
    """Whether a run was better than its parent; None where that cannot be said."""
    if row.status != RunStatus.OK:
        return False
    if parent is None or parent.source_digest == row.source_digest:
        return None
    after, before = _value(log, row), _value(log, parent)
    if after is None or before is None:
        return None
    return sign * (after - before) < 0


def _value(log: Log, row: HistoryRow) -> float | None:
    """What others measured where the run is upheld, else what it reports; None where it is in doubt."""
    found = judging(log)(row.id, row.author, row.time, row.seq)
    if found.state in UPHELD and found.value is not None:
        return found.value
    return None if found.state in DOUBTED or row.forked else row.value


def runs_named_in(log: Log, task: bytes, text: str) -> tuple[bytes, ...]:
    """The runs on a task that a text names by their ids, or by beginnings of ids of eight characters and more."""
    found: dict[bytes, None] = {}
    for word in dict.fromkeys(_ID.findall(text)):
        try:
            record = log.records.get(log.records.resolve(word))
        except (NotFound, AmbiguousId, UsageError):
            continue
        if isinstance(record.body, Run) and record.body.task == task:
            found[record.id] = None
    return tuple(found)[:NOTE_EVIDENCE]


@dataclass(slots=True)
class _Account:
    """One participant's facts while they are gathered, under their names in a CreditView where that has them."""

    roots: set[bytes] = field(default_factory=set)
    runs: int = 0
    finished: int = 0
    states: defaultdict[RunState, list[Record]] = field(default_factory=lambda: defaultdict(list))
    cpu_ms: int = 0
    work: float = 0.0
    implausible: list[Record] = field(default_factory=list)
    improvement: defaultdict[bytes, list[tuple[float, bytes]]] = field(default_factory=lambda: defaultdict(list))
    passes: list[CountedVerification] = field(default_factory=list)
    fails: list[CountedVerification] = field(default_factory=list)
    replications: list[CountedVerification] = field(default_factory=list)
    refutations: list[CountedVerification] = field(default_factory=list)
    verifying_ms: int = 0
    voters: set[bytes] = field(default_factory=set)


class _Book:
    """The accounts by participant: by the voter that a root key has at the time of the newest record."""

    def __init__(self, log: Log) -> None:
        self._roster = roster_of(log)
        newest = log.records.newest(limit=1)
        self._now_ms = newest[0].time if newest else 0
        self.accounts: defaultdict[bytes, _Account] = defaultdict(_Account)

    def of(self, device: bytes, time_ms: int) -> _Account:
        """The account of the participant behind a device at a time. Work before an attestation belongs to it too."""
        then = self._roster.voter(device, time_ms)
        account = self.accounts[self._roster.voter(then.root, self._now_ms).voter]
        account.roots.add(then.root)
        account.voters.add(then.voter)
        return account

    def is_attested(self, account: _Account) -> bool:
        """Whether a participant is attested now."""
        return any(self._roster.voter(root, self._now_ms).attested for root in account.roots)


@in_snapshot
def credit(log: Log, task: bytes | None = None) -> list[CreditView]:
    """What all participants have done, on all tasks or on one, the most verified compute first.

    A run's compute counts when it is provisional, confirmed or not replicated (which is no blame), and is plausible.
    """
    book = _Book(log)
    for device, runs, finished, last_ms in log.runs.by_author(task):
        account = book.of(device, last_ms)
        account.runs, account.finished = account.runs + runs, account.finished + finished
    for part in in_parts(log.verifications.verified()):
        judge_soon(log, part, verifications=True)
        for run_id in part:
            run = log.records.find(run_id)
            if run is not None and isinstance(run.body, Run) and task in (None, run.body.task):
                _enter(book, log, run, run.body, judged(log, run))
    records = track_records(log)
    views = [_view(log, voter, account, book, records) for voter, account in book.accounts.items()]
    return sorted(views, key=lambda view: (-view.cpu_ms, -view.verifying_ms, -view.runs, view.participant))


def _enter(book: _Book, log: Log, run: Record, body: Run, found: Judgement) -> None:
    """Add one verified run to the accounts of its author and its verifiers."""
    author = book.of(run.author, run.time)
    author.states[found.state].append(run)
    if found.state in UPHELD:
        _add(author, spent(log, body), run)
    if found.state is RunState.CONFIRMED and found.improvement is not None:
        author.improvement[body.task].append((found.improvement, run.id))
    for one in counted_verifications(log, run):
        account = book.of(one.author, one.time)
        account.verifying_ms += one.spent_ms
        if one.stage == REPLICATE:
            account.replications.append(one)
        elif one.stage == EVALUATE:
            (account.passes if one.passed else account.fails).append(one)
            if found.state is RunState.REFUTED and not one.passed:
                account.refutations.append(one)


def _add(account: _Account, found: Spent | None, run: Record) -> None:
    """Add what a run spent. Sums stay finite whatever budgets tasks have."""
    if found is None:
        account.implausible.append(run)
        return
    account.cpu_ms += found.cpu_ms
    account.work = min(account.work + found.work, sys.float_info.max)


def _view(log: Log, who: bytes, account: _Account, book: _Book, records: dict[bytes, TrackRecord]) -> CreditView:
    known = [records[voter] for voter in sorted(account.voters | {who}) if voter in records]
    now, states = records.get(who, TrackRecord(who)), account.states
    names = {one.name for one in fields(account)}.intersection(CreditView.__struct_fields__)
    gathered: dict[str, Any] = {name: getattr(account, name) for name in names}
    gathered |= {name: _ids(value) for name, value in gathered.items() if isinstance(value, list)}
    return CreditView(
        **gathered,
        participant=who.hex(),
        keys=sorted(root.hex() for root in account.roots),
        attested=book.is_attested(account),
        provisional=_ids(states[RunState.PROVISIONAL]),
        confirmed=_ids(states[RunState.CONFIRMED]),
        not_replicated=_ids(states[RunState.NOT_REPLICATED]),
        refuted=_ids(states[RunState.REFUTED] + states[RunState.FRAUD]),
        improvements=[
            ImprovementView(
                task=task.hex(), total=sum(gain for gain, _ in gains), runs=[format_id(run) for _, run in gains]
            )
            for task, gains in sorted(account.improvement.items())
        ],
        consecutive_valid=now.consecutive_valid,
        banned_until_ms=now.banned_until_ms,
        marks=[mark_view(mark) for record in known for mark in record.marks],
        known_as=[participant_with_key(log, root) for root in sorted(account.roots)],
    )


def _ids(records: Sequence[Record | CountedVerification]) -> list[str]:
    return [format_id(record.id) for record in sorted(records, key=lambda record: (record.time, record.id))]
