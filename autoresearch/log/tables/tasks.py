"""Tasks as they were published, and what ranking needs of their definitions."""

from __future__ import annotations

from collections.abc import Mapping

from autoresearch.log.derived_rows import RULES, rules_in
from autoresearch.log.models import TaskRow
from autoresearch.log.reader import Reader
from autoresearch.log.scoring import TaskRules
from autoresearch.records import Task, parse_stored

_TASK = "SELECT id, digest, name, author, time, direction, noise, budget FROM task"


class Tasks:
    """The publications of tasks that were not withdrawn."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def all(self) -> list[TaskRow]:
        """All publications of tasks, the oldest first. One task may be published by several."""
        return [TaskRow(*row) for row in self._reader.rows(f"{_TASK} ORDER BY time, id")]

    def find(self, digest: bytes) -> TaskRow | None:
        """The first publication of the task with this digest, or None."""
        found = self._reader.rows(f"{_TASK} WHERE digest = ? ORDER BY time, id LIMIT 1", digest)
        return TaskRow(*found[0]) if found else None

    def definition(self, task: bytes) -> Mapping[str, object] | None:
        """The definition of a task, or None when nobody published it."""
        query = """
        SELECT record.raw, record.signature FROM task JOIN record ON record.n = task.n WHERE task.digest = ?
        ORDER BY task.time, task.id LIMIT 1
        """
        found = self._reader.rows(query, task)
        body = parse_stored(*found[0]).body if found else None
        return body.definition if isinstance(body, Task) else None

    def rules(self, digest: bytes) -> TaskRules | None:
        """What ranking needs of a task, also of one whose record was withdrawn; None when unknown."""
        found = self._reader.rows(RULES, digest)
        return rules_in(found[0]) if found else None

    def sign(self, digest: bytes) -> float:
        """The factor that makes smaller values of a task better; 1 for an unknown task."""
        rules = self.rules(digest)
        return rules.sign if rules else 1.0
