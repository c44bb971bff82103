"""Runs that another participant published before: nobody discovers the same twice.

Credit is the first's, by time and id. Replays come to the same number and the same checkpoint, and nothing is wrong
with them: a copy is what says that it is a discovery. A time is its author's own word, so nothing that names an earlier
one makes a copy of what others had measured before anybody spoke of the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from autoresearch.log import LikeRow, Log
from autoresearch.views.memory import checkpoints_of, discoveries_of, memory_of, remembered

# So many attested participants besides the authors must have measured a run to vouch that it was there.
_WITNESSES = 2


class Copy(NamedTuple):
    """A run that is a copy, whose it is, and the run that it copies."""

    run: bytes
    voice: bytes
    time_ms: int
    original: bytes


def same_models(log: Log) -> dict[bytes, bytes]:
    """The runs whose checkpoint another participant published before, each with the first run of that."""
    return remembered(log, "models", lambda: {row.id: first.id for row, first in _of_others(log, checkpoints_of(log))})


def copies(log: Log) -> list[Copy]:
    """The runs that were published as a discovery although another participant had published them.

    The same program, or the same checkpoint from another program on a task on which seeds matter, where no two
    trainings end alike. Not a copy is what its author said it was trying, in a claim, before the other published it:
    two may have one idea.
    """
    voice = memory_of(log).roster.voice
    models = [pair for pair in _of_others(log, checkpoints_of(log)) if _is_impossible(log, *pair)]
    programs = [(row, first) for row, first in _of_others(log, discoveries_of(log)) if row.changes]
    found: dict[bytes, Copy] = {}
    claimed = cache(lambda task, source: _claimed(log, task, source))
    for row, first in [*models, *programs]:
        mine = voice(row.author, row.time).voice
        if claimed(row.task, row.source_digest).get(mine, math.inf) >= first.time:
            found[row.id] = Copy(row.id, mine, row.time, first.id)
    return list(found.values())


def _of_others(log: Log, groups: Iterable[list[LikeRow]]) -> Iterator[tuple[LikeRow, LikeRow]]:
    """Each run with the first that is like it, where that is another participant's.

    Nobody whom the network does not know accuses anybody: a key made today can write yesterday's date.
    """
    voice = memory_of(log).roster.voice
    seen = cache(lambda run: _seen(log, run))
    for group in groups:
        known: list[LikeRow] = []  # those before, of attested participants
        for row in group:
            said = voice(row.author, row.time)
            first = next((one for one in known if not _was_seen_before(log, row, one, seen)), None)
            if first is not None and voice(first.author, first.time).voice != said.voice:
                yield row, first
            if said.attested:
                known.append(row)


def _was_seen_before(log: Log, row: LikeRow, other: LikeRow, seen: Callable[[bytes], Mapping[bytes, int]]) -> bool:
    """Whether others had measured a run before they did the one that names an earlier time."""
    if len(seen(row.id)) < _WITNESSES:
        return False
    voice = memory_of(log).roster.voice
    authors = {voice(row.author, row.time).voice, voice(other.author, other.time).voice}

    def seen_ms(run: bytes) -> float:
        """When the last of the witnesses that it takes had committed to a measurement."""
        times = sorted(time_ms for who, time_ms in seen(run).items() if who not in authors)
        return times[_WITNESSES - 1] if len(times) >= _WITNESSES else math.inf

    return seen_ms(row.id) < seen_ms(other.id)


def _seen(log: Log, run: bytes) -> dict[bytes, int]:
    """When attested participants first committed to a measurement of a run, by their voices."""
    voice = memory_of(log).roster.voice
    first: dict[bytes, int] = {}
    for said in log.commitments(run):
        who = voice(said.author, said.time)
        if said.output is not None and who.attested:
            first[who.voice] = min(said.time, first.get(who.voice, said.time))
    return first


def _is_impossible(log: Log, row: LikeRow, first: LikeRow) -> bool:
    rules = log.rules(row.task)
    return row.source_digest != first.source_digest and rules is not None and rules.noise > 0


def _claimed(log: Log, task: bytes, source_digest: bytes) -> dict[bytes, int]:
    """When somebody first said that it was trying a source, by voice."""
    voice = memory_of(log).roster.voice
    first: dict[bytes, int] = {}
    for author, time_ms in log.claimed(task, source_digest):
        who = voice(author, time_ms).voice
        first[who] = min(time_ms, first.get(who, time_ms))
    return first
