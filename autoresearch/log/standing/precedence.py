"""Which of several runs was published first, which are copies, and which records ban their author.

Every peer finds the same in the same records: no participant decides it. Records that prove fraud by themselves ban
their author for a while. A fork of a device's log is evidence too, but its usual cause is a restored copy, so it bans
nobody: runs after it count when others verified them, or once the root key merged it.

The time of a run is its author's statement, so the records of others decide. A voter *saw* a run when it signed the
first record that names the run: a commitment on it, a run that links it, or a child run. The run that two uninvolved
voters saw first was first. Where that decides nothing, the earlier time counts, then the smaller id. The records of a
device have rising numbers, so a record cannot be older than the latest time of one with a smaller number. A new run
links runs of others that its author has heard of, which protects those from back-dated copies.

A repetition comes to the same value and checkpoint and is no copy: only a run that is presented as a discovery is one.
The first author gets the credit.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from autoresearch.judging.committee import network_rules
from autoresearch.log.projection import MENTIONS_MOST
from autoresearch.log.rows import Alike, HeardRow, LikeRow
from autoresearch.log.standing.cache import (
    CHECKPOINTS,
    DISCOVERIES,
    Cache,
    cache_of,
    cached,
    checkpoints_of,
    discoveries_of,
    in_snapshot,
    kept,
    roster_of,
    signed_ms,
)
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.words import RunStatus

if TYPE_CHECKING:
    from autoresearch.log.log import Log


class Ban(NamedTuple):
    """A voter does not count from ``record`` on until ``end_ms`` (exclusive, Unix ms)."""

    record: bytes
    device: bytes
    seq: int
    start_ms: int
    end_ms: int


class Bans(NamedTuple):
    """All bans by voter and by the device that signed the fraud, oldest first; and the records that prove fraud."""

    by_key: Mapping[bytes, Sequence[Ban]]
    frauds: frozenset[bytes]

    def cover(self, voter: bytes, time_ms: int, *, device: bytes = b"", seq: int = 0) -> bool:
        """Whether a voter is banned at a time. Records of ``device`` with a ``seq`` after its fraud are banned too."""
        spoken = any(ban.start_ms < time_ms < ban.end_ms for ban in self.by_key.get(voter, ()))
        return spoken or any(
            seq > ban.seq and time_ms < ban.end_ms for ban in self.by_key.get(device, ()) if ban.device == device
        )


def bans(log: Log) -> Bans:
    """All bans in a log."""
    return cached(log, "bans", lambda: _bans_of(log, cache_of(log)), by=())


def is_banned(log: Log, voter: bytes, time_ms: int, *, device: bytes = b"", seq: int = 0) -> bool:
    """Whether a voter is banned at a time, see :meth:`Bans.cover`."""
    return bans(log).cover(voter, time_ms, device=device, seq=seq)


def _bans_of(log: Log, cache: Cache) -> Bans:
    by_key: defaultdict[bytes, list[Ban]] = defaultdict(list)
    for row in sorted(cache.frauds, key=lambda row: (row.time, row.id)):
        voter = cache.roster.voter(row.author, row.time).voter
        ban = Ban(row.id, row.author, row.seq, row.time, row.time + network_rules(log.network).ban_ms)
        for key in {voter, row.author}:
            by_key[key].append(ban)
    return Bans(dict(by_key), frozenset(row.id for row in cache.frauds))


# So many attested participants besides the authors must have seen a run.
_WITNESSES = 2
# When a voter saw a run, and whether it only built on it. A record that links one run and builds on another with the
# same program shows which of them its author had heard of first.
Seen = tuple[float, bool]
_NEVER: Seen = (math.inf, True)
# So many of the runs that arrived last are read.
_HEARD_MOST = 500
# And so many of one participant: the search for runs like them takes time.
_EACH_MOST = 2 * MENTIONS_MOST


class Published(Protocol):
    """A run with the time that its author states."""

    @property
    def time(self) -> int:
        """Unix milliseconds."""

    @property
    def id(self) -> bytes:
        """The record's id."""

    @property
    def author(self) -> bytes:
        """The device that signed it."""


PublishedT = TypeVar("PublishedT", bound=Published)


def first_of(log: Log, runs: Iterable[PublishedT]) -> PublishedT:
    """The run that was published first, of at least one."""
    first, *others = sorted(runs, key=lambda run: (run.time, run.id))
    if others:
        _read_ahead(log, [first, *others])
    for run in others:
        if was_seen_before(log, run, first):
            first = run
    return first


def _read_ahead(log: Log, runs: Iterable[Published]) -> None:
    """Read at once what says who saw these runs when."""
    cache = cache_of(log)
    wanted = [run.id for run in runs if ("seen", run.id) not in cache.kept]
    log.mentions.read_ahead(wanted)
    named = (said.author for run in wanted for said in log.mentions.of(run))
    log.devices.read_times_ahead([device for device in dict.fromkeys(named) if device not in cache.chains])


def precedes(log: Log, run: Published, other: Published) -> bool:
    """Whether a run was published before another."""
    if was_seen_before(log, run, other):
        return True
    return (run.time, run.id) < (other.time, other.id) and not was_seen_before(log, other, run)


def was_seen_before(log: Log, run: Published, other: Published) -> bool:
    """Whether uninvolved voters saw a run before they saw the other."""
    voter = cache_of(log).roster.voter
    authors = {voter(run.author, run.time).voter, voter(other.author, other.time).voter}
    if len(authors) < 2 or len(_seen(log, run.id)) < _WITNESSES:
        return False
    return _vouched(_seen(log, run.id), authors) < _vouched(_seen(log, other.id), authors)


def _vouched(seen: Mapping[bytes, Seen], authors: set[bytes]) -> Seen:
    """When the last of the required witnesses saw a run."""
    times = sorted(when for who, when in seen.items() if who not in authors)
    return times[_WITNESSES - 1] if len(times) >= _WITNESSES else _NEVER


def _seen(log: Log, run: bytes) -> Mapping[bytes, Seen]:
    """When each voter first named a run."""
    return kept(log, ("seen", run), lambda: (_first_seen(log, run), (run,)))


def _first_seen(log: Log, run: bytes) -> dict[bytes, Seen]:
    roster = cache_of(log).roster
    first: dict[bytes, Seen] = {}
    for said in log.mentions.of(run):
        if said.author not in roster.keys:
            continue
        who = roster.voter(said.author, said.time)
        if who.attested and not is_banned(log, who.voter, said.time, device=said.author, seq=said.seq):
            when: Seen = (signed_ms(log, said.author, said.seq, said.time), said.built)
            first[who.voter] = min(when, first.get(who.voter, when))
    return first


@in_snapshot
def to_link(log: Log, task: bytes, device: bytes, now_ms: int, *, parent: bytes | None) -> list[bytes]:
    """The runs of others that a new run of this device links, besides its parent. None where it is not attested.

    They arrived since the device's last run: the newest first, and of as many participants as possible. Of several with
    one program or one checkpoint only the one that arrived first is linked.
    """
    if not roster_of(log).voter(device, now_ms).attested:
        return []
    found: dict[bytes, list[bytes]] = {}
    named = {parent}
    for run, voter in _first_heard(log, task, device, now_ms, parent):
        if run not in named and not log.mentions.has_named(device, run):
            found.setdefault(voter, []).append(run)
        named.add(run)
    turns = (run for turn in zip_longest(*found.values()) for run in turn if run is not None)
    return [run for run, _ in zip(turns, range(MENTIONS_MOST), strict=False)]


def heard_first(log: Log, run: bytes) -> bytes:
    """The run that arrived first of those with its program or its checkpoint; else the run itself.

    It depends on the order of arrival in this log, so nodes may answer differently.
    """
    row = log.mentions.heard_run(run)
    first = _first(log, row) if row else None
    return first.id if first else run


def _first_heard(
    log: Log, task: bytes, device: bytes, now_ms: int, parent: bytes | None
) -> Iterator[tuple[bytes, bytes]]:
    """Of each run that arrived, the first one like it, with its author's voter. Only those of other voters."""
    roster = roster_of(log)
    me = roster.voter(device, now_ms).voter
    above = log.mentions.heard_run(parent) if parent else None
    looked_at: Counter[bytes] = Counter()
    for row in [*([above] if above else []), *log.mentions.heard(task, device, roster.keys, limit=_HEARD_MOST)]:
        author = roster.voter(row.author, row.time).voter
        looked_at[author] += 1
        if looked_at[author] > _EACH_MOST:
            continue
        first = _first(log, row)
        voter = roster.voter(first.author, first.time).voter if first else me
        if first and voter != me:
            yield first.id, voter


def _first(log: Log, row: HeardRow) -> HeardRow | None:
    """Of attested runs like one, the run that others saw first, else the one that arrived first.

    A node that was offline receives both at once, in an order without meaning.
    """
    voter = roster_of(log).voter
    first: HeardRow | None = None
    for like in log.mentions.heard_like(row):
        if voter(like.author, like.time).attested and (first is None or was_seen_before(log, like, first)):
            first = like
    return first


# A withdrawn copy stays one when so many uninvolved attested participants measured it: it took their time. Until then
# an author that learns of the other run can withdraw its own, and no mark remains.
_MEASURED_BY = 2


class Copy(NamedTuple):
    """A copy, the voter that published it, and the run that it copies."""

    run: bytes
    voter: bytes
    time_ms: int
    original: bytes


def same_models(log: Log) -> dict[bytes, bytes]:
    """The runs whose checkpoint another participant published before, each with the first run that had it."""
    pairs = _pairs(log, CHECKPOINTS)
    return kept(log, "models", lambda: ({row.id: first.id for row, first in pairs}, [("pairs", CHECKPOINTS)]))


def copied_models(log: Log, task: bytes, checkpoint: bytes) -> set[bytes]:
    """The runs on a task with a checkpoint that another participant published before."""
    group = log.evidence.with_checkpoint(task, checkpoint)
    return {row.id for row, _ in _of_others(log, [group])} if len(group) > 1 else set()


def copies(log: Log) -> list[Copy]:
    """The runs that were published as a discovery although another participant had published them.

    A copy has the same program. Or it has the same checkpoint from another program, on a task whose seeds matter: there
    no two trainings end alike. A run is no copy when its author claimed the program before the other published it: two
    may have one idea. A withdrawn copy stays one if others had measured it.
    """
    discoveries_of(log)
    if cache_of(log).roster.withdrawals:
        return cached(log, "copies", lambda: _copies(log)[0], by=("run", "commitment", "claim"))
    return kept(log, "copies", lambda: _copies(log))


def _copies(log: Log) -> tuple[list[Copy], list[Hashable]]:
    """The copies, and what they were computed from where nothing was withdrawn."""
    voter = cache_of(log).roster.voter
    withdrawn = _withdrawn(log)
    models = [*_pairs(log, CHECKPOINTS), *_copied(log, withdrawn, by_checkpoint=True)]
    models = [pair for pair in models if _is_impossible(log, *pair)]
    programs = [*_pairs(log, DISCOVERIES), *_copied(log, withdrawn, by_checkpoint=False)]
    programs = [(row, first) for row, first in programs if row.changes]
    found: dict[bytes, Copy] = {}
    claimed = cache(lambda task, source: _claimed(log, task, source))
    for row, first in [*models, *programs]:
        mine = voter(row.author, row.time).voter
        if claimed(row.task, row.source_digest).get(mine, math.inf) >= first.time:
            found[row.id] = Copy(row.id, mine, row.time, first.id)
    claims = {("claim", row.source_digest) for row, _ in [*models, *programs]}
    return list(found.values()), [("pairs", CHECKPOINTS), ("pairs", DISCOVERIES), *claims]


def _pairs(log: Log, what: str) -> list[tuple[LikeRow, LikeRow]]:
    """Each run with the first one like it, of all groups with one checkpoint or one program."""
    groups: Alike = checkpoints_of(log) if what == CHECKPOINTS else discoveries_of(log)

    def compute() -> tuple[list[tuple[LikeRow, LikeRow]], list[Hashable]]:
        names = {("others", what, *key, len(group)): group for key, group in groups.items()}
        return [pair for name, group in names.items() for pair in _in_group(log, name, group)], [what, *names]

    return kept(log, ("pairs", what), compute)


def _in_group(log: Log, name: Hashable, group: list[LikeRow]) -> list[tuple[LikeRow, LikeRow]]:
    """The pairs of one group, until a record names one of its runs: a group that has grown has another name."""
    return kept(log, name, lambda: (list(_of_others(log, [group])), [row.id for row in group]))


def _of_others(log: Log, groups: Iterable[list[LikeRow]]) -> Iterator[tuple[LikeRow, LikeRow]]:
    """Each run with the first one like it, where that is another participant's.

    A run of an unattested participant makes no other run a copy: a new key can name an old time. An unattested
    participant's own run under an earlier time is no copy either: no record of others shows when it was published.
    """
    voter = cache_of(log).roster.voter
    for group in groups:
        known = [row for row in group if voter(row.author, row.time).attested]
        if not known:
            continue
        first = first_of(log, known)
        owner = voter(first.author, first.time).voter
        for row in group:
            said = voter(row.author, row.time)
            if said.voter != owner and (said.attested or first < row) and precedes(log, first, row):
                yield row, first


def _withdrawn(log: Log) -> list[tuple[Record, set[bytes]]]:
    """The runs that were withdrawn and measured, with the attested voters that measured them.

    Whether the measurement or the withdrawal came first does not matter: each names its own time.
    """
    roster = cache_of(log).roster
    measured: defaultdict[bytes, set[bytes]] = defaultdict(set)
    for run, author, time_ms, seq in log.evidence.taken_back() if roster.withdrawals else ():
        who = roster.voter(author, time_ms)
        if author in roster.keys and who.attested and not is_banned(log, who.voter, time_ms, device=author, seq=seq):
            measured[run].add(who.voter)
    return [(log.records.get(run), voters) for run, voters in measured.items() if len(voters) >= _MEASURED_BY]


def _copied(
    log: Log, withdrawn: Iterable[tuple[Record, set[bytes]]], *, by_checkpoint: bool
) -> Iterator[tuple[LikeRow, LikeRow]]:
    """Each withdrawn run that enough others measured, with the first run like it, where that is another's."""
    voter = cache_of(log).roster.voter
    for record, measured in withdrawn:
        body = record.body
        assert isinstance(body, Run)
        checkpoint = body.checkpoint.sha256 if body.checkpoint and by_checkpoint else None
        if body.status != RunStatus.OK or (checkpoint is None if by_checkpoint else body.replicate):
            continue
        row = LikeRow(record.time, record.id, record.author, body.task, body.source_digest, body.parent is not None)
        for copy, first in _of_others(log, [[*log.evidence.like(row, checkpoint=checkpoint), row]]):
            authors = {voter(one.author, one.time).voter for one in (copy, first)}
            if copy is row and len(measured - authors) >= _MEASURED_BY:
                yield copy, first


def _is_impossible(log: Log, row: LikeRow, first: LikeRow) -> bool:
    rules = log.tasks.rules(row.task)
    return row.source_digest != first.source_digest and rules is not None and rules.noise > 0


def _claimed(log: Log, task: bytes, source_digest: bytes) -> dict[bytes, int]:
    """When each voter first claimed a program."""
    voter = cache_of(log).roster.voter
    first: dict[bytes, int] = {}
    for author, time_ms in log.claims.claimed(task, source_digest):
        who = voter(author, time_ms).voter
        first[who] = min(time_ms, first.get(who, time_ms))
    return first
