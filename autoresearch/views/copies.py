"""Runs that another participant published before: nobody discovers the same twice.

Credit is the first's. Replays come to the same number and the same checkpoint, and nothing is wrong with them: a copy
is what says that it is a discovery. A time is its author's own word: what others had seen first was there first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from autoresearch.log import LikeRow, Log
from autoresearch.records import Record, Run
from autoresearch.views.bans import is_banned
from autoresearch.views.memory import checkpoints_of, discoveries_of, memory_of, remembered
from autoresearch.views.witnesses import first_of, precedes
from autoresearch.words import RunStatus

# A copy that is withdrawn stays one when so many attested participants measured it who have no part in either: it took
# their time. Until then whoever finds that another had the same takes it back, and nothing remains.
_MEASURED_BY = 2


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
    two may have one idea. A copy stays one when it is withdrawn, unless nobody had measured it.
    """
    voice = memory_of(log).roster.voice
    withdrawn = _withdrawn(log)
    models = [*_of_others(log, checkpoints_of(log)), *_copied(log, withdrawn, by_checkpoint=True)]
    models = [pair for pair in models if _is_impossible(log, *pair)]
    programs = [*_of_others(log, discoveries_of(log)), *_copied(log, withdrawn, by_checkpoint=False)]
    programs = [(row, first) for row, first in programs if row.changes]
    found: dict[bytes, Copy] = {}
    claimed = cache(lambda task, source: _claimed(log, task, source))
    for row, first in [*models, *programs]:
        mine = voice(row.author, row.time).voice
        if claimed(row.task, row.source_digest).get(mine, math.inf) >= first.time:
            found[row.id] = Copy(row.id, mine, row.time, first.id)
    return list(found.values())


def _of_others(log: Log, groups: Iterable[list[LikeRow]]) -> Iterator[tuple[LikeRow, LikeRow]]:
    """Each run with the first that is like it, where that is another participant's.

    Nobody whom the network does not know accuses anybody: a key made today can write yesterday's date. Nor is one whom
    it does not know accused of what it wrote before: nobody says when that was there.
    """
    voice = memory_of(log).roster.voice
    for group in groups:
        known = [row for row in group if voice(row.author, row.time).attested]
        if not known:
            continue
        first = first_of(log, known)
        owner = voice(first.author, first.time).voice
        for row in group:
            said = voice(row.author, row.time)
            if said.voice != owner and (said.attested or first < row) and precedes(log, first, row):
                yield row, first


def _withdrawn(log: Log) -> list[tuple[Record, set[bytes]]]:
    """The runs that were withdrawn and measured, with the attested voices who did.

    Whether a measurement came before the withdrawal does not matter: each names a time of its own.
    """
    roster = memory_of(log).roster
    measured: defaultdict[bytes, set[bytes]] = defaultdict(set)
    for run, author, time_ms, seq in log.taken_back():
        who = roster.voice(author, time_ms)
        if author in roster.keys and who.attested and not is_banned(log, who.voice, time_ms, device=author, seq=seq):
            measured[run].add(who.voice)
    return [(log.get(run), voices) for run, voices in measured.items() if len(voices) >= _MEASURED_BY]


def _copied(
    log: Log, withdrawn: Iterable[tuple[Record, set[bytes]]], *, by_checkpoint: bool
) -> Iterator[tuple[LikeRow, LikeRow]]:
    """Each withdrawn run with the first that is like it, where that is another's and enough others had measured it."""
    voice = memory_of(log).roster.voice
    for record, measured in withdrawn:
        body = record.body
        assert isinstance(body, Run)
        checkpoint = body.checkpoint.sha256 if body.checkpoint and by_checkpoint else None
        if body.status != RunStatus.OK or (checkpoint is None if by_checkpoint else body.replicate):
            continue
        row = LikeRow(record.time, record.id, record.author, body.task, body.source_digest, body.parent is not None)
        for copy, first in _of_others(log, [[*log.like(row, checkpoint=checkpoint), row]]):
            authors = {voice(one.author, one.time).voice for one in (copy, first)}
            if copy is row and len(measured - authors) >= _MEASURED_BY:
                yield copy, first


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
