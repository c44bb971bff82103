"""Which task a person means: by name, by the beginning of its digest, or the one worked on last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from autoresearch.errors import AmbiguousId, NoTaskYet, NotFound
from autoresearch.log import Log, TaskRow, task_rules
from autoresearch.records import Run, Task
from autoresearch.views import in_snapshot

# As many recent runs as are looked at for one on a task that this log knows.
RECENT_RUNS = 50
_DIGEST = re.compile(r"[0-9a-f]{4,64}")


class FoundTask(NamedTuple):
    """A task as its published definition has it. ``baseline`` is its program's canonical digest."""

    digest: bytes
    name: str
    metric: str
    direction: str
    budget: float
    floor: float | None
    baseline: bytes | None


@in_snapshot
def find_task(
    log: Log, reference: str | None = None, *, author: bytes | None = None, archived: frozenset[bytes] = frozenset()
) -> FoundTask:
    """The task with this name or digest; without a reference the one that ``author``, or else anybody, ran last.

    Names are not unique: of several tasks with one name, the one that ``author`` has runs on is meant. What is
    ``archived`` here is meant by its name or digest alone, and by a name only where no other task has it.

    Raises:
        NotFound: there is none.
        AmbiguousId: there are several.
    """
    # A definition without a direction and a budget cannot be ranked; anybody may have published it.
    published = [row for row in log.tasks.all() if row.direction is not None]
    known = {row.digest: row for row in published}
    if reference is None:
        return _load(log, _last(log, _but(known, archived), author))
    named = [task for digest in _named(published, reference) if (task := _load(log, known[digest])).name == reference]
    if not named and _DIGEST.fullmatch(reference.lower()):
        named = [_load(log, row) for row in known.values() if row.digest.hex().startswith(reference.lower())]
    named = [task for task in named if task.digest not in archived] or named
    if len(named) > 1 and author is not None:
        named = [task for task in named if log.runs.newest(task.digest, limit=1, author=author)] or named
    if not named:
        names = ", ".join(sorted({row.name for row in published})[:5])
        raise NotFound(f"There is no task {reference[:80]} here.", hint=f"known tasks: {names}" if names else "")
    if len(named) > 1:
        digests = sorted(task.digest.hex()[:12] for task in named)[:10]
        raise AmbiguousId(f"{reference} can mean several tasks.", digests)
    return named[0]


def other_tasks(log: Log, task: FoundTask, archived: frozenset[bytes] = frozenset()) -> list[str]:
    """The names of the other tasks here that are not archived, sorted; of one with the same name its digest."""
    names = {row.digest: row.name for row in log.tasks.all() if row.direction is not None}
    others = {digest: name for digest, name in names.items() if digest != task.digest and digest not in archived}
    return sorted({digest.hex()[:12] if name == task.name else name for digest, name in others.items()})


def task_of(log: Log, digest: bytes) -> FoundTask | None:
    """The task with this digest, or None when its definition is not here."""
    row = log.tasks.find(digest)
    return _load(log, row) if row and row.direction is not None else None


def _named(published: Iterable[TaskRow], name: str) -> list[bytes]:
    """The digests that somebody published under a name; whether the definition has that name is another question."""
    return list(dict.fromkeys(row.digest for row in published if row.name == name))


def _but(known: Mapping[bytes, TaskRow], archived: frozenset[bytes]) -> dict[bytes, TaskRow]:
    """The tasks that are not archived."""
    left = {digest: row for digest, row in known.items() if digest not in archived}
    if known and not left:
        hint = "name one with --task, or: autoresearch task restore NAME"
        raise NotFound("All tasks here are archived.", hint=hint)
    return left


def _last(log: Log, known: Mapping[bytes, TaskRow], author: bytes | None) -> TaskRow:
    if not known:
        raise NoTaskYet
    own = log.records.newest(kind="run", author=author, limit=RECENT_RUNS) if author is not None else []
    for record in own or log.records.newest(kind="run", limit=RECENT_RUNS):
        if isinstance(record.body, Run) and record.body.task in known:
            return known[record.body.task]
    return max(known.values(), key=lambda row: (row.time, row.id))


def _load(log: Log, row: TaskRow) -> FoundTask:
    body = log.records.get(row.id).body
    assert isinstance(body, Task)
    rules = task_rules(body.definition)
    assert rules
    metric = body.definition["metric"]
    assert isinstance(metric, Mapping)
    name, floor, baseline = (body.definition.get("name"), metric.get("floor"), body.definition.get("baseline"))
    return FoundTask(
        digest=row.digest,
        # The record's own name is its publisher's word; the definition's is part of the digest.
        name=name if isinstance(name, str) else row.name,
        metric=str(metric.get("name", "")),
        direction=rules.direction,
        budget=rules.budget,
        floor=float(floor) if isinstance(floor, int | float) and not isinstance(floor, bool) else None,
        baseline=baseline if isinstance(baseline, bytes) else None,
    )
