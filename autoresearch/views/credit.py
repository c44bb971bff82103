"""What a participant has done that others can count: no points, nothing that decays, each fact with its records."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field

from autoresearch.log import Log
from autoresearch.records import Record, Run, Verification, format_id
from autoresearch.verification import EVALUATE, REPLICATE, Judgement
from autoresearch.views.memory import roster_of
from autoresearch.views.models import CreditView, ImprovementView
from autoresearch.views.people import who_is
from autoresearch.views.reputation import UPHELD, TrackRecord, mark_view, track_records
from autoresearch.views.standing import first_words, judged
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
    improvement: defaultdict[bytes, list[tuple[float, bytes]]] = field(default_factory=lambda: defaultdict(list))
    passes: list[Record] = field(default_factory=list)
    fails: list[Record] = field(default_factory=list)
    replications: list[Record] = field(default_factory=list)
    refutations: list[Record] = field(default_factory=list)
    verifying_ms: int = 0
    voices: set[bytes] = field(default_factory=set)


class _Book:
    """The accounts by participant: by the voice that a root key has at the time of the newest record."""

    def __init__(self, log: Log) -> None:
        self._roster = roster_of(log)
        newest = log.records(limit=1)
        self._now_ms = newest[0].time if newest else 0
        self.accounts: defaultdict[bytes, _Account] = defaultdict(_Account)

    def of(self, device: bytes, time_ms: int) -> _Account:
        """The account of whoever a device spoke for at a time; what came before an attestation counts for it too."""
        then = self._roster.voice(device, time_ms)
        account = self.accounts[self._roster.voice(then.root, self._now_ms).voice]
        account.roots.add(then.root)
        account.voices.add(then.voice)
        return account

    def is_attested(self, account: _Account) -> bool:
        """Whether a participant's word counts now."""
        return any(self._roster.voice(root, self._now_ms).attested for root in account.roots)


def credit(log: Log) -> list[CreditView]:
    """What everybody has done, those with the most verified compute first.

    A run's compute counts when others came to its number: provisional, confirmed, or not replicated, which is no blame.
    """
    book = _Book(log)
    for device, runs, finished, last_ms in log.runs_by_author():
        account = book.of(device, last_ms)
        account.runs, account.finished = account.runs + runs, account.finished + finished
    for run_id in log.verified():
        run = log.find(run_id)
        if run is not None and isinstance(run.body, Run):
            _enter(book, log, run, run.body, judged(log, run))
    records = track_records(log)
    views = [_view(log, voice, account, book, records) for voice, account in book.accounts.items()]
    return sorted(views, key=lambda view: (-view.cpu_ms, -view.verifying_ms, -view.runs, view.participant))


def _enter(book: _Book, log: Log, run: Record, body: Run, found: Judgement) -> None:
    """What one verified run says of its author and of who verified it."""
    author = book.of(run.author, run.time)
    author.states[found.state].append(run)
    if found.state in UPHELD:
        author.cpu_ms += body.cpu_ms
        author.work = _more(author.work, body.metrics.get("work", 0))
        author.flops = _more(author.flops, body.metrics.get("flops", 0))
    if found.state is RunState.CONFIRMED and found.improvement is not None:
        author.improvement[body.task].append((found.improvement, run.id))
    for record, report in first_words(log, run):
        check = record.body
        assert isinstance(check, Verification)
        account = book.of(record.author, record.time)
        account.verifying_ms += check.duration_ms
        if report.stage == REPLICATE:
            account.replications.append(record)
        elif report.stage == EVALUATE:
            (account.passes if report.passed else account.fails).append(record)
            if found.state is RunState.REFUTED and not report.passed:
                account.refutations.append(record)


def _more(total: float, claimed: float) -> float:
    """A sum that stays a number whatever authors claim."""
    return min(total + max(claimed, 0), sys.float_info.max)


def _view(log: Log, who: bytes, account: _Account, book: _Book, records: dict[bytes, TrackRecord]) -> CreditView:
    known = [records[voice] for voice in sorted(account.voices | {who}) if voice in records]
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
        known_as=[who_is(log, root) for root in sorted(account.roots)],
    )


def _ids(records: list[Record]) -> list[str]:
    return [format_id(record.id) for record in sorted(records, key=lambda record: (record.time, record.id))]
