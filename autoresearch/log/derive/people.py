"""People: whose word counts. Runs about which another word counts than before are judged again.

A run whose parent is on another task bans its author (``stray``). Of the trust list and of who is who a digest for each
key is kept (``weight``), and how many voters there were from when on.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

from autoresearch.judging.committee import network_rules
from autoresearch.log.derive import copies, verdicts
from autoresearch.log.derive.step import Changes, Items, Step
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.precedence import bans
from autoresearch.log.tables.standings import EVERYBODY, Weights
from autoresearch.log.tables.tables import Tables
from autoresearch.trust.roster import Trust

# A run whose parent is on another task: the lineage is made up. Whether the run was withdrawn does not matter.
_STRAY = """
INSERT OR IGNORE INTO stray SELECT child.n, lineage.parent FROM {} WHERE above.task IS NOT child.task
"""
_ABOVE = """record AS child CROSS JOIN lineage ON lineage.n = child.n
CROSS JOIN record AS above ON above.id = lineage.parent"""
_BELOW = """record AS above CROSS JOIN lineage ON lineage.parent = above.id
CROSS JOIN record AS child ON child.n = lineage.n"""
_WEIGHED = """
INSERT OR REPLACE INTO meta SELECT 'weighed', coalesce((SELECT value FROM meta WHERE key = 'people'), 0)
"""
_OF_AUTHOR = "SELECT n FROM record INDEXED BY record_author_seq WHERE author = ? AND kind = 'run'"
# Of so few people it is found in the transaction of a record about one of them what that changes.
_PEOPLE = 100


def change(connection: sqlite3.Connection, changes: Changes) -> None:
    """Find the runs whose parent is on another task, and count the changes of who is who."""
    changes.people |= find_strays(connection, changes.gone, changes.after)
    if changes.people:
        connection.execute("INSERT INTO meta VALUES('people', 1) ON CONFLICT DO UPDATE SET value = value + 1")


def find_strays(connection: sqlite3.Connection, gone: set[bytes], after: int | None) -> bool:
    """Find the strays among new runs, and among the children of new runs. Whether any came or went."""
    before = connection.total_changes
    connection.executemany("DELETE FROM stray WHERE parent = ?", [(record,) for record in gone])
    if after is not None:
        for joined, name in ((_ABOVE, "child"), (_BELOW, "above")):
            connection.execute(f"{_STRAY.format(joined)} AND {name}.n > ?", (after,))
    return connection.total_changes != before


def arrive(log: Tables, _: int) -> Items | None:
    """Take in who is who; None where that is much, or the rows follow from another trust list: that has to wait."""
    if not is_weighed(log):
        is_of_list = log.standings.weighed_by()[0] in (None, _digest(log.trust))
        if not is_of_list or len(roster_of(log).everybody) > _PEOPLE:
            return None
        weigh(log)
    return {}


def is_weighed(log: Tables) -> bool:
    """Whether rows follow from the trust list and from who is who as they are now."""
    return log.standings.weighed_by() == (_digest(log.trust), True)


def weigh(log: Tables) -> None:
    """Note by whose word runs are judged from now on. Those that this changes are to be judged again.

    Called in :meth:`Writer.settling`, or in the transaction that stores a record.
    """
    weights = weights_of(log)
    before = log.standings.weights()
    _write(log.reader.connection, before, weights, _digest(log.trust))
    if before.keys:  # else all runs that are there are noted
        _note_reviewed(log, before, weights)


def _write(connection: sqlite3.Connection, before: Weights, weights: Weights, trusted: bytes) -> None:
    gone = [(key,) for key in before.keys.keys() - weights.keys.keys()]
    changed = [(key, digest) for key, digest in weights.keys.items() if before.keys.get(key) != digest]
    connection.executemany("DELETE FROM weight WHERE key = ?", gone)
    connection.executemany("INSERT OR REPLACE INTO weight VALUES(?, ?)", changed)
    if before.voters != weights.voters:
        connection.execute("DELETE FROM voter_count")
        connection.executemany("INSERT INTO voter_count VALUES(?, ?)", weights.voters)
    connection.execute(_WEIGHED)
    connection.execute("INSERT OR REPLACE INTO meta VALUES('trusted', ?)", (trusted,))


def weights_of(log: Tables) -> Weights:
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


def _note_reviewed(log: Tables, before: Weights, now: Weights) -> None:
    """Note which runs are to be judged again: about which it makes a difference that others count."""
    people = {key for key in before.keys | now.keys if before.keys.get(key) != now.keys.get(key)}
    if EVERYBODY in people:
        verdicts.put_off(log.reader.connection, 0)
    runs, age_ms = log.standings.of_keys(people), network_rules(log.network).age_ms
    for start_ms, end_ms in _differing(before.voters, now.voters):
        runs |= log.standings.verified_in(start_ms + age_ms, end_ms + age_ms)
    if people or runs:
        connection = log.reader.connection
        verdicts.note_runs(connection, runs)
        for author in people:
            verdicts.note_query(connection, _OF_AUTHOR, (author,))
        copies.note_all(connection)


def _differing(steps: list[tuple[int, int]], other: list[tuple[int, int]]) -> Iterator[tuple[float, float]]:
    """The stretches of time in which two step functions differ; each begins with its value at -1."""
    moments = sorted({moment for moment, _ in (*steps, *other)})
    for moment, end in zip(moments, [*moments[1:], math.inf], strict=True):
        if _at(steps, moment) != _at(other, moment):
            yield -math.inf if moment == moments[0] else moment, end


def _at(steps: list[tuple[int, int]], moment: int) -> int | None:
    place = bisect_right(steps, moment, key=lambda step: step[0])
    return steps[place - 1][1] if place else None


@lru_cache(maxsize=8)
def _digest(trust: Trust) -> bytes:
    lists = (sorted(trust.attestors), trust.needed, sorted(trust.participants), sorted(trust.founders))
    return hashlib.blake2b(repr(lists).encode(), digest_size=16).digest()


PEOPLE = Step(
    "people",
    reads="record lineage fraud verification run entry withdrawn_run",
    writes="stray weight voter_count",
    change=change,
    arrive=arrive,
)
