"""What components have learned, as one file: a stored zip of the state files in a run's ``data`` folder.

The same state gives the same bytes. A file may come from a stranger: it is unpacked whole and within bounds, or not.
"""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path

from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.projects.model import NAME
from autoresearch.sanitise import one_line

LEARNED = "learned.zip"
BEGIN = "begin.zip"
MOST_FILES = 256
MOST_BYTES = 256 << 20
_STATE = re.compile(rf"{NAME.pattern}(\.{NAME.pattern})?\.(json|safetensors)")
_NAME_BYTES = 160
_TIME = (1980, 1, 1, 0, 0, 0)
_END_BYTES, _LOCATOR_BYTES, _ENTRY_BYTES = 22, 20, 46


class DamagedState(AutoresearchError):
    """A file is no learned state, or holds more than one may."""


def pack_learned(folder: Path, target: Path) -> None:
    """Write the state files of a folder into one file; other files are left out.

    Raises:
        UsageError: they are too many or too large.
    """
    paths = sorted((path for path in folder.iterdir() if _is_state(path)), key=lambda path: path.name)
    size = sum(path.stat().st_size for path in paths)
    if len(paths) > MOST_FILES or size > MOST_BYTES:
        raise UsageError(
            f"what was learned has {len(paths)} files and {size >> 20} MiB",
            hint=f"at most {MOST_FILES} files and {MOST_BYTES >> 20} MiB can be passed on",
        )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as file:
        for path in paths:
            entry = zipfile.ZipInfo(path.name, _TIME)
            entry.create_system, entry.external_attr = 3, 0o644 << 16  # the same on every system
            entry.file_size = path.stat().st_size
            with path.open("rb") as source, file.open(entry, "w") as kept:
                shutil.copyfileobj(source, kept)


def unpack_learned(source: Path, folder: Path) -> None:
    """Put the state files of a packed file into a folder, which is made; on an error none is left there.

    Raises:
        DamagedState: it is no such file, a name is not plain, or there are too many or too large files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    try:
        _check_end(source)
        with zipfile.ZipFile(source) as file:
            _check_entries(file.infolist())
            for entry in file.infolist():
                path = folder / entry.filename
                with file.open(entry) as packed, path.open("xb") as kept:
                    made.append(path)
                    shutil.copyfileobj(packed, kept)
    except (OSError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile, EOFError) as error:
        for path in made:
            path.unlink(missing_ok=True)
        reason = one_line(str(error), 100) or type(error).__name__
        raise DamagedState(f"{source.name} holds no learned state: {reason}", hint="begin without it") from None


def _is_state(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and _STATE.fullmatch(path.name) is not None


def _check_end(source: Path) -> None:
    """Bound the list of files before it is read. Raises ValueError."""
    with source.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END_BYTES - _LOCATOR_BYTES))
        tail = file.read()
    end = tail[-_END_BYTES:]
    if len(end) < _END_BYTES or end[:4] != b"PK\x05\x06" or end[-2:] != b"\0\0":
        raise ValueError("it is no plain zip file")
    listed = int.from_bytes(end[12:16], "little")
    if tail[:4] == b"PK\x06\x07" or listed > MOST_FILES * (_ENTRY_BYTES + 2 * _NAME_BYTES):
        raise ValueError("its list of files is too long")


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    """Raises ValueError."""
    names = {entry.filename for entry in entries}
    if len(entries) > MOST_FILES or len(names) != len(entries):
        raise ValueError("it has too many files, or two of one name")
    for entry in entries:
        if not _STATE.fullmatch(entry.filename) or len(entry.filename) > _NAME_BYTES:
            raise ValueError(f"“{one_line(entry.filename, 60)}” is no name of a state file")
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size or entry.flag_bits & 1:
            raise ValueError(f"{entry.filename} is compressed or encrypted")
    if sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise ValueError(f"its files have more than {MOST_BYTES >> 20} MiB")
