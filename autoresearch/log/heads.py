"""A file for each own device key that names its last record, beside the log.

Whoever puts back an old copy of the database would otherwise sign a sequence number a second time, and look like a
liar.
"""

from __future__ import annotations

import os
from pathlib import Path

from autoresearch.errors import Refused
from autoresearch.log.verdicts import Head


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
        folder.mkdir(exist_ok=True)
        with temporary.open("w", encoding="ascii") as file:
            file.write(f"{head.seq} {head.id.hex()}\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Refused(f"The record is stored, but {path} can't be written: {error.strerror}.") from error
