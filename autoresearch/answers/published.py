"""A task that somebody published, as a folder of this machine."""

from __future__ import annotations

from pathlib import Path

from autoresearch.errors import NotFound
from autoresearch.log import BlobStore, Log
from autoresearch.records import BlobRef, Task
from autoresearch.tasks import Task as TaskFolder
from autoresearch.tasks import rebuild_task


def published_task(log: Log, blobs: BlobStore, digest: bytes, folder: Path) -> TaskFolder:
    """Write the published task with this digest as a new folder; a folder that is this task already is only loaded.

    Raises:
        NotFound: the task, or one of its files, is not on this machine.
        Refused: something else is in the folder's place.
        UsageError: what was published is no task.
    """
    row = log.task(digest)
    if row is None:
        raise NotFound(f"There is no task {digest.hex()[:12]} here.", hint="autoresearch task list")
    body = log.get(row.id).body
    assert isinstance(body, Task)
    return rebuild_task(
        body.definition,
        digest,
        harness={name: _content(blobs, blob, name, body.name) for name, blob in body.harness.items()},
        baseline=_content(blobs, body.baseline, "train.py", body.name),
        summary=body.summary,
        folder=folder,
    )


def _content(blobs: BlobStore, blob: BlobRef, name: str, task: str) -> bytes:
    if not blobs.has(blob.sha256):
        raise NotFound(f"{name} of the task {task} is not on this machine.", hint="autoresearch peers")
    return blobs.get(blob.sha256)
