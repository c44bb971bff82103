"""Who copied whom, from all records of a log and by the plain rule: what the rows about copies are compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from autoresearch.log.log import Log
from autoresearch.log.projection import MENTIONS_MOST
from autoresearch.log.rows import Copy, LikeRow
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.precedence import PublicationOrder, bans
from autoresearch.record.kinds import Claim, Commitment, Run
from autoresearch.record.record import Record

RECORDS_MOST = 10_000


class Pair(NamedTuple):
    """A run with the first one that has its checkpoint, or its program; ``marked``: its author copied."""

    run: bytes
    model: bool
    original: bytes
    voter: bytes
    marked: bool


def pairs_in_rows(log: Log) -> set[Pair]:
    """All rows of the table."""
    query = "SELECT record.id, model, original, voter, marked FROM copy JOIN record ON record.n = copy.n"
    return {
        Pair(run, bool(model), original, voter, bool(marked))
        for run, model, original, voter, marked in log.reader.read(query, ())
    }


def models(log: Log) -> dict[bytes, bytes]:
    """The runs whose checkpoint another participant published before, each with the first run, by the rows."""
    ids = {run for (run,) in log.reader.read("SELECT id FROM run", ())}
    return {pair.run: pair.original for pair in pairs_in_rows(log) if pair.model and pair.run in ids}


def copies(log: Log) -> list[Copy]:
    """The runs whose authors copied, by the rows."""
    return sorted(log.evidence.copies())


def pairs_by_rule(log: Log) -> set[Pair]:
    """All pairs by the records."""
    return set(_Reader(log).pairs())


class _Reader:
    def __init__(self, log: Log) -> None:
        self._log, self._voter, self._banned = log, roster_of(log).voter, bans(log)
        self._records = log.records.newest(limit=RECORDS_MOST)
        self._suspects = dict(log.reader.rows("SELECT author, seq FROM suspect"))
        self._order = PublicationOrder(self._voter, self._seen())

    def _signed_ms(self, record: Record) -> int:
        before = [each.time for each in self._records if each.author == record.author and each.seq < record.seq]
        return max([record.time, *before])

    def _seen(self) -> dict[bytes, dict[bytes, tuple[float, bool]]]:
        """By run and by voter when it first named the run, and whether it only built on it."""
        seen: defaultdict[bytes, dict[bytes, tuple[float, bool]]] = defaultdict(dict)
        for record in self._records:
            if record.seq >= self._suspects.get(record.author, record.seq + 1) or not self._counts(record):
                continue
            who = self._voter(record.author, record.time).voter
            for run, built in self._named(record):
                when = (self._signed_ms(record), built)
                seen[run][who] = min(when, seen[run].get(who, when))
        return seen

    def _named(self, record: Record) -> Iterator[tuple[bytes, bool]]:
        body = record.body
        if isinstance(body, Run):
            yield from ((body.parent, True),) if body.parent else ()
            linked = dict.fromkeys(link for link in record.links if link != body.parent)
            yield from ((link, False) for link in list(linked)[:MENTIONS_MOST])
        if isinstance(body, Commitment) and self._is_proven(record):
            yield body.run, False

    def _is_proven(self, record: Record) -> bool:
        rows = self._log.verifications.commitments(record.body.run)  # type: ignore[union-attr]
        return any(row.id == record.id and row.output for row in rows)

    def _counts(self, record: Record) -> bool:
        who = self._voter(record.author, record.time)
        return who.attested and not self._banned.cover(who.voter, record.time, device=record.author, seq=record.seq)

    def _measured(self, run: bytes) -> set[bytes]:
        return {
            self._voter(record.author, record.time).voter
            for record in self._records
            if isinstance(record.body, Commitment)
            and record.body.run == run
            and self._is_proven(record)
            and self._counts(record)
        }

    def _claimed_ms(self, task: bytes, digest: bytes, who: bytes) -> float:
        times = [float("inf")]
        for record in self._records:
            body = record.body
            if isinstance(body, Claim) and (body.task, body.source_digest) == (task, digest):
                is_own = self._voter(record.author, record.time).voter == who
                times += [record.time] if is_own and not self._log.records.is_withdrawn(record) else []
        return min(times)

    def pairs(self) -> Iterator[Pair]:
        groups: defaultdict[tuple[bool, bytes, bytes], list[Record]] = defaultdict(list)
        for record in self._records:
            body = record.body
            if isinstance(body, Run) and body.status == "ok":
                if body.checkpoint:
                    groups[True, body.task, body.checkpoint.sha256].append(record)
                if body.replicate == 0:
                    groups[False, body.task, body.source_digest].append(record)
        for (model, task, _), runs in groups.items():
            others_alike = [_like(run) for run in runs if not self._log.records.is_withdrawn(run)]
            result = list(self._order.copies(others_alike))
            for run in (_like(run) for run in runs if self._log.records.is_withdrawn(run)):
                for copy, first in self._order.copies([*others_alike, run]):
                    others = self._measured(run.id) - {self._whose(copy), self._whose(first)}
                    result += [(copy, first)] if copy is run and len(others) >= 2 else []
            rules = self._log.tasks.rules(task)
            for copy, first in result:
                other_program = copy.source_digest != first.source_digest and rules is not None and rules.noise > 0
                is_discovery = other_program if model else copy.changes
                claimed_ms = self._claimed_ms(task, copy.source_digest, self._whose(copy))
                marked = is_discovery and claimed_ms >= first.time
                yield Pair(copy.id, model, first.id, self._whose(copy), marked)

    def _whose(self, run: LikeRow) -> bytes:
        return self._voter(run.author, run.time).voter


def _like(run: Record) -> LikeRow:
    body = run.body
    assert isinstance(body, Run)
    return LikeRow(run.time, run.id, run.author, body.source_digest, body.parent is not None, 0)
