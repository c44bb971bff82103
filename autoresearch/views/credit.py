"""Credit: what participants have done, as facts with their records. No points, and nothing decays."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field

from autoresearch.api import CreditView, ImprovementView
from autoresearch.log import Log, in_parts
from autoresearch.records import Record, Run, format_id
from autoresearch.verification import EVALUATE, REPLICATE, Judgement
from autoresearch.views.cache import in_snapshot, roster_of
from autoresearch.views.display_names import participant_with_key
from autoresearch.views.plausibility import Spent, spent, verifying_ms
from autoresearch.views.reputation import TrackRecord, mark_view, track_records
from autoresearch.views.verification_state import UPHELD, first_words, judge_soon, judged
from autoresearch.words import RunState


@dataclass(slots=True)
class _Account:
    """One participant's facts while they are gathered; ids are in the order of the records."""

    roots: set[bytes] = field(default_factory=set)
    runs: int = 0
    finished: int = 0
    states: defaultdict[RunState, list[Record]] = field(default_factory=lambda: defaultdict(list))
    cpu_ms: int = 0
    work: float = 0.0
    flops: float = 0.0
    implausible: list[Record] = field(default_factory=list)
    improvement: defaultdict[bytes, list[tuple[float, bytes]]] = field(default_factory=lambda: defaultdict(list))
    passes: list[Record] = field(default_factory=list)
    fails: list[Record] = field(default_factory=list)
    replications: list[Record] = field(default_factory=list)
    refutations: list[Record] = field(default_factory=list)
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
        judge_soon(log, part)
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
    for record, report in first_words(log, run):
        account = book.of(record.author, record.time)
        account.verifying_ms += verifying_ms(log, run, record)
        if report.stage == REPLICATE:
            account.replications.append(record)
        elif report.stage == EVALUATE:
            (account.passes if report.passed else account.fails).append(record)
            if found.state is RunState.REFUTED and not report.passed:
                account.refutations.append(record)


def _add(account: _Account, found: Spent | None, run: Record) -> None:
    """Add what a run spent. Sums stay finite whatever budgets tasks have."""
    if found is None:
        account.implausible.append(run)
        return
    account.cpu_ms += found.cpu_ms
    account.work = min(account.work + found.work, sys.float_info.max)
    account.flops = min(account.flops + found.flops, sys.float_info.max)


def _view(log: Log, who: bytes, account: _Account, book: _Book, records: dict[bytes, TrackRecord]) -> CreditView:
    known = [records[voter] for voter in sorted(account.voters | {who}) if voter in records]
    now = records.get(who, TrackRecord(who))
    return CreditView(
        participant=who.hex(),
        keys=sorted(root.hex() for root in account.roots),
        attested=book.is_attested(account),
        runs=account.runs,
        finished=account.finished,
        provisional=_ids(account.states[RunState.PROVISIONAL]),
        confirmed=_ids(account.states[RunState.CONFIRMED]),
        not_replicated=_ids(account.states[RunState.NOT_REPLICATED]),
        refuted=_ids(account.states[RunState.REFUTED] + account.states[RunState.FRAUD]),
        cpu_ms=account.cpu_ms,
        work=account.work,
        flops=account.flops,
        implausible=_ids(account.implausible),
        improvements=[
            ImprovementView(
                task=task.hex(), total=sum(gain for gain, _ in gains), runs=[format_id(run) for _, run in gains]
            )
            for task, gains in sorted(account.improvement.items())
        ],
        passes=_ids(account.passes),
        fails=_ids(account.fails),
        replications=_ids(account.replications),
        refutations=_ids(account.refutations),
        verifying_ms=account.verifying_ms,
        consecutive_valid=now.consecutive_valid,
        banned_until_ms=now.banned_until_ms,
        marks=[mark_view(mark) for record in known for mark in record.marks],
        known_as=[participant_with_key(log, root) for root in sorted(account.roots)],
    )


def _ids(records: list[Record]) -> list[str]:
    return [format_id(record.id) for record in sorted(records, key=lambda record: (record.time, record.id))]
