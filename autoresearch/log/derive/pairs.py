"""Pairs: the settings in which a run differs from its parent, and what that did to the reported value.

The rows are written when a run or its parent arrives, whoever is trusted. Whose runs count is joined in the question.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from autoresearch.log.derive.step import Changes, Step
from autoresearch.log.tables.differences import Scalar, differing, raised
from autoresearch.task.model import possible_value
from autoresearch.words import NOT_EVALUATED, RunStatus

# A run that changes more is a jump: it has no rows, since a list of such runs by setting would be one of all jumps.
CHANGES_MOST = 16
_OK = RunStatus.OK.value
_decoder = msgspec.json.Decoder(dict[str, Scalar])
_INSERT = "INSERT OR REPLACE INTO pair VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_LINK = """
SELECT child.n, child.task, child.time, child.genome, child.base, child.status, child.value,
    above.n, above.genome, above.base, above.status, above.value
FROM {} WHERE {} AND above.task = child.task AND above.genome <> child.genome
"""
_ABOVE = """lineage CROSS JOIN record ON record.id = lineage.parent
CROSS JOIN run AS above ON above.n = record.n CROSS JOIN run AS child ON child.n = lineage.n"""
_BELOW = """run AS above CROSS JOIN lineage ON lineage.parent = above.id
CROSS JOIN run AS child ON child.n = lineage.n"""
_OF_RUN, _OF_CHILDREN = _LINK.format(_ABOVE, "lineage.n = ?"), _LINK.format(_BELOW, "above.n = ?")
_OF_NEW, _OF_LATE_PARENTS = (
    _LINK.format(_ABOVE, "lineage.n > ?1"),
    _LINK.format(_BELOW, "above.n > ?1 AND child.n <= ?1"),
)

Row = tuple[object, ...]


class _Link(NamedTuple):
    """A run and its parent, as far as they are compared."""

    n: int
    task: bytes
    time: int
    genome: bytes
    base: bytes | None
    status: str
    value: float | None
    parent: int
    genome_above: bytes
    base_above: bytes | None
    status_above: str
    value_above: float | None


def change(connection: sqlite3.Connection, changes: Changes) -> None:
    """Write the rows of the new runs, and of those that are not withdrawn any more."""
    after = changes.after
    queries = [(query, (n,)) for n in changes.restored for query in (_OF_RUN, _OF_CHILDREN)]
    if after is not None:
        queries += [(_OF_NEW, (after,)), (_OF_LATE_PARENTS, (after,))]
    for query, values in queries:
        connection.executemany(_INSERT, _rows(map(_Link._make, connection.execute(query, values))))


def forget_pairs(connection: sqlite3.Connection, n: int) -> None:
    """Take out the rows of a run and of its children, while it is still shown itself."""
    children = "SELECT lineage.n FROM run CROSS JOIN lineage ON lineage.parent = run.id WHERE run.n = ?1"
    connection.execute(f"DELETE FROM pair WHERE n IN (SELECT ?1 UNION ALL {children})", (n,))  # noqa: S608


def _rows(links: Iterable[_Link]) -> Iterator[Row]:
    for link in links:
        same_base = link.base == link.base_above
        changed = differing(_settings(link.genome_above), _settings(link.genome), same_base=same_base)
        if not changed or len(changed) > CHANGES_MOST:
            continue
        delta, failed = _outcome(link)
        for setting, (old, new) in changed.items():
            comparison = (len(changed), same_base, raised(old, new), delta, failed)
            yield (link.task, setting, link.time, link.n, link.parent, *comparison)


@lru_cache(512)
def _settings(genome: bytes) -> dict[str, Scalar]:
    """The settings in a row of a run. Many runs have one parent."""
    return _decoder.decode(genome)


def _outcome(link: _Link) -> tuple[float | None, bool]:
    """How the reported value changed, None where one has none; and whether the run failed where its parent did not."""
    before = possible_value(link.value_above) if link.status_above == _OK else None
    if before is None:
        return None, False
    if link.status != _OK:
        return None, link.status not in NOT_EVALUATED
    after = possible_value(link.value)
    return (None if after is None else after - before), False


PAIRS = Step("pairs", reads="lineage record run", writes="pair", change=change)
