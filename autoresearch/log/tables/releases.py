"""Releases of components: by name, by words, and what was yanked. Withdrawn ones are not found."""

from __future__ import annotations

from collections.abc import Collection

from autoresearch.log.models import ReleaseRow, YankRow
from autoresearch.log.reader import Reader, in_parts, marks
from autoresearch.log.tables.texts import words_in

# A word in the name says more than one in the description. A publisher is only named where it was asked for.
_FOUND = """
SELECT r.id, r.author, r.time, r.type, r.name, r.version, r.version_key, r.content,
    bm25(release_index, 2.0, 8.0, 1.0, 2.0) AS distance
FROM release_index CROSS JOIN component_release AS r ON r.n = release_index.rowid
WHERE release_index MATCH ?{} ORDER BY distance, r.time DESC, r.id LIMIT ?
"""
_ROWS = "SELECT id, author, time, type, name, version, version_key, content FROM component_release AS r"
_NEWEST = f"{_ROWS} WHERE true{{}} ORDER BY r.time DESC, r.id LIMIT ?"
_TEXT = "type name description"


class Releases:
    """The releases of components in a log."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def find(self, release: bytes) -> ReleaseRow | None:
        """The release with this id; None where it is none, no component, or withdrawn."""
        query = f"{_ROWS} WHERE n = (SELECT n FROM record WHERE id = ?)"  # noqa: S608
        found = self._reader.rows(query, release)
        return ReleaseRow(*found[0]) if found else None

    def named(self, kind: str, name: str) -> list[ReleaseRow]:
        """All releases of this type and name, of all publishers, in no order."""
        return [ReleaseRow(*row) for row in self._reader.rows(f"{_ROWS} WHERE name = ? AND type = ?", name, kind)]

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
        query, values = (_FOUND, [" AND ".join(filter(None, terms))]) if terms else (_NEWEST, [])
        if kind:
            query, values = query.format(" AND r.type = ?{}"), [*values, kind]
        found: list[ReleaseRow] = []
        parts = [None] if authors is None else in_parts(sorted(authors))
        for part in parts:
            among = f" AND r.author IN ({', '.join('?' * len(part))})" if part is not None else ""
            rows = self._reader.rows(query.format(among), *values, *(part or ()), limit)
            found += [ReleaseRow(*row) for row in rows]
        return sorted(found, key=lambda row: (row.distance, -row.time, row.id))[:limit]

    def yanks(self, releases: Collection[bytes]) -> list[YankRow]:
        """Everything that was said against these releases, whoever said it; the oldest first."""
        found: list[YankRow] = []
        for part in in_parts(releases):
            query = f"SELECT id, author, time, target FROM yank WHERE target IN ({marks(part)})"  # noqa: S608
            found += [YankRow(*row) for row in self._reader.rows(query, *part)]
        return sorted(found, key=lambda row: (row.time, row.id))

    def count(self) -> int:
        """How many releases there are."""
        return int(self._reader.rows("SELECT count(*) FROM component_release")[0][0])


def _term(word: str, devices: Collection[bytes]) -> str | None:
    """A word in the text, or one of these devices, as the index takes it; None: nothing can be found so."""
    said = words_in(word)
    parts = [f"{{{_TEXT}}} : ({' AND '.join(said)})"] if said else []
    if devices:
        parts.append(_author_term(devices))
    return f"({' OR '.join(parts)})" if parts else None


def _author_term(devices: Collection[bytes]) -> str:
    names = " OR ".join(f'"{device.hex()}"' for device in sorted(devices))
    return f"author : ({names})"
