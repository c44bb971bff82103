"""Credit: what participants have done, as facts with their records, without points and without decay.

Also the evidence against authors (forks, chosen seeds, false lineages, false values), and how the runs that cite a note
ended.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from autoresearch import words
from autoresearch.errors import AmbiguousId, NotFound, UsageError
from autoresearch.judging.committee import network_rules
from autoresearch.judging.states import EVALUATE, Judgement
from autoresearch.log.log import Log
from autoresearch.log.rows import CreditRow, Fork, HistoryRow
from autoresearch.log.standing.answers import CreditView, ImprovementView, RecordsView
from autoresearch.log.standing.cache import in_snapshot, roster_of
from autoresearch.log.standing.context import TrustContext, participant_with_key, whose
from autoresearch.log.standing.participants import TrackRecord, mark_view, track_records
from autoresearch.log.standing.verification import counted_reports, judgements
from autoresearch.record.encoding import SHORT, format_id
from autoresearch.record.kinds import Run, Verification, task_of_body
from autoresearch.record.record import Record
from autoresearch.text import NOTE_EVIDENCE


class EvidenceItem(NamedTuple):
    """EvidenceItem: what ``records`` prove against the device that signed the first of them, and the consequence.

    ``time_ms`` is the time of the record that completed it, ``until_ms`` the end of the consequence.
    """

    kind: words.EvidenceKind
    device: bytes
    records: tuple[bytes, ...]
    time_ms: int
    follows: words.Consequence
    until_ms: int | None = None


@in_snapshot
def all_evidence(log: Log) -> list[EvidenceItem]:
    """All evidence in a log, the newest first."""
    every = [*_forks(log), *_frauds(log), *_values(log)]
    return sorted(every, key=lambda item: (-item.time_ms, item.kind, item.records))


def evidence_with(log: Log, kind: words.EvidenceKind, record: bytes) -> EvidenceItem | None:
    """The evidence of a kind that a record is part of, if there is any. Reads no more than needed."""
    match kind:
        case words.EvidenceKind.FORK:
            items = _forks(log)
        case words.EvidenceKind.SEED | words.EvidenceKind.LINEAGE:
            items = _frauds(log)
        case words.EvidenceKind.VALUE:
            stored = log.records.find(record)
            of = stored.body.run if stored is not None and isinstance(stored.body, Verification) else record
            items = _values(log, of)
    return next((item for item in items if item.kind is kind and record in item.records), None)


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
        follows = words.Consequence.MERGED if fork.merged else words.Consequence.UNCOUNTED
        yield EvidenceItem(words.EvidenceKind.FORK, fork.author, fork.ids, max(times, default=0), follows)


def _frauds(log: Log) -> Iterator[EvidenceItem]:
    """The frauds, each with its kind. A run may have both a chosen seed and a parent on another task."""
    ban_ms = network_rules(log.network).ban_ms
    for row in log.evidence.frauds():
        record = log.records.get(row.id)
        banned = (words.Consequence.BANNED, row.time + ban_ms)
        if log.evidence.has_chosen_seed(row.id):
            yield EvidenceItem(words.EvidenceKind.SEED, row.author, (row.id,), row.time, *banned)
        parent = made_up_parent(log, record)
        if parent is not None:
            yield EvidenceItem(words.EvidenceKind.LINEAGE, row.author, (row.id, parent), row.time, *banned)


def made_up_parent(log: Log, record: Record) -> bytes | None:
    """The parent of a run when it is in the log and on another task, else None."""
    body = record.body
    if not isinstance(body, Run) or body.parent is None:
        return None
    parent = log.records.find(body.parent)
    return parent.id if parent is not None and task_of_body(parent.body) != body.task else None


def _values(log: Log, run: bytes | None = None) -> Iterator[EvidenceItem]:
    """The disputed and refuted runs, or this one if it is, each with the evaluations that came to another value."""
    consequences = {
        words.RunState.DISPUTED: words.Consequence.DISPUTED,
        words.RunState.REFUTED: words.Consequence.REFUTED,
    }
    for row in log.credits.doubted(run):
        against = log.credits.evaluations_against(row.n)
        time_ms = max((time_ms for time_ms, _ in against), default=row.time)
        records = (row.run, *(record for _, record in against))
        yield EvidenceItem(
            words.EvidenceKind.VALUE, row.author, records, time_ms, consequences[words.RunState(row.what)]
        )


# Of one note so many runs are looked at: ids are hashes, so that these are as good as drawn at random.
CITING_MOST = 100
_ID = re.compile(rf"\b[a-z2-7]{{{SHORT},59}}\b")


class Citation(NamedTuple):
    """A run that cites a note. ``better`` than its parent run; None where that cannot be said."""

    run: bytes
    time: int
    better: bool | None


@dataclass(frozen=True, slots=True)
class Citations:
    """The runs that count of those that cite a note, the newest first."""

    runs: tuple[Citation, ...] = ()

    @property
    def better(self) -> int:
        """How many were better than their parent run."""
        return sum(run.better is True for run in self.runs)

    @property
    def worse(self) -> int:
        """How many failed or were no better."""
        return sum(run.better is False for run in self.runs)

    @property
    def state(self) -> words.HypothesisState:
        """What became of the note, if it is a hypothesis."""
        if not self.runs:
            return words.HypothesisState.OPEN
        if self.better == self.worse:
            return words.HypothesisState.TRIED
        return words.HypothesisState.HELD if self.better > self.worse else words.HypothesisState.REFUTED


@in_snapshot
def citations(
    log: Log, task: bytes, notes: Collection[bytes], context: TrustContext, *, me: bytes | None = None
) -> dict[bytes, Citations]:
    """What became of the runs that cite these notes; a note that no run cites is left out.

    Runs of unattested participants do not count where trust names anybody, nor those with another than the task's
    full budget. Of a run that repeats its parent's program only the failure counts.
    """
    rules = log.tasks.rules(task)
    if rules is None:
        return {}
    citing = {note: list(islice(log.mentions.runs_that_link(note), CITING_MOST)) for note in notes}
    rows = {row.id: row for row in log.runs.history_of({run for runs in citing.values() for run in runs})}
    counted = {
        run: row
        for run, row in rows.items()
        if row.budget == rules.budget
        and row.status not in words.STOPPED
        and is_heard(row.author, row.time, context, me)
    }
    parents = {row.id: row for row in log.runs.history_of({row.parent for row in counted.values() if row.parent})}
    judged = judgements(log, [*counted, *parents])
    outcomes = {
        run: Citation(run, row.time, _is_better(judged, row, parents.get(row.parent or b""), rules.sign))
        for run, row in sorted(counted.items(), key=lambda item: (-item[1].time, item[0]))
    }
    cited = {
        note: tuple(citation for run, citation in outcomes.items() if run in set(runs)) for note, runs in citing.items()
    }
    return {note: Citations(runs) for note, runs in cited.items() if runs}


def is_heard(author: bytes, time_ms: int, context: TrustContext, me: bytes | None) -> bool:
    """Whether what an author wrote comes before that of strangers: an attested participant's, or one's own."""
    return author == me or any(whose(author, time_ms, context))


def _is_better(
    judged: Mapping[bytes, Judgement], row: HistoryRow, parent: HistoryRow | None, sign: float
) -> bool | None:
    """Whether a run was better than its parent; None where that cannot be said."""
    if row.status != words.RunStatus.OK:
        return False
    if parent is None or parent.seedless == row.seedless:
        return None
    after, before = _value(judged[row.id], row), _value(judged[parent.id], parent)
    if after is None or before is None:
        return None
    return sign * (after - before) < 0


def _value(judgement: Judgement, row: HistoryRow) -> float | None:
    """What others measured where the run is upheld, else what it reports; None where it is in doubt."""
    if judgement.state in words.UPHELD and judgement.value is not None:
        return judgement.value
    return None if judgement.state in words.DOUBTED or row.forked else row.value


def runs_named_in(log: Log, task: bytes, text: str) -> tuple[bytes, ...]:
    """The runs on a task that a text names by their ids, or by beginnings of ids of eight characters and more."""
    named: dict[bytes, None] = {}
    for word in dict.fromkeys(_ID.findall(text)):
        try:
            record = log.records.get(log.records.resolve(word))
        except (NotFound, AmbiguousId, UsageError):
            continue
        if isinstance(record.body, Run) and record.body.task == task:
            named[record.id] = None
    return tuple(named)[:NOTE_EVIDENCE]


# Of one participant so many records of a kind are named, the newest.
NEWEST_MAX = 100


@dataclass(slots=True)
class _Account:
    """The sums of one participant while they are gathered."""

    roots: set[bytes] = field(default_factory=set)
    voters: set[bytes] = field(default_factory=set)
    runs: int = 0
    finished: int = 0
    facts: Counter[str] = field(default_factory=Counter)
    implausible: int = 0
    cpu_ms: int = 0
    work: float = 0.0
    verifying_ms: int = 0
    gains: defaultdict[bytes, list[CreditRow]] = field(default_factory=lambda: defaultdict(list))

    def add(self, row: CreditRow, budget: float) -> None:
        """Add what is settled. Sums stay finite whatever ``budget`` a task has."""
        self.facts[row.what] += row.facts
        if row.what in words.VERIFICATION_KINDS:
            self.verifying_ms += row.ms
            return
        self.cpu_ms += row.ms
        self.implausible += row.implausible
        self.work += row.work * budget
        if row.gains:
            self.gains[row.task].append(row)


@in_snapshot
def credit(log: Log, task: bytes | None = None, *, roots: Collection[bytes] | None = None) -> list[CreditView]:
    """What all participants have done, on all tasks or on one, the most verified compute first.

    With ``roots`` only those with one of these root keys, each fact with its newest records. A run's compute counts
    when it is provisional, confirmed or not replicated (which is no blame), and is plausible.
    """
    roster, now_ms = roster_of(log), log.records.newest_ms()
    accounts: defaultdict[bytes, _Account] = defaultdict(_Account)

    def account(root: bytes, voter: bytes) -> _Account:
        """That of the participant with a root key now. Work before an attestation belongs to it too."""
        of_key = accounts[roster.voter(root, now_ms).voter]
        of_key.roots.add(root)
        of_key.voters.add(voter)
        return of_key

    for device, runs, finished, last_ms in log.credits.runs(task):
        then = roster.voter(device, last_ms)
        device_sums = account(then.root, then.voter)
        device_sums.runs += runs
        device_sums.finished += finished
    for row in log.credits.sums(task):
        rules = log.tasks.rules(row.task) if row.work else None
        account(row.root, row.voter).add(row, rules.budget if rules else 0.0)
    chosen = {who: sums for who, sums in accounts.items() if roots is None or sums.roots.intersection(roots)}
    voters = chosen.keys() | {voter for of_voter in chosen.values() for voter in of_voter.voters}
    records = track_records(log, voters)
    views = [
        _view(log, who, of_voter, records, _Newest(log, task, of_voter.roots if roots is not None else ()))
        for who, of_voter in chosen.items()
    ]
    return sorted(views, key=lambda view: (-view.cpu_ms, -view.verifying_ms, -view.runs, view.participant))


class _Newest(NamedTuple):
    """The newest records of the facts of some root keys on a task, or on all."""

    log: Log
    task: bytes | None
    roots: Collection[bytes]

    def of(self, kinds: Collection[str]) -> list[str]:
        """Those of facts of some kinds."""
        each = [(root, kind) for root in self.roots for kind in kinds]
        return _ids(self.log.credits.newest(root, kind, self.task, NEWEST_MAX) for root, kind in each)

    def implausible(self) -> list[str]:
        """The runs that cannot have spent what they state."""
        return _ids(self.log.credits.implausible(root, self.task, NEWEST_MAX) for root in self.roots)


def _ids(groups: Iterable[list[tuple[int, bytes]]]) -> list[str]:
    newest = sorted((run for several in groups for run in several), reverse=True)[:NEWEST_MAX]
    return [format_id(record) for _, record in newest]


def _view(log: Log, who: bytes, account: _Account, records: dict[bytes, TrackRecord], newest: _Newest) -> CreditView:
    now_ms, roster = log.records.newest_ms(), roster_of(log)
    tracks = [records[voter] for voter in sorted(account.voters | {who}) if voter in records]
    now = records.get(who, TrackRecord(who))

    def of(*kinds: str) -> RecordsView:
        number = sum(account.facts[kind] for kind in kinds)
        return RecordsView(count=number, newest=newest.of(kinds) if number else [])

    return CreditView(
        participant=who.hex(),
        keys=sorted(root.hex() for root in account.roots),
        attested=any(roster.voter(root, now_ms).attested for root in account.roots),
        runs=account.runs,
        finished=account.finished,
        provisional=of(words.RunState.PROVISIONAL),
        confirmed=of(words.RunState.CONFIRMED),
        not_replicated=of(words.RunState.NOT_REPLICATED),
        refuted=of(words.RunState.REFUTED, words.RunState.FRAUD),
        implausible=RecordsView(count=account.implausible, newest=newest.implausible() if account.implausible else []),
        cpu_ms=account.cpu_ms,
        work=account.work,
        improvements=[
            ImprovementView(task=task.hex(), total=sum(row.gain for row in rows), runs=sum(row.gains for row in rows))
            for task, rows in sorted(account.gains.items())
        ],
        passes=of(words.VerificationKind.PASSED, words.VerificationKind.RUBBER_STAMP),
        fails=of(words.VerificationKind.FAILED, words.VerificationKind.REFUTATION),
        replications=of(words.VerificationKind.REPLICATION),
        refutations=of(words.VerificationKind.REFUTATION),
        verifying_ms=account.verifying_ms,
        consecutive_valid=now.consecutive_valid,
        banned_until_ms=now.banned_until_ms,
        marks=[mark_view(mark) for record in tracks for mark in record.marks],
        known_as=[participant_with_key(log, root) for root in sorted(account.roots)],
    )
