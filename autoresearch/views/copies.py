"""Copies: runs published as a discovery although another participant had published them before.

The first author gets the credit. A repetition comes to the same value and checkpoint, and is no copy: only a run that
is presented as a discovery is one. A time is its author's statement: the run that others saw first was first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from autoresearch.log import Alike, LikeRow, Log
from autoresearch.records import Record, Run
from autoresearch.views.bans import is_banned
from autoresearch.views.cache import CHECKPOINTS, DISCOVERIES, cache_of, cached, checkpoints_of, discoveries_of, kept
from autoresearch.views.precedence import first_of, precedes
from autoresearch.words import RunStatus

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
