"""What is to be computed again: by the step that does it, see :mod:`autoresearch.log.derive`, and what it is."""

from __future__ import annotations

from autoresearch.log.connection import Reader


class Todo:
    """The table ``todo``. Until a thing is taken off it, its rows are as before."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def keys(self, step: str, limit: int) -> list[int | bytes]:
        """What is to be computed again by a step; of runs the newest first."""
        query = "SELECT key FROM todo WHERE step = ? ORDER BY key DESC LIMIT ?"
        return [key for (key,) in self._reader.read(query, (step, limit))]

    def count(self) -> int:
        """How much is to be computed again: runs, programs of devices, who copied whom, what is believed on tasks."""
        return int(self._reader.read("SELECT count(*) FROM todo", ())[0][0])
