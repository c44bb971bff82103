"""Verdicts that are kept as rows: judged once, when records arrive or when other verifications count, then read.

A row says what follows from the records and from the trust list by which it was made. Where a reader has another
list, or knows of people whom it did not know then, the two are compared first: the runs for which that makes a
difference are judged anew, all others are read. So no answer depends on how far the settling has come.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from autoresearch.judging.committee import network_rules
from autoresearch.judging.states import Judgement
from autoresearch.log.standing.cache import cached, roster_of
from autoresearch.log.standing.precedence import bans
from autoresearch.log.tables.standings import EVERYBODY, Weights
from autoresearch.trust.roster import Trust

if TYPE_CHECKING:
    from autoresearch.log.log import Log


def settled(log: Log, runs: Iterable[bytes]) -> dict[bytes, Judgement]:
    """What is judged of those of these runs whose rows hold. Nothing of it is computed here."""
    with log.reader.snapshot():
        if log.standings.weighed_by()[0] is None:
            return {}
        changed = cached(log, "outweighed", lambda: _outweighed(log), by=())
        return dict(log.standings.of([run for run in runs if run not in changed]))


def _outweighed(log: Log) -> set[bytes]:
    """The runs whose rows follow from others' verifications than count here."""
    if is_weighed(log):
        return set()
    return changed_runs(log, log.standings.weights(), weights_of(log))


def weights_of(log: Log) -> Weights:
    """Whose verifications count in a log, by its trust list."""
    roster, banned = roster_of(log), bans(log).by_key
    # Where trust names nobody all are attested, also those of whom nothing is known.
    keys = {EVERYBODY: bytes([log.trust.names_anybody])}
    for key in roster.everybody | banned.keys():
        course, voters = roster.course(key)
        decisive = course, [banned.get(who) for who in sorted(voters | {key})]
        keys[key] = hashlib.blake2b(repr(decisive).encode(), digest_size=16).digest()
    counts = roster.voter_counts
    return Weights(keys, [at for at, before in zip(counts, [(0, -1), *counts], strict=False) if at[1] != before[1]])


def changed_runs(log: Log, before: Weights, now: Weights) -> set[bytes]:
    """The verified runs about which it makes a difference that others count, and their kin."""
    people = {key for key in before.keys | now.keys if before.keys.get(key) != now.keys.get(key)}
    runs = log.standings.of_keys(people)
    age_ms = network_rules(log.network).age_ms
    for start_ms, end_ms in _differing(before.voters, now.voters):
        runs |= log.standings.verified_in(start_ms + age_ms, end_ms + age_ms)
    return log.standings.with_kin(runs)


def _differing(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> Iterator[tuple[float, float]]:
    """The stretches of time in which two step functions differ; each begins with its value at -1."""
    moments = sorted({moment for moment, _ in (*one, *other)})
    for moment, end in zip(moments, [*moments[1:], math.inf], strict=True):
        if _at(one, moment) != _at(other, moment):
            yield -math.inf if moment == moments[0] else moment, end


def _at(steps: list[tuple[int, int]], moment: int) -> int | None:
    place = bisect_right(steps, moment, key=lambda step: step[0])
    return steps[place - 1][1] if place else None


@lru_cache(maxsize=8)
def _digest(trust: Trust) -> bytes:
    lists = (sorted(trust.attestors), trust.needed, sorted(trust.participants), sorted(trust.founders))
    return hashlib.blake2b(repr(lists).encode(), digest_size=16).digest()


def is_weighed(log: Log) -> bool:
    """Whether rows follow from the trust list and from who is who as they are now."""
    return log.standings.weighed_by() == (_digest(log.trust), True)


def is_trusted(log: Log) -> bool:
    """Whether rows follow from the trust list of this log, or there are none."""
    return log.standings.weighed_by()[0] in (None, _digest(log.trust))


def weigh(log: Log) -> None:
    """Note by whose word runs are judged from now on. Those that this changes are to be judged again.

    Called in :meth:`Writer.settling`, or in the transaction that stores a record.
    """
    weights = weights_of(log)
    log.standings.weigh(weights, _digest(log.trust), changed_runs(log, log.standings.weights(), weights))


def is_settled(log: Log) -> bool:
    """Whether nothing is to be judged again."""
    return is_weighed(log) and not (log.standings.count_unsettled() or log.entries.count_unranked())
