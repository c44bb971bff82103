"""What a step is, what a transaction changes, and the table of what is to be computed again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from autoresearch.log.rows import Program
from autoresearch.log.tables.tables import Tables

# What steps hand on to later ones of the same transaction, by the names of those.
Items = Mapping[str, Sequence[Any]]


@dataclass
class Changes:
    """What the records that a transaction stores and drops have touched."""

    authors: set[bytes] = field(default_factory=set)
    places: set[tuple[bytes, int]] = field(default_factory=set)  # author, seq
    shared: set[tuple[bytes, int]] = field(default_factory=set)  # those of several records, and those of dropped ones
    gone: set[bytes] = field(default_factory=set)  # ids of dropped records
    tasks: set[bytes] = field(default_factory=set)
    programs: set[Program] = field(default_factory=set)
    reviewed: set[bytes] = field(default_factory=set)  # runs of which others say something else, by their ids
    people: bool = False  # who is who, or who cheated
    after: int | None = None  # records with greater numbers are new
    restored: set[int] = field(default_factory=set)  # older ones that are not withdrawn any more


class Step(NamedTuple):
    """One step: the tables that it reads and writes, and what it does. Only it writes these, and ``todo``.

    ``change`` follows from records alone, in the transaction that stores or drops them; it also notes in ``todo`` what
    is to be computed again. The others take the trust list. ``arrive`` is about the records after a number, None where
    the steps after it have to wait. ``derive`` computes what is noted for the step, or what a step before it hands on,
    until a time (``time.monotonic()``); it takes off ``todo`` what it has done. Both return what they hand on.
    ``finish`` comes last in each transaction.

    ``item`` makes a key of ``todo`` a thing. At once so many keys are computed (``at_once``), where they are
    little work, and twice where there are two ``rounds``; later so many in one transaction (``piece``). ``postpone`` is
    done where there are more, with the number of the last record before those that came.
    """

    name: str
    reads: str
    writes: str
    change: Callable[[sqlite3.Connection, Changes], None] | None = None
    arrive: Callable[[Tables, int], Items | None] | None = None
    derive: Callable[[Tables, Sequence[Any], float], Items] | None = None
    finish: Callable[[sqlite3.Connection], None] | None = None
    item: Callable[[Any], object] | None = None
    at_once: int = 50
    rounds: int = 1
    is_little: Callable[[Tables, Sequence[Any]], bool] | None = None
    piece: int = 50
    postpone: Callable[[Tables, int], None] | None = None


def note(connection: sqlite3.Connection, step: str, keys: Iterable[int | bytes]) -> None:
    """Note that these are to be computed again."""
    connection.executemany("INSERT OR IGNORE INTO todo VALUES(?, ?)", [(step, key) for key in keys])


def done(connection: sqlite3.Connection, step: str, keys: Iterable[int | bytes]) -> None:
    """Take these off the table of what is to be computed again."""
    connection.executemany("DELETE FROM todo WHERE step = ? AND key = ?", [(step, key) for key in keys])
