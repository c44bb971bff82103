"""In which settings a run differs from its parent, and what that did to the reported value: rows of the table ``pair``.

They are written when a run or its parent arrives, whoever is trusted. Whose runs count is joined when somebody asks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from autoresearch.task.model import possible_value
from autoresearch.words import NOT_EVALUATED, RunStatus

Scalar = bool | int | float | str
# A run that changes more is a jump: it has no rows, since a list of such runs by setting would be one of all jumps.
CHANGES_MOST = 16
# Numbers beyond this are compared with none.
_LARGEST = 1e15
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


def differing(
    before: Mapping[str, Scalar], after: Mapping[str, Scalar], *, same_base: bool = True
) -> dict[str, tuple[Scalar, Scalar]]:
    """The settings of two runs that differ, each with both values.

    A part (``+name``) that one lacks is off there if both change the ``same_base``; another base may have it in its
    text. What else one lacks is left out, and so are all settings where one has none: it is not known what they are.
    """
    if not before or not after:
        return {}
    missing = object()
    changed: dict[str, tuple[Scalar, Scalar]] = {}
    for name, new in after.items():
        old = before.get(name, missing)
        # True equals 1 in Python, and is another value in a program.
        if old is missing:
            if same_base and new and name.startswith("+"):
                changed[name] = False, new
        elif old != new or (old.__class__ is not new.__class__ and isinstance(old, bool) != isinstance(new, bool)):
            changed[name] = old, new  # type: ignore[assignment]
    if same_base:
        dropped = before.keys() - after.keys()
        changed |= {name: (before[name], False) for name in dropped if before[name] and name.startswith("+")}
    return changed


def raised(before: Scalar, after: Scalar) -> int:
    """1 where a setting is raised or a part added, -1 where it is lowered or dropped, 0 where neither is the larger."""
    old, new = (
        float(value) if isinstance(value, int | float) and -_LARGEST < value < _LARGEST else None
        for value in (before, after)
    )
    return 0 if old is None or new is None else (new > old) - (new < old)


def settle_pairs(connection: sqlite3.Connection, after: int | None, shown: Iterable[int]) -> None:
    """Write the rows of the runs after a record, None: of none; and of those that are shown again."""
    queries = [(query, (n,)) for n in shown for query in (_OF_RUN, _OF_CHILDREN)]
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
        delta, failed = _outcome((link.status_above, link.value_above), (link.status, link.value))
        for setting, (old, new) in changed.items():
            known = (len(changed), same_base, raised(old, new), delta, failed)
            yield (link.task, setting, link.time, link.n, link.parent, *known)


@lru_cache(512)
def _settings(genome: bytes) -> dict[str, Scalar]:
    """The settings in a row of a run. Many runs have one parent."""
    return _decoder.decode(genome)


def _outcome(parent: tuple[str, float | None], run: tuple[str, float | None]) -> tuple[float | None, bool]:
    """How the reported value changed, None where one has none; and whether the run failed where its parent did not."""
    before, after = (possible_value(value) if status == RunStatus.OK else None for status, value in (parent, run))
    failed = before is not None and run[0] != RunStatus.OK and run[0] not in NOT_EVALUATED
    return None if before is None or after is None else after - before, failed
