"""Runs that another participant published before: nobody discovers the same twice.

Credit is the first's, by time and id. Replays come to the same number and the same checkpoint, and nothing is wrong
with them: a copy is what says that it is a discovery. A time is its author's own word, so nothing that names an earlier
one makes a copy of what others had measured before anybody spoke of the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from autoresearch.log import CopyRow, Log
from autoresearch.views.memory import discoveries_of, memory_of

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
    memory = memory_of(log)
    found = memory.known.get("models")
    if found is None:
        found = memory.known["models"] = {row.id: row.original for row in _of_others(log, memory.checkpoints)}
    return found  # type: ignore[return-value]


def copies(log: Log) -> list[Copy]:
    """The runs that were published as a discovery although another participant had published them.

    The same program, or the same checkpoint from another program on a task on which seeds matter, where no two
    trainings end alike. Not a copy is what its author said it was trying, in a claim, before the other published it:
    two may have one idea.
    """
    memory = memory_of(log)
    voice = memory.roster.voice
    models = [row for row in _of_others(log, memory.checkpoints) if _is_impossible(log, row)]
    found = {row.id: row for row in [*models, *_of_others(log, discoveries_of(log))] if not _was_claimed(log, row)}
    return [Copy(row.id, voice(row.author, row.time).voice, row.time, row.original) for row in found.values()]


def _of_others(log: Log, rows: Iterable[CopyRow]) -> list[CopyRow]:
    """Each run with the first that is like it, where that is another participant's.

    Nobody whom the network does not know accuses anybody: a key made today can write yesterday's date.
    """
    first: dict[bytes, CopyRow] = {}
    voice = memory_of(log).roster.voice
    for row in rows:
        if voice(row.original_author, row.original_time).attested and not _was_seen_before(log, row):
            first[row.id] = min(first.get(row.id, row), row, key=lambda row: (row.original_time, row.original))
    return [
        row
        for row in first.values()
        if voice(row.author, row.time).voice != voice(row.original_author, row.original_time).voice
    ]


def _was_seen_before(log: Log, row: CopyRow) -> bool:
    """Whether others had measured a run before they did the one that names an earlier time."""
    voice = memory_of(log).roster.voice
    authors = {voice(row.author, row.time).voice, voice(row.original_author, row.original_time).voice}

    def seen_ms(run: bytes) -> float:
        """When the last of the witnesses that it takes had committed to a measurement."""
        first: dict[bytes, int] = {}
        for said in log.commitments(run):
            who = voice(said.author, said.time)
            if said.output is not None and who.attested and who.voice not in authors:
                first[who.voice] = min(said.time, first.get(who.voice, said.time))
        return sorted(first.values())[_WITNESSES - 1] if len(first) >= _WITNESSES else math.inf

    return seen_ms(row.id) < seen_ms(row.original)


def _is_impossible(log: Log, row: CopyRow) -> bool:
    rules = log.rules(row.task)
    return row.source_digest != row.original_source and rules is not None and rules.noise > 0


def _was_claimed(log: Log, row: CopyRow) -> bool:
    voice = memory_of(log).roster.voice
    mine = voice(row.author, row.time).voice
    return any(
        time_ms < row.original_time and voice(author, time_ms).voice == mine
        for author, time_ms in log.claimed(row.task, row.source_digest)
    )
