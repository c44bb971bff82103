"""Finding what participants wrote by its words: notes, and the titles, hypotheses and reasons of runs."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple

from autoresearch.log.reader import Reader, in_parts

# More words than these make no question clearer.
WORDS_MOST = 16
# A beginning of a word finds the word only when it is at least so long.
_BEGINNING = 3
_WORD = re.compile(r"[^\W_]")

_FOUND = """
SELECT record.id, record.author, record.time, bm25(text_index, 0.0, 1.0) AS distance
FROM text_index CROSS JOIN record ON record.n = text_index.rowid
WHERE text_index MATCH ? AND record.task = ?{} ORDER BY distance, record.time DESC, record.id LIMIT ?
"""
_NOTES = "SELECT id, author, time, 0.0 FROM note WHERE task = ?{} ORDER BY time DESC, id LIMIT ?"

TextKind = Literal["note", "worked", "failed"]


class FoundText(NamedTuple):
    """A record whose text has the words; the smaller ``distance`` is, the better the text fits."""

    id: bytes
    author: bytes
    time: int
    distance: float


class Texts:
    """The texts of notes and runs, and notes. Withdrawn records are not found."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def search(
        self,
        task: bytes,
        kind: TextKind,
        words: str,
        *,
        limit: int,
        authors: Collection[bytes] | None = None,
        every: bool = True,
    ) -> list[FoundText]:
        """What was written on a task with these words, the best fit first: all of them, or with ``every`` false some.

        Any text may be given as words; without a word in it nothing is found. ``authors`` are those to be found.
        """
        asked = as_query(words, every=every)
        if not asked:
            return []
        match = f'marks : ("{kind}" AND "{task.hex()}") AND text : ({asked})'
        found = self._found(_FOUND, "record.author", [match, task], authors, limit)
        return sorted(found, key=lambda one: (one.distance, -one.time, one.id))[:limit]

    def runs_with(self, task: bytes, words: str) -> list[int]:
        """The numbers of the records of runs on a task whose text has all these words, in no order."""
        asked = as_query(words, every=True)
        match = f'marks : (("worked" OR "failed") AND "{task.hex()}") AND text : ({asked})'
        query = "SELECT rowid FROM text_index WHERE text_index MATCH ?"
        return [row for (row,) in self._reader.rows(query, match)] if asked else []

    def newest_notes(self, task: bytes, *, limit: int, authors: Collection[bytes] | None = None) -> list[FoundText]:
        """The newest notes on a task, the newest first."""
        found = self._found(_NOTES, "author", [task], authors, limit)
        return sorted(found, key=lambda one: (-one.time, one.id))[:limit]

    def _found(
        self, query: str, column: str, values: list[object], authors: Collection[bytes] | None, limit: int
    ) -> list[FoundText]:
        if authors is None:
            return [FoundText(*row) for row in self._reader.rows(query.format(""), *values, limit)]
        found: list[FoundText] = []
        for part in in_parts(sorted(authors)):
            among = query.format(f" AND {column} IN ({', '.join('?' * len(part))})")
            found += [FoundText(*row) for row in self._reader.rows(among, *values, *part, limit)]
        return found


def as_query(words: str, *, every: bool) -> str:
    """What a person typed as a query that the index takes, whatever it is; empty where it has no word. Pure."""
    return (" AND " if every else " OR ").join(words_in(words))


def words_in(text: str) -> list[str]:
    """The words in a text, each as the index takes it. Pure."""
    readable = text.encode("utf-8", "ignore").decode().replace("\0", " ").replace('"', " ")
    found = list(dict.fromkeys(word for word in readable.split() if _WORD.search(word)))
    return [f'"{word}" *' if len(word) >= _BEGINNING else f'"{word}"' for word in found[:WORDS_MOST]]
