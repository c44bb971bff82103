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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import zip_longest
from typing import NamedTuple, Protocol, TypeVar

from autoresearch.judging.committee import network_rules
from autoresearch.log.projection import MENTIONS_MOST
from autoresearch.log.rows import LikeRow, RunFacts
from autoresearch.log.standing.cache import cached, in_snapshot, roster_of
from autoresearch.log.tables.tables import Tables
from autoresearch.trust.roster import Voter


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


def bans(log: Tables) -> Bans:
    """All bans in a log."""
    return cached(log, "bans", lambda: _bans_of(log), lasting=True)


def is_banned(log: Tables, voter: bytes, time_ms: int, *, device: bytes = b"", seq: int = 0) -> bool:
    """Whether a voter is banned at a time, see :meth:`Bans.cover`."""
    return bans(log).cover(voter, time_ms, device=device, seq=seq)


def _bans_of(log: Tables) -> Bans:
    by_key: defaultdict[bytes, list[Ban]] = defaultdict(list)
    frauds = log.evidence.frauds()
    for row in sorted(frauds, key=lambda row: (row.time, row.id)):
        voter = roster_of(log).voter(row.author, row.time).voter
        ban = Ban(row.id, row.author, row.seq, row.time, row.time + network_rules(log.network).ban_ms)
        for key in {voter, row.author}:
            by_key[key].append(ban)
    return Bans(dict(by_key), frozenset(row.id for row in frauds))


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


class PublicationOrder:
    """Which of some runs was published first, by when each voter first named them."""

    def __init__(self, voter: Callable[[bytes, int], Voter], seen: Mapping[bytes, Mapping[bytes, Seen]]) -> None:
        self._voter = voter
        self._seen = seen

    def first(self, runs: Iterable[PublishedT]) -> PublishedT:
        """The run that was published first, of at least one."""
        first, *others = sorted(runs, key=lambda run: (run.time, run.id))
        for run in others:
            if self.was_seen_before(run, first):
                first = run
        return first

    def precedes(self, run: Published, other: Published) -> bool:
        """Whether a run was published before another."""
        if self.was_seen_before(run, other):
            return True
        return (run.time, run.id) < (other.time, other.id) and not self.was_seen_before(other, run)

    def was_seen_before(self, run: Published, other: Published) -> bool:
        """Whether uninvolved voters saw a run before they saw the other."""
        seen = self._seen.get(run.id, {})
        authors = {self._voter(run.author, run.time).voter, self._voter(other.author, other.time).voter}
        if len(authors) < 2 or len(seen) < _WITNESSES:
            return False
        return _vouched(seen, authors) < _vouched(self._seen.get(other.id, {}), authors)

    def copies(self, group: Iterable[LikeRow]) -> Iterator[tuple[LikeRow, LikeRow]]:
        """Of runs that share something each with the first one, where that is another participant's.

        A run of an unattested participant makes no other run a copy: a new key can name an old time. An unattested
        participant's own run under an earlier time is no copy either: no record of others shows when it was published.
        """
        rows = list(group)
        trusted = [row for row in rows if self._voter(row.author, row.time).attested]
        if not trusted:
            return
        first = self.first(trusted)
        owner = self._voter(first.author, first.time).voter
        for row in rows:
            who = self._voter(row.author, row.time)
            if who.voter != owner and (who.attested or first < row) and self.precedes(first, row):
                yield row, first


def _vouched(seen: Mapping[bytes, Seen], authors: set[bytes]) -> Seen:
    """When the last of the required witnesses saw a run."""
    times = sorted(when for who, when in seen.items() if who not in authors)
    return times[_WITNESSES - 1] if len(times) >= _WITNESSES else _NEVER


def order_of(log: Tables, runs: Iterable[Published]) -> PublicationOrder:
    """The order of these runs, by the records that name them."""
    roster, banned = roster_of(log), bans(log)
    seen: defaultdict[bytes, dict[bytes, Seen]] = defaultdict(dict)
    for mention in log.mentions.of({run.id for run in runs}):
        if mention.author not in roster.keys:
            continue
        who = roster.voter(mention.author, mention.time)
        if who.attested and not banned.cover(who.voter, mention.time, device=mention.author, seq=mention.seq):
            first, when = seen[mention.run], (mention.signed_ms, mention.built)
            first[who.voter] = min(when, first.get(who.voter, when))
    return PublicationOrder(roster.voter, seen)


@in_snapshot
def to_link(log: Tables, task: bytes, device: bytes, now_ms: int, *, parent: bytes | None) -> list[bytes]:
    """The runs of others that a new run of this device links, besides its parent. None where it is not attested.

    They arrived since the device's last run: the newest first, and of as many participants as possible. Of several with
    one program or one checkpoint only the one that arrived first is linked.
    """
    if not roster_of(log).voter(device, now_ms).attested:
        return []
    by_voter: dict[bytes, list[bytes]] = {}
    named = {parent}
    for run, voter in _first_heard(log, task, device, now_ms, parent):
        if run not in named and not log.mentions.has_named(device, run):
            by_voter.setdefault(voter, []).append(run)
        named.add(run)
    turns = (run for turn in zip_longest(*by_voter.values()) for run in turn if run is not None)
    return [run for run, _ in zip(turns, range(MENTIONS_MOST), strict=False)]


def heard_first(log: Tables, run: bytes) -> bytes:
    """The run that arrived first of those with its program or its checkpoint; else the run itself.

    It depends on the order of arrival in this log, so nodes may answer differently.
    """
    row = log.mentions.run(run)
    first = _first(log, row) if row else None
    return first.id if first else run


def _first_heard(
    log: Tables, task: bytes, device: bytes, now_ms: int, parent: bytes | None
) -> Iterator[tuple[bytes, bytes]]:
    """Of each run that arrived, the first one like it, with its author's voter. Only those of other voters."""
    roster = roster_of(log)
    me = roster.voter(device, now_ms).voter
    above = log.mentions.run(parent) if parent else None
    looked_at: Counter[bytes] = Counter()
    for row in [
        *([above] if above else []),
        *log.mentions.newest_of_others(task, device, roster.keys, limit=_HEARD_MOST),
    ]:
        author = roster.voter(row.author, row.time).voter
        looked_at[author] += 1
        if looked_at[author] > _EACH_MOST:
            continue
        first = _first(log, row)
        voter = roster.voter(first.author, first.time).voter if first else me
        if first and voter != me:
            yield first.id, voter


def _first(log: Tables, row: RunFacts) -> RunFacts | None:
    """Of attested runs like one, the run that others saw first, else the one that arrived first.

    A node that was offline receives both at once, in an order without meaning.
    """
    voter = roster_of(log).voter
    attested = [like for like in log.mentions.like(row) if voter(like.author, like.time).attested]
    if len(attested) < 2:
        return next(iter(attested), None)
    order = order_of(log, attested)
    return reduce(lambda first, other: other if order.was_seen_before(other, first) else first, attested)
