"""Precedence: which of several runs was published first.

The time of a run is its author's statement, so the records of others decide. A voter *saw* a run when it signed the
first record that names the run: a commitment on it, a run that links it, or a child run. The run that two uninvolved
voters saw first was first. Where that decides nothing, the earlier time counts, then the smaller id.

The records of a device have rising numbers. So a record cannot be older than the latest time of a record with a smaller
number. A new run links runs of others that its author has heard of. That protects those from back-dated copies.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Protocol, TypeVar

from autoresearch.log import MENTIONS_MOST, HeardRow, Log
from autoresearch.views.bans import is_banned
from autoresearch.views.cache import cache_of, in_snapshot, kept, roster_of, signed_ms

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


Run = TypeVar("Run", bound=Published)


def first_of(log: Log, runs: Iterable[Run]) -> Run:
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
    return kept(log, ("seen", run), lambda: (_find(log, run), (run,)))


def _find(log: Log, run: bytes) -> dict[bytes, Seen]:
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
