"""What participants wrote, found by its words: notes, releases, and titles, hypotheses and reasons of runs.

Of releases also what was yanked. Withdrawn ones are not found.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple

from autoresearch.log.connection import VISIBLE, Reader, in_parts
from autoresearch.log.projection import ATTACK, task_mark
from autoresearch.log.rows import ReleaseRow, YankRow

# More words than these make no question clearer.
WORDS_MOST = 16
# A beginning of a word finds the word only when it is at least so long.
_BEGINNING = 3
_WORD = re.compile(r"[^\W_]")

_TEXT_MATCHES = f"""
SELECT record.id, record.author, record.time, bm25(text_index, 0.0, 1.0) AS distance
FROM text_index CROSS JOIN record ON record.n = text_index.rowid
WHERE text_index MATCH ? AND record.task = ? AND {VISIBLE.format("record")}{{}}
ORDER BY distance, record.time DESC, record.id LIMIT ?
"""  # noqa: S608
_NOTES = f"""
SELECT id, author, time, 0.0 FROM note
WHERE task = ? AND topic <> '{ATTACK}' AND (? = '' OR topic = ?) AND {VISIBLE.format("note")}{{}}
ORDER BY time DESC, id LIMIT ?
"""  # noqa: S608
# The newest of each device: no device pushes out another's by publishing many.
_REPORTS = f"""
SELECT id, author, time, 0.0 FROM (
    SELECT id, author, time, row_number() OVER (PARTITION BY author ORDER BY time DESC, id) AS place FROM note
    WHERE task = ? AND topic = '{ATTACK}' AND {VISIBLE.format("note")}{{}})
WHERE place = 1 ORDER BY time DESC, id LIMIT ?
"""  # noqa: S608

TextKind = Literal["note", "worked", "failed"]


class FoundText(NamedTuple):
    """A record whose text has the words; the smaller ``distance`` is, the better the text fits."""

    id: bytes
    author: bytes
    time: int
    distance: float


class Texts:
    """The texts of notes and runs, and notes. Withdrawn and hidden records are not found."""

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
        query = as_query(words, every=every)
        if not query:
            return []
        match = f'marks : ("{kind}" AND "{task_mark(task)}") AND text : ({query})'
        rows = self._found(_TEXT_MATCHES, "record.author", [match, task], authors, limit)
        return sorted(rows, key=lambda match: (match.distance, -match.time, match.id))[:limit]

    def matching_runs(self, task: bytes, words: str) -> str:
        """The query of the index that finds the runs on a task whose text has all these words; empty without a word."""
        query = as_query(words, every=True)
        return f'marks : (("worked" OR "failed") AND "{task_mark(task)}") AND text : ({query})' if query else ""

    def newest_notes(
        self, task: bytes, *, limit: int, authors: Collection[bytes] | None = None, topic: str = ""
    ) -> list[FoundText]:
        """The newest notes on a task, the newest first; of a topic, or of all."""
        rows = self._found(_NOTES, "author", [task, topic, topic], authors, limit)
        return sorted(rows, key=lambda note: (-note.time, note.id))[:limit]

    def attack_reports(self, task: bytes, *, limit: int, authors: Collection[bytes] | None = None) -> list[FoundText]:
        """The newest report of each device on attacks on a task, the newest first."""
        rows = self._found(_REPORTS, "author", [task], authors, limit)
        return sorted(rows, key=lambda note: (-note.time, note.id))[:limit]

    def count_hidden_notes(self, task: bytes) -> int:
        """How many notes on a task are hidden, without reports of attacks."""
        query = f"SELECT count(*) FROM note WHERE task = ? AND topic <> ? AND NOT ({VISIBLE.format('note')})"  # noqa: S608
        return int(self._reader.rows(query, task, ATTACK)[0][0])

    def _found(
        self, query: str, column: str, values: list[object], authors: Collection[bytes] | None, limit: int
    ) -> list[FoundText]:
        if authors is None:
            return [FoundText(*row) for row in self._reader.rows(query.format(""), *values, limit)]
        texts: list[FoundText] = []
        for part in in_parts(sorted(authors)):
            among = query.format(f" AND {column} IN ({', '.join('?' * len(part))})")
            texts += [FoundText(*row) for row in self._reader.rows(among, *values, *part, limit)]
        return texts


def as_query(words: str, *, every: bool) -> str:
    """What a person typed as a query that the index takes, whatever it is; empty where it has no word. Pure."""
    return (" AND " if every else " OR ").join(words_in(words))


def words_in(text: str) -> list[str]:
    """The words in a text, each as the index takes it. Pure."""
    readable = text.encode("utf-8", "ignore").decode().replace("\0", " ").replace('"', " ")
    terms = list(dict.fromkeys(word for word in readable.split() if _WORD.search(word)))
    return [f'"{word}" *' if len(word) >= _BEGINNING else f'"{word}"' for word in terms[:WORDS_MOST]]


# A word in the name says more than one in the description. A publisher is only named where it was asked for.
_RELEASE_MATCHES = f"""
SELECT r.id, r.author, r.time, r.type, r.name, r.version, r.version_key, r.content,
    bm25(release_index, 2.0, 8.0, 1.0, 2.0) AS distance
FROM release_index CROSS JOIN component_release AS r ON r.n = release_index.rowid
WHERE release_index MATCH ? AND {VISIBLE.format("r")}{{}} ORDER BY distance, r.time DESC, r.id LIMIT ?
"""  # noqa: S608
_ROWS = "SELECT id, author, time, type, name, version, version_key, content FROM component_release AS r"
_NEWEST = f"{_ROWS} WHERE {VISIBLE.format('r')}{{}} ORDER BY r.time DESC, r.id LIMIT ?"
_TEXT = "type name description"


class Releases:
    """The releases of components in a log."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def find(self, release: bytes) -> ReleaseRow | None:
        """The release with this id; None where it is none, no component, or withdrawn."""
        query = f"{_ROWS} WHERE n = (SELECT n FROM record WHERE id = ?)"  # noqa: S608
        rows = self._reader.rows(query, release)
        return ReleaseRow(*rows[0]) if rows else None

    def named(self, kind: str, name: str) -> list[ReleaseRow]:
        """All releases of this name and type, or of any type where that is empty, of all publishers, in no order."""
        query = f"{_ROWS} WHERE name = ? AND ? IN (type, '')"
        return [ReleaseRow(*row) for row in self._reader.rows(query, name, kind)]

    def authors(self) -> list[bytes]:
        """The devices that published releases."""
        return [author for (author,) in self._reader.rows("SELECT DISTINCT author FROM component_release")]

    def search(
        self,
        words: Collection[tuple[str, Collection[bytes]]],
        *,
        kind: str = "",
        limit: int,
        authors: Collection[bytes] | None = None,
    ) -> list[ReleaseRow]:
        """Releases that have all of these words, each in their text or by one of the devices beside it.

        The best fit comes first. Without words all of them, the newest first. ``authors``: only theirs.
        """
        terms = [_term(word, devices) for word, devices in words]
        if any(term is None for term in terms):
            return []
        query, values = (_RELEASE_MATCHES, [" AND ".join(filter(None, terms))]) if terms else (_NEWEST, [])
        if kind:
            query, values = query.format(" AND r.type = ?{}"), [*values, kind]
        releases: list[ReleaseRow] = []
        parts = [None] if authors is None else in_parts(sorted(authors))
        for part in parts:
            among = f" AND r.author IN ({', '.join('?' * len(part))})" if part is not None else ""
            rows = self._reader.rows(query.format(among), *values, *(part or ()), limit)
            releases += [ReleaseRow(*row) for row in rows]
        return sorted(releases, key=lambda row: (row.distance, -row.time, row.id))[:limit]

    def yanks(self, releases: Collection[bytes]) -> list[YankRow]:
        """Everything that was said against these releases, whoever said it; the oldest first."""
        rows = self._reader.among("SELECT id, author, time, target FROM yank WHERE target IN ({})", releases)
        return sorted(map(YankRow._make, rows), key=lambda row: (row.time, row.id))

    def count(self) -> int:
        """How many releases there are."""
        return int(self._reader.rows("SELECT count(*) FROM component_release")[0][0])


def _term(word: str, devices: Collection[bytes]) -> str | None:
    """A word in the text, or one of these devices, as the index takes it; None: nothing can be found so."""
    terms = words_in(word)
    parts = [f"{{{_TEXT}}} : ({' AND '.join(terms)})"] if terms else []
    if devices:
        names = " OR ".join(f'"{device.hex()}"' for device in sorted(devices))
        parts.append(f"author : ({names})")
    return f"({' OR '.join(parts)})" if parts else None
