"""Unpacks wheels into an environment. Nothing lands outside of it, nothing takes the place of Python there.

What pip does beside that is left out on purpose: scripts and their entry points, whose names strangers choose.
Source: the binary distribution format, https://packaging.python.org/en/latest/specifications/binary-distribution-format/.
"""

from __future__ import annotations

import hashlib
import shutil
import stat
import zipfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from autoresearch.errors import CannotRunHere
from autoresearch.running import site_packages

# Where the parts of a wheel's folder NAME-VERSION.data go; the others are left out.
_CODE = frozenset({"purelib", "platlib"})
_DATA = "data"
# What an environment has of its own.
_OF_PYTHON = frozenset({"bin", "include", "lib64", "pyvenv.cfg"})


def unpack(wheel: Path, environment: Path, hashes: Collection[str]) -> None:
    """Unpack one wheel; its SHA-256, in hex, has to be among ``hashes``.

    Raises:
        CannotRunHere: it has another hash, is no wheel, has an impossible file name, or is larger than the free disk.
    """
    with wheel.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() not in hashes:
            raise CannotRunHere(f"{wheel.name} has another hash than the lock says", hint="ask the task's author")
    try:
        with zipfile.ZipFile(wheel) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > shutil.disk_usage(environment).free:
                raise CannotRunHere(f"the disk is too full for {wheel.name}", hint="free some space, then try again")
            for entry in archive.infolist():
                if not entry.is_dir() and (target := _target(entry.filename, environment)) is not None:
                    _extract(archive, entry, target)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise CannotRunHere(f"{wheel.name} can't be unpacked: {error}", hint="ask the task's author") from error


def _target(name: str, environment: Path) -> Path | None:
    """Where a file of a wheel belongs; None: nowhere. Raises ValueError for a name that leads elsewhere."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or not name.isprintable():
        raise ValueError(f"it has a file with an impossible name: {name[:80]!r}")
    if not parts[0].endswith(".data"):
        return site_packages(environment).joinpath(*parts)
    kind, rest = parts[1:2], parts[2:]
    if not rest:
        return None
    if kind[0] in _CODE:
        return site_packages(environment).joinpath(*rest)
    is_pythons = rest[0] in _OF_PYTHON or (rest[0] == "lib" and rest[1:2] and rest[1].startswith("python"))
    return environment.joinpath(*rest) if kind[0] == _DATA and not is_pythons else None


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy, 1 << 20)
    runs = bool(entry.external_attr >> 16 & stat.S_IXUSR)
    target.chmod(0o755 if runs else 0o644)
