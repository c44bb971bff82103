"""Which blobs a record refers to. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from autoresearch.records import BlobRef, Record, Release, Run, Task, Verification


class Carried(StrEnum):
    """Which blobs go into a bundle."""

    SOURCES = "sources"
    ALL = "all"
    NONE = "none"


def blobs_of(record: Record, carried: Carried) -> Iterator[BlobRef]:
    """The blobs of a record: with ``SOURCES`` those that say what was run, with ``ALL`` logs and checkpoints too."""
    if carried is Carried.NONE:
        return
    body = record.body
    more: tuple[BlobRef | None, ...] = ()
    match body:
        case Run():
            yield body.source
            more = body.log, body.checkpoint
        case Task():
            yield body.baseline
            yield from body.harness.values()
        case Release():
            yield body.bundle
        case Verification():
            more = (body.log,)
    if carried is Carried.ALL:
        yield from (blob for blob in more if blob is not None)
