"""A new log in a test is a copy of an empty one: making its tables takes longer than many a test.

The first in each process is made as logs are. Daemons and commands in processes of their own make theirs themselves.
"""

from __future__ import annotations

import functools
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from autoresearch.log import log
from autoresearch.log.connection import open_database

Make = Callable[[sqlite3.Connection], None]


@functools.cache
def _empty(make: Make) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        open_database(Path(folder) / "log.sqlite", make, read_only=False).close()
        return (Path(folder) / "log.sqlite").read_bytes()


def _open_copy(path: Path, make: Make, *, read_only: bool) -> sqlite3.Connection:
    if not read_only and path.parent.is_dir() and not any(path.parent.glob(f"{path.name}*")):
        path.write_bytes(_empty(make))
    return open_database(path, make, read_only=read_only)


def copy_empty_logs() -> None:
    """Have all logs of this process begin so."""
    log.open_database = _open_copy
