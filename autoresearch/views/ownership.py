"""Ownership: what only this participant wrote, by the log. Nothing else may run without a sandbox."""

from __future__ import annotations

import hashlib

from autoresearch.log import Log
from autoresearch.records import Run
from autoresearch.records import Task as TaskBody
from autoresearch.tasks import Task, source_digest
from autoresearch.views.cache import roster_of


def own_keys(log: Log, device: bytes, now_ms: int) -> frozenset[bytes]:
    """The keys of the participant that a device speaks for, itself among them."""
    roster = roster_of(log)
    return roster.keys_of({roster.voter(device, now_ms).root}) | {device}


def is_own_task(log: Log, task: Task, own: frozenset[bytes], *, shipped: Task) -> bool:
    """Whether no other participant published a file of a task folder: neither in a task nor, for its program, as a run.

    Shipped files are everybody's own. Of other files the first publication in a task counts, by the order of arrival in
    this log: no other participant can choose it. A file that differs in one byte from a published one is another file.
    """
    files = _files(task) - _files(shipped)
    first = _first_publishers(log, files)
    if not own.issuperset(first.values()):
        return False
    program = hashlib.sha256(task.baseline).digest()
    return program not in files or program in first or not _is_others_run(log, task.baseline.decode(), own)


def is_own_program(
    log: Log, task: Task, program: str, parent: bytes | None, own: frozenset[bytes], *, shipped: Task
) -> bool:
    """Whether no other participant wrote any of a task and of a program for it, edited from the run ``parent``."""
    if not is_own_task(log, task, own, shipped=shipped):
        return False
    if parent is not None and not (is_own_run(log, parent, own) or _is_baseline(log, parent, task)):
        return False
    return program in (task.baseline.decode(), shipped.baseline.decode()) or not _is_others_run(log, program, own)


def _is_baseline(log: Log, run: bytes, task: Task) -> bool:
    record = log.records.find(run)
    body = record.body if record else None
    return isinstance(body, Run) and body.source_digest == source_digest(task.baseline.decode())


def is_own_run(log: Log, run: bytes, own: frozenset[bytes]) -> bool:
    """Whether a run and all its ancestors, back to a run without a parent, are this participant's.

    A run that changes a base other than its task's baseline may hold text of others, so it is not this participant's.
    Nor is one that came from another network and lost its parent there.
    """
    following: bytes | None = run
    while following is not None:
        record = log.records.find(following)
        if record is None or not isinstance(record.body, Run) or record.author not in own or record.body.base:
            return False
        following = record.body.parent
        if following is None and record.body.origin:
            return _is_task_s_program(log, record.body)
    return True


def _is_task_s_program(log: Log, run: Run) -> bool:
    row = log.tasks.find(run.task)
    body = log.records.get(row.id).body if row else None
    return isinstance(body, TaskBody) and body.baseline.sha256 == run.source.sha256


def _first_publishers(log: Log, files: set[bytes]) -> dict[bytes, bytes]:
    """By file, the device that first published it in a task. Unpublished files are left out."""
    found: dict[bytes, bytes] = {}
    for record in log.records.arrived("task"):
        body = record.body
        assert isinstance(body, TaskBody)
        for blob in (body.baseline, *body.harness.values()):
            if blob.sha256 in files:
                found.setdefault(blob.sha256, record.author)
    return found


def _is_others_run(log: Log, source: str, own: frozenset[bytes]) -> bool:
    """Whether others have a counted run of a program, on some task, and this participant has none there."""
    digest = source_digest(source)
    tasks = {(row.digest, row.budget) for row in log.tasks.all() if row.budget is not None}
    return any(
        log.programs.find(task, digest, budget) is not None and not log.entries.entrants(task, digest, budget, own)
        for task, budget in tasks
    )


def _files(task: Task) -> set[bytes]:
    return {hashlib.sha256(content).digest() for content in (task.baseline, *task.harness.values())}
