"""In which settings a run differs from its parent, and what that did to the reported value: rows of the table ``pair``.

They are written when a run or its parent arrives, whoever is trusted. Whose runs count is joined when somebody asks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from autoresearch.task.model import possible_value
from autoresearch.words import NOT_EVALUATED, RunStatus

Scalar = bool | int | float | str
# A run that changes more is a jump: it has no rows, since a list of such runs by setting would be one of all jumps.
CHANGES_MOST = 16
# Numbers beyond this are compared with none.
_LARGEST = 1e15
_genome = msgspec.json.Decoder(dict[str, Scalar])
_INSERT = "INSERT OR REPLACE INTO pair VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_LINKS = """
SELECT child.n, child.task, child.time, child.genome, child.base, child.status, child.value,
    above.n, above.genome, above.base, above.status, above.value
FROM {} WHERE {} AND above.task = child.task AND above.genome <> child.genome
"""
_ABOVE = """lineage CROSS JOIN record ON record.id = lineage.parent
CROSS JOIN run AS above ON above.n = record.n CROSS JOIN run AS child ON child.n = lineage.n"""
_BELOW = """run AS above CROSS JOIN lineage ON lineage.parent = above.id
CROSS JOIN run AS child ON child.n = lineage.n"""

Row = tuple[object, ...]


def differing(before: Mapping[str, Scalar], after: Mapping[str, Scalar]) -> dict[str, tuple[Scalar, Scalar]]:
    """The settings of two runs that differ, each with both values. A part (``+name``) that one lacks is off there.

    Another setting that one lacks is left out, and so are all where one has none: it is not known what they are.
    """
    if not before or not after:
        return {}
    changed: dict[str, tuple[Scalar, Scalar]] = {}
    for name in {**before, **after}:
        absent = False if name.startswith("+") else None
        old, new = before.get(name, absent), after.get(name, absent)
        # True equals 1 in Python, and is another value in a program.
        if old is not None and new is not None and (old != new or isinstance(old, bool) != isinstance(new, bool)):
            changed[name] = old, new
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
    which = [("= ?", n) for n in shown] + ([] if after is None else [("> ?", after)])
    for condition, n in which:
        for joined, number in ((_ABOVE, "lineage.n"), (_BELOW, "above.n")):
            links = connection.execute(_LINKS.format(joined, f"{number} {condition}"), (n,))
            connection.executemany(_INSERT, _rows(links))


def forget_pairs(connection: sqlite3.Connection, n: int) -> None:
    """Take out the rows of a run and of its children, while it is still shown itself."""
    children = "SELECT lineage.n FROM run CROSS JOIN lineage ON lineage.parent = run.id WHERE run.n = ?1"
    connection.execute(f"DELETE FROM pair WHERE n IN (SELECT ?1 UNION ALL {children})", (n,))  # noqa: S608


def _rows(links: Iterable[Row]) -> Iterator[Row]:
    for (
        n,
        task,
        time,
        genome,
        base,
        status,
        value,
        parent,
        genome_above,
        base_above,
        status_above,
        value_above,
    ) in links:
        changed = differing(_genome.decode(genome_above), _genome.decode(genome))  # type: ignore[arg-type]
        if not changed or len(changed) > CHANGES_MOST:
            continue
        delta, failed = _outcome((status_above, value_above), (status, value))
        for setting, (old, new) in changed.items():
            direction = raised(old, new)
            yield task, setting, time, n, parent, len(changed), base == base_above, direction, delta, failed


def _outcome(parent: tuple[object, object], run: tuple[object, object]) -> tuple[float | None, bool]:
    """How the reported value changed, None where one has none; and whether the run failed where its parent did not."""
    before, after = (possible_value(value) if status == RunStatus.OK else None for status, value in (parent, run))
    failed = before is not None and run[0] != RunStatus.OK and run[0] not in NOT_EVALUATED
    return None if before is None or after is None else after - before, failed
