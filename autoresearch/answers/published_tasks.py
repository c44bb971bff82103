"""A task that somebody published, as a folder of this machine."""

from __future__ import annotations

from pathlib import Path

from autoresearch.errors import NotFound
from autoresearch.log import BlobStore, Log, MissingBlob
from autoresearch.records import BlobRef, Task
from autoresearch.tasks import Task as TaskFolder
from autoresearch.tasks import rebuild_task


def published_task(log: Log, blobs: BlobStore, digest: bytes, folder: Path) -> TaskFolder:
    """Write the published task with this digest as a new folder; a folder that is this task already is only loaded.

    Raises:
        NotFound: the task, or one of its files (MissingBlob), is not on this machine.
        Refused: something else is in the folder's place.
        UsageError: what was published is no task.
    """
    row = log.tasks.find(digest)
    if row is None:
        raise NotFound(f"There is no task {digest.hex()[:12]} here.", hint="autoresearch task list")
    record = log.records.get(row.id)
    body = record.body
    assert isinstance(body, Task)

    def content(blob: BlobRef, name: str) -> bytes:
        if not blobs.has(blob.sha256):
            raise MissingBlob(f"{name} of the task {body.name}", blob, record.author)
        return blobs.get(blob.sha256)

    return rebuild_task(
        body.definition,
        digest,
        harness={name: content(blob, name) for name, blob in body.harness.items()},
        baseline=content(body.baseline, "the program"),
        summary=body.summary,
        folder=folder,
    )
