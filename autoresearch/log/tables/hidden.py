"""What a person on this machine hides, and which records follow from it. Nothing that is counted reads these tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from autoresearch.log.connection import VISIBLE, Reader
from autoresearch.log.rows import Revision

_HIDDEN = f"SELECT record.id FROM record WHERE record.id IN ({{}}) AND NOT ({VISIBLE.format('record')})"  # noqa: S608
_REASONS = """
SELECT hide.thing, hide.origin, hide.reason, hide.time FROM hide WHERE hide.thing IN (
    SELECT hidden.thing FROM record CROSS JOIN hidden ON hidden.n = record.n WHERE record.id = ?1
    UNION SELECT hidden_author.thing FROM record CROSS JOIN hidden_author ON hidden_author.author = record.author
    WHERE record.id = ?1)
ORDER BY hide.time, hide.thing, hide.origin
"""
# What participants wrote for all to read, as far as a table has it. Of tasks and names the record has it.
_TEXTS = """
SELECT rowid, text FROM text_index WHERE rowid > ?1 AND rowid <= ?2
UNION ALL SELECT rowid, name || char(10) || description FROM release_index WHERE rowid > ?1 AND rowid <= ?2
UNION ALL SELECT n, title FROM claim WHERE n > ?1 AND n <= ?2
"""
_SIGNED = "SELECT n, raw, signature FROM record WHERE {}kind IN ('task', 'identity') AND n > ? AND n <= ?"
# So many records are read at once.
_PIECE = 5000

Thing = bytes | str


class HiddenRow(NamedTuple):
    """One thing that is hidden: a key, the id of a record, the digest of a task, or words.

    ``origin`` is the root key of the participant whose list it is from, empty for a person's own choice.
    """

    thing: Thing
    origin: bytes
    reason: str
    time: int


class Hidden:
    """What is hidden. What writes is called in :meth:`Writer.settling`, or in the transaction that stores a record."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._found: tuple[Revision, bool] | None = None

    def of(self, records: Collection[bytes]) -> frozenset[bytes]:
        """Those of these records that are hidden."""
        if not records or not self:
            return frozenset()
        return frozenset(record for (record,) in self._reader.among(_HIDDEN, records))

    def of_keys(self, keys: Collection[bytes]) -> frozenset[bytes]:
        """Those of these keys whose records are hidden."""
        if not keys or not self:
            return frozenset()
        query = "SELECT DISTINCT author FROM hidden_author WHERE author IN ({})"
        return frozenset(key for (key,) in self._reader.among(query, keys))

    def __bool__(self) -> bool:
        """Whether anything is hidden: looked up once in a snapshot, since nearly every question asks it."""
        pinned = self._reader.pinned
        if pinned is not None and self._found is not None and self._found[0] == pinned:
            return self._found[1]
        is_any = bool(self._reader.read("SELECT 1 FROM hide LIMIT 1", ()))
        self._found = (pinned, is_any) if pinned is not None else None
        return is_any

    @contextmanager
    def included(self) -> Iterator[None]:
        """A snapshot in which nothing is hidden, for a person who wants to see it all."""
        reader = self._reader
        with reader.snapshot():
            if not reader.hides:
                yield
                return
            # Empty tables of the same names come before those of the log.
            for table in "hidden(n, thing)", "hidden_author(author, thing)":
                reader.connection.execute(f"CREATE TEMP TABLE {table}")
            reader.hides = False
            try:
                yield
            finally:
                reader.hides = True
                for table in "hidden", "hidden_author":
                    reader.connection.execute(f"DROP TABLE temp.{table}")

    def reasons(self, record: bytes) -> list[HiddenRow]:
        """What hides a record; nothing where it is not hidden."""
        return [HiddenRow(*row) for row in self._reader.read(_REASONS, (record,))]

    def rows(self, limit: int = -1) -> list[HiddenRow]:
        """All that is hidden, the newest first."""
        query = "SELECT thing, origin, reason, time FROM hide ORDER BY time DESC, thing, origin LIMIT ?"
        return [HiddenRow(*row) for row in self._reader.read(query, (limit,))]

    def things(self, *, words: bool) -> list[Thing]:
        """The words that are hidden, or the keys, ids and digests."""
        query = "SELECT DISTINCT thing FROM hide WHERE typeof(thing) = ? ORDER BY thing"
        return [thing for (thing,) in self._reader.read(query, ("text" if words else "blob",))]

    def count(self) -> int:
        """How many things are hidden."""
        return int(self._reader.read("SELECT count(*) FROM hide", ())[0][0])

    def count_records(self, thing: Thing | None = None) -> int:
        """How many records that are here a thing hides, or all together."""
        of_thing, author = ("", "") if thing is None else ("WHERE thing = ?1", "WHERE hidden_author.thing = ?1")
        query = f"""
        SELECT count(*) FROM (SELECT n FROM hidden {of_thing}
            UNION SELECT record.n FROM hidden_author CROSS JOIN record ON record.author = hidden_author.author {author})
        """  # noqa: S608
        return int(self._reader.read(query, () if thing is None else (thing,))[0][0])

    def add(self, rows: Sequence[HiddenRow]) -> None:
        """Note things as hidden, and records here with such an id or digest. A new reason replaces the old one."""
        connection, self._found = self._reader.connection, None
        insert = "INSERT INTO hide VALUES(?, ?, ?, ?) ON CONFLICT DO UPDATE SET reason = excluded.reason"
        connection.executemany(f"{insert} WHERE excluded.reason <> ''", rows)
        things = [(row.thing,) for row in rows if isinstance(row.thing, bytes)]
        for place in "record WHERE id", "task WHERE digest":
            query = f"INSERT OR IGNORE INTO hidden SELECT n, ?1 FROM {place} = ?1"  # noqa: S608
            connection.executemany(query, things)

    def remove(self, thing: Thing | None = None, origin: bytes | None = None) -> list[Thing]:
        """Forget a thing, whoever's list it is from; or all from one participant's list. Returns what it was."""
        connection, self._found = self._reader.connection, None
        name, value = ("thing", thing) if origin is None else ("origin", origin)
        things = [row[0] for row in self._reader.read(f"SELECT DISTINCT thing FROM hide WHERE {name} = ?", (value,))]  # noqa: S608
        connection.execute(f"DELETE FROM hide WHERE {name} = ?", (value,))  # noqa: S608
        for table in "hidden", "hidden_author":
            query = f"DELETE FROM {table} WHERE thing = ?1 AND NOT EXISTS(SELECT 1 FROM hide WHERE thing = ?1)"  # noqa: S608
            connection.executemany(query, [(thing,) for thing in things])
        return things

    def hide_authors(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Note keys whose records are hidden, each with the key of the participant that hides it."""
        self._reader.connection.executemany("INSERT OR IGNORE INTO hidden_author VALUES(?, ?)", rows)

    def hide_records(self, rows: Iterable[tuple[int, str]], *, but: Collection[bytes]) -> None:
        """Note records by their numbers, each with words that hide it; not those of some devices."""
        authors = ", ".join("?" * len(but))
        query = f"INSERT OR IGNORE INTO hidden SELECT n, ? FROM record WHERE n = ? AND author NOT IN ({authors})"  # noqa: S608
        self._reader.connection.executemany(query, ((phrase, n, *but) for n, phrase in rows))

    def signed(self, after: int, last: int) -> Iterator[tuple[int, bytes, bytes]]:
        """The tasks and the records about participants among some records, as they were signed."""
        # Of few records these are found by number, of all by kind.
        yield from self._reader.read(_SIGNED.format("+" if after else ""), (after, last))

    def texts(self, after: int, last: int) -> Iterator[tuple[int, str]]:
        """What others wrote in titles, hypotheses, notes and descriptions of components in some records."""
        for start in range(after, last, _PIECE):
            yield from self._reader.read(_TEXTS, (start, min(start + _PIECE, last)))
