"""The files of a release: which names they may have, their hash, and their bundle (a tar archive). Pure.

The hash is that of Go modules, ``h1:``, with the mode beside each file: SHA-256 over the sorted lines
``sha256  mode  path``. It does not depend on git and its SHA-1.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterable
from typing import NamedTuple

BUNDLE_BYTES = 32 << 20
FILES_MOST = 4096
PATH_CHARACTERS = 240
_PART_BYTES = 128
_MODES = {False: 0o644, True: 0o755}
# A folder of this name would make a repository, with hooks and filters, within the project's own.
_GIT = ".git"


class File(NamedTuple):
    """One file: its path with ``/`` between the parts, its bytes, and whether it may be executed."""

    path: str
    content: bytes
    executable: bool = False


class BadBundle(ValueError):
    """The bytes are no bundle; ``str(error)`` says why."""


def fault_of_path(path: str) -> str | None:
    """Why a file of a release may not have this path; None where it may."""
    parts = path.split("/")
    if not path.isprintable() or "\\" in path or ":" in path:
        return "it has a character that no file name should have"
    if any(part in ("", ".", "..") for part in parts):
        return "it leads out of the folder"
    if any(part.lower().rstrip(". ") == _GIT for part in parts):
        return "it would be part of a git repository"
    if len(path) > PATH_CHARACTERS or any(len(part.encode("utf-8", "replace")) > _PART_BYTES for part in parts):
        return "it is too long"
    return None


def check_files(files: Iterable[File]) -> list[File]:
    """The files in order. Raises BadBundle where they can't lie in one folder, or are too many or too large."""
    found = sorted(files)
    if not found:
        raise BadBundle("it has no file")
    if len(found) > FILES_MOST:
        raise BadBundle(f"it has {len(found)} files, of {FILES_MOST} at most")
    if sum(len(file.content) for file in found) > BUNDLE_BYTES:
        raise BadBundle(f"its files have more than {BUNDLE_BYTES >> 20} MiB together")
    names: set[str] = set()
    for file in found:
        if fault := fault_of_path(file.path):
            raise BadBundle(f"the file {file.path[:80]!r} is refused: {fault}")
        if file.path in names:
            raise BadBundle(f"it has two files {file.path[:80]!r}")
        names.add(file.path)
    if both := next((name for name in names if any(above in names for above in _above(name))), None):
        raise BadBundle(f"a file stands where {both[:80]!r} needs a folder")
    return found


def tree_hash(files: Iterable[File]) -> str:
    """The hash of files, whatever their order: ``h1:`` and 64 hexadecimal digits."""
    lines = sorted(
        f"{hashlib.sha256(file.content).hexdigest()}  {_MODES[file.executable]:06o}  {file.path}\n" for file in files
    )
    return f"h1:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def pack(files: Iterable[File]) -> bytes:
    """Files as one tar archive; the same files give the same bytes. Raises BadBundle."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as archive:
        for file in check_files(files):
            entry = tarfile.TarInfo(file.path)
            entry.size, entry.mode = len(file.content), _MODES[file.executable]
            archive.addfile(entry, io.BytesIO(file.content))
    return buffer.getvalue()


def unpack(bundle: bytes) -> list[File]:
    """The files of a bundle. An archive that :func:`pack` would have written otherwise is refused.

    Raises:
        BadBundle: it is none, or has links, devices, impossible names, too many or too large files.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(bundle), mode="r:", encoding="utf-8", errors="strict") as archive:
            files = list(_files(archive))
    except (tarfile.TarError, ValueError, OverflowError, EOFError, OSError, RecursionError) as error:
        raise error if isinstance(error, BadBundle) else BadBundle(f"it is no tar archive: {error}"[:200]) from error
    if pack(files) != bundle:
        raise BadBundle("it has something beside its files")
    return files


def _files(archive: tarfile.TarFile) -> Iterable[File]:
    total = 0
    for count, entry in enumerate(archive):
        total += entry.size
        if count >= FILES_MOST or total > BUNDLE_BYTES:
            raise BadBundle(f"it has more than {FILES_MOST} files or {BUNDLE_BYTES >> 20} MiB")
        if entry.type != tarfile.REGTYPE or entry.issparse():
            raise BadBundle(f"{entry.name[:80]!r} is a link, a folder or a device")
        file = archive.extractfile(entry)
        assert file is not None
        yield File(entry.name, file.read(), executable=entry.mode == _MODES[True])


def _above(path: str) -> Iterable[str]:
    """The folders that a path needs."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))
