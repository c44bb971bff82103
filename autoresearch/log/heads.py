"""A file for each own device key that names its last record, beside the log.

Whoever puts back an old copy of the database would otherwise sign a sequence number a second time, and look like a
liar.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from autoresearch.errors import Refused
from autoresearch.log.durability import sync_folder
from autoresearch.log.models import Head

TURN_S = 30.0
KEY_BYTES = 32


@contextmanager
def appending(folder: Path, author: bytes) -> Iterator[None]:
    """Take turns with other processes that append with this key, so that the file always names the last of them."""
    lock = FileLock(folder / f"{author.hex()}.lock", timeout=TURN_S)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise Refused("Another process is appending with this key.", hint="try again in a moment") from error
    except OSError as error:
        raise Refused(f"{folder} can't be written: {error.strerror}.") from error
    try:
        yield
    finally:
        lock.release()


def own_authors(folder: Path) -> frozenset[bytes]:
    """The keys that appended records here."""
    names = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
    return frozenset(bytes.fromhex(name) for name in names if len(name) == 2 * KEY_BYTES)


def read_head(folder: Path, author: bytes) -> Head | None:
    """What the file says, or None without a file. Raises Refused when it is damaged."""
    path = folder / author.hex()
    try:
        seq, record_id = path.read_text("ascii").split()
        return Head(int(seq), bytes.fromhex(record_id))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Refused(
            f"{path}, which names this device's last record, can't be read.",
            hint="when the log is known to be complete, delete that file",
        ) from error


def write_head(folder: Path, author: bytes, head: Head) -> None:
    """Name ``head``: on the disk before this returns, and never half written. Raises Refused."""
    path = folder / author.hex()
    temporary = path.with_suffix(".new")
    try:
        with temporary.open("w", encoding="ascii") as file:
            file.write(f"{head.seq} {head.id.hex()}\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(folder)
    except OSError as error:
        raise Refused(f"The record is stored, but {path} can't be written: {error.strerror}.") from error
