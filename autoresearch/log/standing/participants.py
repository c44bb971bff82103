"""Participants of a network: how they joined, and their track records.

Which published that they joined with an invite, which of those a founder's node admits; how often one was right in a
row, and its marks.

Track records are never stored and never sent: every peer computes the same from the same records. Only decisions of
others count: a confirmed or a refuted run, and verifications on the side that won or lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from autoresearch.judging.states import EVALUATE
from autoresearch.log.log import Log
from autoresearch.log.reader import in_parts
from autoresearch.log.rows import CountedVerification
from autoresearch.log.standing.answers import MarkView
from autoresearch.log.standing.cache import cache_of, cached, in_snapshot, roster_of, verified
from autoresearch.log.standing.precedence import Ban, Copy, bans, copies
from autoresearch.log.standing.verification import counted_verifications, judge_soon, judgement
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Admission, Join
from autoresearch.record.record import Record
from autoresearch.trust.invite import Invitation, joined
from autoresearch.trust.roster import ADMITTED_MAX
from autoresearch.words import UPHELD, Mark, RunState

# The newest are looked at: everybody may publish joins.
JOINS_MAX = 1000


def joins_of(log: Log) -> Mapping[bytes, int]:
    """By root key the time of the newest join, among the newest of all. Which founder gave the token is not known."""
    return cached(log, "joins", lambda: _joins(log), by=("join",))


def joined_ms(log: Log, root: bytes) -> int:
    """When a participant last published a join, Unix milliseconds; 0 without one."""
    keys = roster_of(log).keys_of({root})
    records = (record for key in keys for record in log.records.newest(kind="join", author=key, limit=JOINS_MAX))
    return max((record.time for record in records if _is_join(log, record.body, root)), default=0)


def founder_seen(log: Log, seen: Mapping[bytes, int]) -> tuple[bytes, int] | None:
    """The founder that was heard of last and when, by its records and by ``seen``, the times of connected devices."""
    roster, found = roster_of(log), []
    for founder in log.trust.founders:
        keys = roster.keys_of({founder})
        times = [record.time for key in keys for record in log.records.newest(author=key, limit=1)]
        found.append((max([*times, *(seen[key] for key in keys & seen.keys())], default=0), founder))
    return (max(found)[1], max(found)[0]) if found else None


def _joins(log: Log) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for record in log.records.newest(kind="join", limit=JOINS_MAX):
        if isinstance(record.body, Join) and _is_join(log, record.body, record.body.participant):
            found.setdefault(record.body.participant, record.time)
    return found


def _is_join(log: Log, body: object, root: bytes) -> bool:
    return isinstance(body, Join) and body.participant == root and joined(body, log.network.id)


def invited(log: Log, given: Sequence[Invitation], founder: bytes) -> list[Join]:
    """Those who joined with one of the invites that ``founder`` gave out, and are to be admitted; the first first.

    Each is admitted once by an invite. Who was dismissed after it was made needs another one.
    """
    by_token = {invitation.token: invitation for invitation in given}
    spent, due = spent_uses(log, founder), list[Join]()
    roster = roster_of(log)
    counting = set(roster.participants)
    joins = [record for record in log.records.of_kinds(("join",)) if isinstance(record.body, Join)]
    for record in sorted(joins, key=lambda record: (record.time, record.id)):
        join = record.body
        assert isinstance(join, Join)
        invitation = by_token.get(join.token)
        if invitation is None or join.participant in counting or len(counting) >= ADMITTED_MAX:
            continue
        admitted = spent.setdefault(join.token, set())
        word = roster.decisions.get(join.participant)
        dismissed = word is not None and word.time >= invitation.made_ms
        is_free = len(admitted) < invitation.uses and join.participant not in admitted and not dismissed
        is_device = join.participant not in roster.roots and roster.owners(join.participant)
        if is_free and not is_device and joined(join, log.network.id):
            admitted.add(join.participant)
            counting.add(join.participant)
            due.append(join)
    return due


def spent_uses(log: Log, founder: bytes) -> dict[bytes, set[bytes]]:
    """By token the participants that a founder ever admitted with it, dismissed ones as well."""
    roster, spent = roster_of(log), dict[bytes, set[bytes]]()
    for record in log.records.of_kinds(("admission",)):
        body = record.body
        if isinstance(body, Admission) and body.token and roster.voter(record.author, record.time).root == founder:
            spent.setdefault(body.token, set()).add(body.participant)
    return spent


class Marked(NamedTuple):
    """A mark with its evidence: the participant's own record, and the records by which everybody can check it."""

    mark: Mark
    record: bytes
    evidence: tuple[bytes, ...]
    time_ms: int


class TrackRecord(NamedTuple):
    """The track record of a participant, by its voter.

    ``consecutive_valid`` is how many times in a row it was right: own runs that were confirmed, and verifications on
    the side that won. ``confirmed`` and ``refuted`` count its own runs, ``upheld`` and ``overruled`` its verifications.
    ``banned_until_ms`` is the end of its ban, if it was ever banned.
    """

    voter: bytes
    consecutive_valid: int = 0
    confirmed: int = 0
    refuted: int = 0
    upheld: int = 0
    overruled: int = 0
    marks: tuple[Marked, ...] = ()
    banned_until_ms: int | None = None


class _Event(NamedTuple):
    """A participant was right or wrong; ``order`` is time and id of its record."""

    order: tuple[int, bytes]
    voter: bytes
    right: bool
    own: bool
    marked: Marked | None = None


class _Ledger:
    """The events of all verified runs, by run and by voter; a run is entered anew when others say something of it."""

    def __init__(self) -> None:
        self._of_run: dict[bytes, Sequence[_Event]] = {}
        self._runs_of: defaultdict[bytes, set[bytes]] = defaultdict(set)

    def enter(self, log: Log, runs: Collection[bytes]) -> None:
        """Take in what is known of runs now."""
        for part in in_parts(runs):
            judge_soon(log, part, verifications=True)
            for run in part:
                for event in self._of_run.get(run, ()):
                    self._runs_of[event.voter].discard(run)
                self._of_run[run] = _events_of(log, run)
                for event in self._of_run[run]:
                    self._runs_of[event.voter].add(run)

    def events(self, voter: bytes) -> list[_Event]:
        """All events of a voter, in no order."""
        return [event for run in self._runs_of[voter] for event in self._of_run[run] if event.voter == voter]


@in_snapshot
def track_record(log: Log, voter: bytes) -> TrackRecord:
    """The track record of one voter."""
    cache = cache_of(log)
    ledger = cache.ledger
    if not isinstance(ledger, _Ledger):
        ledger = cache.ledger = _Ledger()
        ledger.enter(log, log.verifications.verified())
    else:
        ledger.enter(log, cache.unentered.intersection(verified(log)))
    cache.unentered = set()
    copied = [copy for copy in copies(log) if copy.voter == voter]
    return _summed_up(log, voter, [*ledger.events(voter), *map(_copied, copied)])


@in_snapshot
def track_records(log: Log, *, runs: Collection[bytes] | None = None) -> dict[bytes, TrackRecord]:
    """The track records of all voters that have one; with ``runs`` at least by these runs."""
    if runs is not None and "tracks" not in cache_of(log).known:
        return _computed(log, runs)
    return cached(log, "tracks", lambda: _computed(log, log.verifications.verified()))


def mark_view(marked: Marked) -> MarkView:
    """A mark, ready for JSON."""
    return MarkView(
        mark=marked.mark.value,
        record=format_id(marked.record),
        evidence=[format_id(record) for record in marked.evidence],
        time_ms=marked.time_ms,
    )


def _computed(log: Log, runs: Collection[bytes]) -> dict[bytes, TrackRecord]:
    by_voter: defaultdict[bytes, list[_Event]] = defaultdict(list)
    for part in in_parts(runs):
        judge_soon(log, part, verifications=True)
        for run_id in part:
            for event in _events_of(log, run_id):
                by_voter[event.voter].append(event)
    for copy in copies(log):
        by_voter[copy.voter].append(_copied(copy))
    for voter in bans(log).by_key:
        if any(_frauds(log, voter)):
            by_voter[voter] += []
    return {voter: _summed_up(log, voter, events) for voter, events in by_voter.items()}


def _summed_up(log: Log, voter: bytes, events: Iterable[_Event]) -> TrackRecord:
    """One voter's track record, by the events of runs and copies, in no order."""
    ordered = sorted([*events, *_frauds(log, voter)], key=lambda event: event.order)
    return _summed(voter, ordered, bans(log).by_key.get(voter, [])) if ordered else TrackRecord(voter)


def _frauds(log: Log, voter: bytes) -> Iterator[_Event]:
    """The frauds that a voter is banned for, by its own devices."""
    voter_of = roster_of(log).voter
    for ban in bans(log).by_key.get(voter, ()):
        if voter_of(ban.device, ban.start_ms).voter == voter:
            marked = Marked(Mark.FRAUD, ban.record, (ban.record,), ban.start_ms)
            yield _Event((ban.start_ms, ban.record), voter, right=False, own=True, marked=marked)


def _copied(copy: Copy) -> _Event:
    marked = Marked(Mark.COPIER, copy.run, (copy.original,), copy.time_ms)
    return _Event((copy.time_ms, copy.run), copy.voter, right=False, own=True, marked=marked)


def _events_of(log: Log, run_id: bytes) -> list[_Event]:
    """The participants that were right or wrong about a run, as far as that is decided; none of one that may come."""
    run = log.records.find(run_id)
    if run is None or run.kind != "run":
        return []
    state = judgement(log, run.id).state
    if state not in UPHELD and state is not RunState.REFUTED:
        return []
    author, counted = roster_of(log).voter(run.author, run.time).voter, counted_verifications(log, run)
    events = [_verifier(run, one, state) for one in counted if one.decides]
    if state is RunState.REFUTED:
        against = tuple(one.id for one in sorted(counted) if one.stage == EVALUATE and not one.passed)
        marked = Marked(Mark.FABRICATOR, run.id, against, run.time)
        events.append(_Event((run.time, run.id), author, right=False, own=True, marked=marked))
    elif state is RunState.CONFIRMED:
        events.append(_Event((run.time, run.id), author, right=True, own=True))
    return events


def _verifier(run: Record, one: CountedVerification, state: RunState) -> _Event:
    marked = None
    if one.stage == EVALUATE and one.passed and state is RunState.REFUTED:
        marked = Marked(Mark.RUBBER_STAMP, one.id, (run.id,), one.time)
    return _Event((one.time, one.id), one.voter, right=one.passed == (state in UPHELD), own=False, marked=marked)


def _summed(voter: bytes, events: list[_Event], banned: Sequence[Ban]) -> TrackRecord:
    """One voter's events, in order, as its track record."""
    streak = 0
    for event in events:
        streak = streak + 1 if event.right else 0
    marks = tuple(event.marked for event in events if event.marked)
    return TrackRecord(
        voter,
        consecutive_valid=streak,
        confirmed=sum(event.own and event.right for event in events),
        refuted=sum(marked.mark is Mark.FABRICATOR for marked in marks),
        upheld=sum(not event.own and event.right for event in events),
        overruled=sum(not event.own and not event.right for event in events),
        marks=marks,
        banned_until_ms=max((ban.end_ms for ban in banned), default=None),
    )
