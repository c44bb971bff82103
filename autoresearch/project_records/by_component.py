"""Which published runs used a component: by the programs of their agents, as far as these are on this machine."""

from __future__ import annotations

from collections.abc import Iterable

from autoresearch.answers import task_of, top_answer
from autoresearch.api import ProgramView
from autoresearch.errors import UsageError
from autoresearch.log import BlobStore, Log
from autoresearch.projects import used_components
from autoresearch.recalling import text_of
from autoresearch.records import format_id, parse_id
from autoresearch.sanitise import one_line

# So many of a board's rows are looked through.
MOST_ROWS = 1000


def component_key(text: str) -> str:
    """What ``policy/q_table`` means in a project: ``policy.q_table``. Raises UsageError where it is no such name."""
    kind, slash, name = text.partition("/")
    if not slash or not kind.isidentifier() or not name:
        raise UsageError(f"“{one_line(text, 60)}” names no component", hint="--component policy/q_table")
    return f"{kind.lower()}.{name}"


def rows_with_component(log: Log, blobs: BlobStore, rows: Iterable[ProgramView], key: str) -> list[ProgramView]:
    """The rows of a board whose agents use a component, in their order."""
    return [row for row in rows if key in _used(log, blobs, row)]


def unknown_programs(log: Log, blobs: BlobStore, rows: Iterable[ProgramView]) -> int:
    """How many rows have programs that are not on this machine, so that nobody here knows what they use."""
    return sum(text_of(log, blobs, parse_id(row.id)) is None for row in rows)


def runs_of_release(log: Log, blobs: BlobStore, release: bytes, *, limit: int, me: bytes | None) -> list[ProgramView]:
    """The agents that use a release, the best of each task first, whatever the task."""
    name, found = format_id(release), []
    for digest in dict.fromkeys(row.digest for row in log.tasks.all()):
        rules, task = log.tasks.rules(digest), task_of(log, digest)
        if rules is None or not rules.any_budget or task is None:
            continue
        rows = top_answer(log, task, limit=MOST_ROWS, author=me).programs
        found += [row for row in rows if any(pins.get("release") == name for pins in _used(log, blobs, row).values())]
    return found[:limit]


def _used(log: Log, blobs: BlobStore, row: ProgramView) -> dict[str, dict[str, str]]:
    return used_components(text_of(log, blobs, parse_id(row.id)) or "")
