"""Participants of a network: how they joined, and their track records.

Which published that they joined with an invite, which of those a founder's node admits; how often one was right in a
row, and its marks.

Track records are never sent: every peer computes the same from the same records. Only decisions of others count: a
confirmed or a refuted run, and verifications on the side that won or lost. They are sums on the disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from autoresearch.log.log import Log
from autoresearch.log.standing.answers import MarkView
from autoresearch.log.standing.cache import cached, in_snapshot, roster_of
from autoresearch.log.standing.precedence import bans
from autoresearch.log.tables.standings import AgainstRow, VoterSum
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Admission, Join
from autoresearch.trust.invite import Invitation, joined
from autoresearch.trust.roster import ADMITTED_MAX
from autoresearch.words import VERIFICATION_KINDS, Mark, RunState, VerificationKind

# The newest are looked at: everybody may publish joins.
JOINS_MAX = 1000
# Of a participant so many marks are told, the newest.
MARKS_MAX = 100
_MARKS = {RunState.REFUTED.value: Mark.FABRICATOR, VerificationKind.RUBBER_STAMP.value: Mark.RUBBER_STAMP}


def joins_of(log: Log) -> Mapping[bytes, int]:
    """By root key the time of the newest join, among the newest of all. Which founder gave the token is not known."""
    return cached(log, "joins", lambda: _joins(log))


def joined_ms(log: Log, root: bytes) -> int:
    """When a participant last published a join, Unix milliseconds; 0 without one."""
    keys = roster_of(log).keys_of({root})
    records = (record for key in keys for record in log.records.newest(kind="join", author=key, limit=JOINS_MAX))
    return max((record.time for record in records if _is_join(log, record.body, root)), default=0)


def founder_seen(log: Log, seen: Mapping[bytes, int]) -> tuple[bytes, int] | None:
    """The founder that was heard of last and when, by its records and by ``seen``, the times of connected devices."""
    roster, sightings = roster_of(log), []
    for founder in log.trust.founders:
        keys = roster.keys_of({founder})
        times = [record.time for key in keys for record in log.records.newest(author=key, limit=1)]
        sightings.append((max([*times, *(seen[key] for key in keys & seen.keys())], default=0), founder))
    return (max(sightings)[1], max(sightings)[0]) if sightings else None


def _joins(log: Log) -> dict[bytes, int]:
    joins: dict[bytes, int] = {}
    for record in log.records.newest(kind="join", limit=JOINS_MAX):
        if isinstance(record.body, Join) and _is_join(log, record.body, record.body.participant):
            joins.setdefault(record.body.participant, record.time)
    return joins


def _is_join(log: Log, body: object, root: bytes) -> bool:
    return isinstance(body, Join) and body.participant == root and joined(body, log.network.id)


def invited(log: Log, invitations: Sequence[Invitation], founder: bytes) -> list[Join]:
    """Those who joined with one of the invites that ``founder`` gave out, and are to be admitted; the first first.

    Each is admitted once by an invite. Who was dismissed after it was made needs another one.
    """
    by_token = {invitation.token: invitation for invitation in invitations}
    spent, due = spent_uses(log, founder), list[Join]()
    roster = roster_of(log)
    counting = set(roster.participants)
    joins = [record for record in log.records.of_kinds(("join",)) if isinstance(record.body, Join)]
    for record in sorted(joins, key=lambda record: (record.time, record.id)):
        join = record.body_as(Join)
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
    the side that won, later than the last time that it was wrong. ``confirmed`` and ``refuted`` count its own runs,
    ``upheld`` and ``overruled`` its verifications. ``marks`` are the newest, the last one last. ``banned_until_ms`` is
    the end of its ban, if it was ever banned.
    """

    voter: bytes
    consecutive_valid: int = 0
    confirmed: int = 0
    refuted: int = 0
    upheld: int = 0
    overruled: int = 0
    marks: tuple[Marked, ...] = ()
    banned_until_ms: int | None = None


def track_record(log: Log, voter: bytes) -> TrackRecord:
    """The track record of one voter."""
    return track_records(log, [voter]).get(voter, TrackRecord(voter))


@in_snapshot
def track_records(log: Log, voters: Collection[bytes] | None = None) -> dict[bytes, TrackRecord]:
    """The track records of all voters that have one, or of these."""
    wrong: defaultdict[bytes, list[Marked]] = defaultdict(list)
    for marked, voter in (*_frauds(log), *_copied(log, voters)):
        if voters is None or voter in voters:
            wrong[voter].append(marked)
    kinds: defaultdict[bytes, dict[str, VoterSum]] = defaultdict(dict)
    for sums in log.credits.of_voters(voters):
        if sums.right or sums.wrong:
            kinds[sums.voter][sums.what] = sums
    last_ms = {voter: max((mark.time_ms for mark in wrong.get(voter, ())), default=-1) for voter in {*kinds, *wrong}}
    in_a_row = log.credits.in_a_row(last_ms)
    return {
        voter: _summed(log, voter, kinds.get(voter, {}), wrong.get(voter, []), in_a_row[voter]) for voter in last_ms
    }


def mark_view(marked: Marked) -> MarkView:
    """A mark, ready for JSON."""
    return MarkView(
        mark=marked.mark.value,
        record=format_id(marked.record),
        evidence=[format_id(record) for record in marked.evidence],
        time_ms=marked.time_ms,
    )


def _frauds(log: Log) -> Iterator[tuple[Marked, bytes]]:
    """The frauds that voters are banned for, by their own devices."""
    voter_of = roster_of(log).voter
    for voter, banned in bans(log).by_key.items():
        for ban in banned:
            if voter_of(ban.device, ban.start_ms).voter == voter:
                yield Marked(Mark.FRAUD, ban.record, (ban.record,), ban.start_ms), voter


def _copied(log: Log, voters: Collection[bytes] | None) -> Iterator[tuple[Marked, bytes]]:
    for copy in log.evidence.copies(voters):
        yield Marked(Mark.COPIER, copy.run, (copy.original,), copy.time_ms), copy.voter


def _summed(log: Log, voter: bytes, kinds: Mapping[str, VoterSum], wrong: list[Marked], in_a_row: int) -> TrackRecord:
    """The track record of a voter, by the sums of what is settled, and by frauds and copies."""
    others = [sums for what, sums in kinds.items() if what in VERIFICATION_KINDS]
    own = [sums for what, sums in kinds.items() if what not in VERIFICATION_KINDS]
    marks = list(wrong)
    if RunState.REFUTED in kinds or VerificationKind.RUBBER_STAMP in kinds:
        marks += [_marked(log, row) for row in log.credits.marks(voter, MARKS_MAX)]
    return TrackRecord(
        voter,
        consecutive_valid=in_a_row,
        confirmed=sum(sums.right for sums in own),
        refuted=sum(sums.wrong for sums in own),
        upheld=sum(sums.right for sums in others),
        overruled=sum(sums.wrong for sums in others),
        marks=tuple(sorted(marks, key=lambda marked: (marked.time_ms, marked.record))[-MARKS_MAX:]),
        banned_until_ms=max((ban.end_ms for ban in bans(log).by_key.get(voter, ())), default=None),
    )


def _marked(log: Log, row: AgainstRow) -> Marked:
    """What a refuted run says against its author, or against who passed it."""
    mark = _MARKS[row.what]
    if mark is Mark.RUBBER_STAMP:
        return Marked(mark, row.signed, (row.run,), row.time)
    against = tuple(record for _, record in log.credits.evaluations_against(row.n))
    return Marked(mark, row.run, against, row.time)
