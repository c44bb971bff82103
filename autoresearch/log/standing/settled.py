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

from autoresearch.judging.committee import network_rules
from autoresearch.judging.states import Judgement
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import cached, roster_of
from autoresearch.log.standing.precedence import bans
from autoresearch.log.tables.standings import Weights


def settled(log: Log, runs: Iterable[bytes]) -> dict[bytes, Judgement]:
    """What is judged of those of these runs whose rows hold. Nothing of it is computed here."""
    with log.reader.snapshot():
        if log.standings.weighed_by() is None:
            return {}
        changed = cached(log, "outweighed", lambda: _outweighed(log), by=())
        return dict(log.standings.of([run for run in runs if run not in changed]))


def _outweighed(log: Log) -> set[bytes]:
    """The runs whose rows follow from others' verifications than count here."""
    if log.standings.weighed_by() == _trusted(log):
        return set()
    return changed_runs(log, log.standings.weights(), weights_of(log))


def weights_of(log: Log) -> Weights:
    """Whose verifications count in a log, by its trust list."""
    roster, banned = roster_of(log), bans(log).by_key
    keys: dict[bytes, bytes] = {}
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


def _trusted(log: Log) -> bytes:
    trust = log.trust
    lists = (sorted(trust.attestors), trust.needed, sorted(trust.participants), sorted(trust.founders))
    return hashlib.blake2b(repr(lists).encode(), digest_size=16).digest()


def note_whose_word_counts(log: Log) -> None:
    """Note by whose word runs are judged from now on. Those that this changes are to be judged again."""
    trusted = _trusted(log)
    if log.standings.weighed_by() == trusted:
        return
    with log.writer.settling():
        if log.standings.weighed_by() != trusted:
            weights = weights_of(log)
            log.standings.weigh(weights, trusted, changed_runs(log, log.standings.weights(), weights))


def is_settled(log: Log) -> bool:
    """Whether nothing is to be judged again."""
    return log.standings.weighed_by() == _trusted(log) and not log.standings.count_unsettled()
