"""Who published first: a time is its author's own word, unless others had seen the one run before the other.

A run was seen by an attested participant at the time of its first record that names it: a commitment to a measurement
of it, or a run that links it or builds on it. With two who have no part in either, what was seen first was there first;
else the earlier time goes. Records of one device have rising numbers, so that none of them was signed before the
latest time that one with a smaller number names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from autoresearch.log import Log
from autoresearch.views.bans import is_banned
from autoresearch.views.memory import memory_of, remembered, signed_ms

# So many attested participants besides the authors must have seen a run to vouch that it was there.
_WITNESSES = 2
# When somebody saw a run, and whether that one only built on it: who links a run while it builds on another with the
# same program says which of them it had heard of first.
Seen = tuple[float, bool]
_NEVER: Seen = (math.inf, True)


class Published(Protocol):
    """A run with its author's word for its time."""

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
    for run in others:
        if was_seen_before(log, run, first):
            first = run
    return first


def precedes(log: Log, run: Published, other: Published) -> bool:
    """Whether a run was published before another."""
    if was_seen_before(log, run, other):
        return True
    return (run.time, run.id) < (other.time, other.id) and not was_seen_before(log, other, run)


def was_seen_before(log: Log, run: Published, other: Published) -> bool:
    """Whether others, who have no part in either, had seen a run before they saw the other."""
    voice = memory_of(log).roster.voice
    authors = {voice(run.author, run.time).voice, voice(other.author, other.time).voice}
    if len(authors) < 2 or len(_seen(log, run.id)) < _WITNESSES:
        return False
    return _vouched(_seen(log, run.id), authors) < _vouched(_seen(log, other.id), authors)


def _vouched(seen: Mapping[bytes, Seen], authors: set[bytes]) -> Seen:
    """When the last of the witnesses that it takes had seen a run."""
    times = sorted(when for who, when in seen.items() if who not in authors)
    return times[_WITNESSES - 1] if len(times) >= _WITNESSES else _NEVER


def _seen(log: Log, run: bytes) -> Mapping[bytes, Seen]:
    """When attested participants first named a run, by their voices."""
    return remembered(log, f"seen {run.hex()}", lambda: _find(log, run))


def _find(log: Log, run: bytes) -> dict[bytes, Seen]:
    roster = memory_of(log).roster
    first: dict[bytes, Seen] = {}
    for said in log.sightings(run):
        if said.author not in roster.keys:
            continue
        who = roster.voice(said.author, said.time)
        if who.attested and not is_banned(log, who.voice, said.time, device=said.author, seq=said.seq):
            when: Seen = (signed_ms(log, said.author, said.seq, said.time), said.built)
            first[who.voice] = min(when, first.get(who.voice, when))
    return first
