"""One process for each device key: two that sign with one key would spend a sequence number twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from autoresearch.errors import Locked, Refused


@contextmanager
def lock_device(path: Path) -> Iterator[None]:
    """Hold the device key in the file ``path`` for this process. The kernel lets go when the process ends, however.

    Raises Locked when another process holds it, Refused when the folder can't be written.
    """
    lock = FileLock(path.with_name(path.name + ".lock"), timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout as error:
        raise Locked(
            f"Another process works with the key {path}.", hint="stop it first, or talk to it: autoresearch status"
        ) from error
    except OSError as error:
        raise Refused(f"The key {path} can't be locked: {error.strerror}.") from error
    try:
        yield
    finally:
        lock.release()
