"""What the node says of itself."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from autoresearch import __version__
from autoresearch.answers import (
    find_task,
    nothing_to_verify,
    task_status,
    verifying_status,
)
from autoresearch.api import (
    LimitView,
    NetworkStatus,
    StatusAnswer,
    StorageStatus,
    TaskStatus,
    VerifyingStatus,
    WaitingStatus,
    WorkerStatus,
)
from autoresearch.errors import NotFound
from autoresearch.figures import duration, size
from autoresearch.notebook import Notebook
from autoresearch.running import Level
from autoresearch.settings import Storage, Work
from autoresearch.views import participant_with_key
from autoresearch.words import WHY_SENTENCES
from autoresearch_daemon.clock import now_ms
from autoresearch_daemon.progress import with_time_left
from autoresearch_daemon.service import ServiceStatus


def status_answer(
    now: ServiceStatus,
    notebook: Notebook,
    *,
    level: Level | None,
    started_ms: int,
    task: TaskStatus | None,
    net: NetworkStatus,
    storage: StorageStatus,
    warnings: Sequence[str],
) -> StatusAnswer:
    """State, reason, workers, sandbox, log and task of the node, at this moment."""
    asked = now.asked
    log, root = notebook.log, notebook.identity.root.public
    return StatusAnswer(
        state=now.state.value,
        why=now.why.value,
        reason=now.reason,
        since_ms=now.since_ms,
        until_ms=asked.paused_until_ms if asked.paused else asked.order.until_ms,
        runs_left=asked.order.runs_left,
        version=__version__,
        pid=os.getpid(),
        started_ms=started_ms,
        network=log.network.name,
        network_id=log.network.id.hex(),
        participant=participant_with_key(log, root),
        device_key=notebook.author.hex(),
        sandbox=None if level is None else int(level),
        sandbox_name="" if level is None else level.sentence,
        records=log.records.count(),
        mine=log.records.count(author=notebook.author),
        task=task,
        net=net,
        storage=storage,
        workers=[
            WorkerStatus(
                name=w.name,
                device=w.device,
                why=w.why.value,
                reason=WHY_SENTENCES[w.why],
                run=w.run and with_time_left(w.run, now_ms()),
            )
            for w in now.workers
        ],
        warnings=list(warnings),
    )


def limits_of(work: Work, storage: Storage) -> list[LimitView]:
    """What this node lends at most."""
    memory = size(work.max_memory_mib << 20) if work.max_memory_mib else "7/8 of this machine's"
    return [
        LimitView(name="workers", value=str(work.workers), setting="work.workers"),
        LimitView(name="threads of a run", value=str(work.threads), setting="work.threads"),
        LimitView(name="time of a run", value=duration(1000 * work.max_seconds), setting="work.max_seconds"),
        LimitView(name="memory of a run", value=memory, setting="work.max_memory_mib"),
        LimitView(
            name="free disk, at least", value=size(storage.minimum_free_mib << 20), setting="storage.minimum_free_mib"
        ),
    ]


def verifying_part(
    now: ServiceStatus, notebook: Notebook, measured: Sequence[WaitingStatus], *, task_digest: bytes | None
) -> VerifyingStatus:
    """The node's part in verification: what it did today, what it is asked for, what waits, what keeps it from it."""
    log, asked = notebook.log, now.asked
    part = verifying_status(log, notebook.author, now_ms())
    share = asked.order.verify_share if asked.working else 0.0
    checks = any(worker.assignment and worker.assignment.job for worker in now.workers)
    idle = share > 0 and not checks and now.job is None
    note = nothing_to_verify(log, notebook.author, now_ms(), task_digest) if idle else ""
    return msgspec.structs.replace(part, asked_share=share, waiting=list(measured), note=note)


def followed_task(notebook: Notebook, digest: bytes | None, archived: frozenset[bytes]) -> TaskStatus | None:
    """The task with this digest; without one, the task worked on last that is not archived."""
    try:
        found = find_task(notebook.log, digest.hex() if digest else None, author=notebook.author, archived=archived)
    except NotFound:
        return None  # nothing was run here yet
    return task_status(notebook.log, found, author=notebook.author)
