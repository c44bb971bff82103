"""What people type for a run: an id, the beginning of one, ``@`` for the best, ``@mine``, and ``~N`` for a parent."""

from __future__ import annotations

import re

from autoresearch.answers.leaderboards import best_program
from autoresearch.answers.task_lookup import FoundTask, find_task
from autoresearch.errors import NotFound, UsageError
from autoresearch.log import Log
from autoresearch.records import parse_id, short_id
from autoresearch.views import best_of, in_snapshot, run_body, trust_context

_REFERENCE = re.compile(r"(?P<start>@[a-z]*|[^@~]+)(?:~(?P<steps>[0-9]{0,4}))?")


@in_snapshot
def resolve_reference(
    log: Log,
    text: str,
    *,
    task: FoundTask | None = None,
    author: bytes | None = None,
    archived: frozenset[bytes] = frozenset(),
) -> bytes:
    """The id of the record that is meant: ``bafy…``, ``g3x``, ``@``, ``@mine``, each with ``~`` or ``~2`` if wanted.

    ``@`` is the best run of the task: confirmed, else provisional, else ``author``'s own, else reported; never one that
    is in doubt. ``@mine`` is the best of ``author`` by its own word. Without ``task`` it is the one worked on last
    that is not ``archived``. ``~N`` goes N parents back.

    Raises:
        NotFound: there is none.
        AmbiguousId: several ids begin so.
        UsageError: it is none of these forms, or ``~`` follows what is no run.
    """
    match = _REFERENCE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"“{text[:80]}” names no run.", hint="an id or its beginning, @, @mine, or one of them with ~1"
        )
    start, steps = match["start"], match["steps"]
    if start.startswith("@"):
        if start not in ("@", "@mine"):
            raise UsageError(f"{start} names no run.", hint="@ is the best run, @mine the best of this device")
        found = _best(log, start, task or find_task(log, author=author, archived=archived), author)
    else:
        found = log.records.resolve(start)
    return found if steps is None else _ancestor(log, found, int(steps or 1))


def _best(log: Log, start: str, task: FoundTask, author: bytes | None) -> bytes:
    if start == "@":
        program = best_program(log, task, author=author)
        found = parse_id(program.id) if program else None
    else:
        mine = best_of(log, task.digest, author, trust_context(log)) if author else None
        found = mine.first if mine else None
    if found is None:
        whose = "" if start == "@" else " of this device"
        raise NotFound(f"No run{whose} on {task.name} has a value yet.", hint="autoresearch work")
    return found


def _ancestor(log: Log, run_id: bytes, steps: int) -> bytes:
    found = run_id
    for done in range(steps):
        parent = run_body(log, found).parent
        if parent is None:
            known = f"The run {short_id(run_id)} has {done} ancestors, not {steps}."
            raise NotFound(known, hint=f"autoresearch lineage {short_id(run_id)}")
        if not log.records.has([parent]):
            raise NotFound(f"The parent of {short_id(found)} is not in this log.")
        found = parent
    return found
