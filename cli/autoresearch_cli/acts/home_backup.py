"""The whole home as one tar file, also while the daemon runs, and back: settings, keys, log, blobs, the node's notes.

What is made again by itself is left out: caches, runs in hand, sockets, the daemon's log, the API's token.
"""

from __future__ import annotations

import errno
import io
import os
import shlex
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.log.blobs import forget_lost
from autoresearch.paths import Paths, archive_paths
from autoresearch.text import size

# The first file of a backup: what it is, in which format.
MARK, FORMAT = "autoresearch-backup", b"1\n"
LEFT_OUT = frozenset({"spool", "tmp", "partial", "services", "api-token"})
_BLOBS = "/blobs/objects/"
ENDINGS = ("-wal", "-shm", ".lock", ".new")


def back_up(paths: Paths, file: Path) -> tuple[int, int]:
    """Write a backup, for this user alone; returns the number of files in it and its bytes.

    Raises:
        Refused: there is such a file, nothing is to be kept, or it can't be written.
    """
    if not paths.data.exists():
        raise Refused(f"there is nothing to keep at {paths.data}.", hint="autoresearch up makes log and keys")
    if paths.restoring.exists():
        archive = shlex.quote(paths.restoring.read_text())
        raise Refused(f"{paths.data} is half restored.", hint=f"autoresearch node restore {archive}")
    unfinished = file.with_name(f"{file.name}.new")
    if file.exists():
        raise Refused(f"{file} exists already.", hint="name another file")
    count = 0
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with (
            os.fdopen(descriptor, "wb") as out,
            tarfile.open(fileobj=out, mode="w") as tar,
            TemporaryDirectory(dir=file.parent, prefix=".autoresearch-") as scratch,
        ):
            mark = tarfile.TarInfo(MARK)
            mark.size = len(FORMAT)
            tar.addfile(mark, io.BytesIO(FORMAT))
            for name, source in _files(paths):
                with suppress(FileNotFoundError):  # a blob of others that was removed meanwhile
                    is_database = source.suffix == ".sqlite"
                    tar.add(_snapshot(source, Path(scratch) / "copy.sqlite") if is_database else source, name)
                    count += 1
        unfinished.replace(file)
    except (OSError, sqlite3.Error) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise Refused(f"{file} can't be written: {reason}.", hint="free some space, or name another place") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return count, file.stat().st_size


def put_back(paths: Paths, file: Path) -> int:
    """Make this empty home what it was at a backup; returns the number of files. Interrupted, it can be done again.

    Raises:
        NotFound: there is no such file.
        Refused: something is here already, or it can't be written.
        UsageError: the file is no backup, or not whole.
    """
    if not file.exists():
        raise NotFound(f"there is no file {file}", hint="autoresearch node backup FILE writes one")
    begun, source = paths.restoring, str(file.absolute())
    goes_on = begun.exists() and begun.read_text() == source
    for place in (paths.data, paths.settings, paths.home_local):
        if not goes_on and place.exists() and (place.is_file() or any(place.iterdir())):
            hint = "move it away, or restore elsewhere: AUTORESEARCH_HOME=FOLDER autoresearch node restore FILE"
            raise Refused(f"{place} exists: a backup is restored into an empty home only.", hint=hint)
    try:
        with _opened(file) as tar:
            members = _checked(tar, file, {"config": paths.config, "data": paths.data, "state": paths.state})
            needed, free = sum(member.size for member, _ in members), shutil.disk_usage(_existing(paths.data)).free
            if free < needed:
                raise Refused(f"the backup takes {size(needed)}, and {size(free)} are free.", hint="free some space")
            paths.create(restores=True)
            begun.write_text(source)
            for member, target in members:
                content = tar.extractfile(member)
                assert content is not None, "only files were let through"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, member.mode & 0o755)
                with content, os.fdopen(descriptor, "wb") as out:
                    shutil.copyfileobj(content, out)
            for _, target in members:
                if target.parts[-2:] == ("blobs", "index.sqlite"):  # a blob that was deleted while it was copied
                    forget_lost(target.parent)
        begun.unlink()
    except OSError as error:
        if error.errno == errno.EINVAL and error.filename is None:  # it says to go where no file system goes
            raise UsageError(f"{file} is no whole backup: {error.strerror}", hint="take another backup") from error
        raise Refused(f"{error.filename or file}: {error.strerror or error}", hint="look at that place") from error
    return len(members)


def compact(paths: Paths) -> list[tuple[Path, int, int]]:
    """Give back to the disk what the databases of this home do not use: each with its bytes before and after.

    Raises:
        Refused: one of them is in use or damaged, or there is too little space for its copy meanwhile.
    """
    sizes = []
    for database in (path for _, path in _files(paths) if path.suffix == ".sqlite"):
        log = database.with_name(f"{database.name}-wal")
        before = database.stat().st_size + (log.stat().st_size if log.exists() else 0)
        try:
            with closing(sqlite3.connect(database, isolation_level=None)) as connection:
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            hint = "stop what uses it, or free some space; autoresearch node doctor log checks it"
            raise Refused(f"{database} can't be compacted: {error}.", hint=hint) from error
        sizes.append((database, before, database.stat().st_size))
    return sizes


def remove_all(paths: Paths) -> None:
    """Remove what a node keeps on this machine: settings, log, blobs, caches, its own state. Keys stay.

    Raises:
        Refused: something can't be removed; what is left can be removed by the same call again.
    """
    own = [*paths.data.iterdir()] if paths.data.exists() else []
    places = [*(place for place in own if place != paths.keys), paths.config, paths.cache, paths.state, paths.runtime]
    for place in places:
        try:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
        except OSError as error:
            raise Refused(
                f"{error.filename or place} can't be removed: {error.strerror}", hint="remove it yourself"
            ) from None


def _opened(file: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(file, "r:")
    except (tarfile.TarError, MemoryError, OverflowError, RecursionError, ValueError) as error:
        hint = "autoresearch node backup FILE writes one; unpack a compressed one first"
        raise UsageError(f"{file} is no whole backup: {error}", hint=hint) from error


def _checked(tar: tarfile.TarFile, file: Path, roots: dict[str, Path]) -> list[tuple[tarfile.TarInfo, Path]]:
    """Read a backup to its end; returns its files, each with the place that it belongs to."""
    members = []
    try:
        for member in tar:
            if member.size < 0:  # the reader would go back, and never end
                raise tarfile.ReadError("a file in it has less than no bytes")
            members.append(member)
        if not members or members[0].name != MARK or _content(tar, members.pop(0)) != FORMAT:
            raise UsageError(f"{file} is no backup of a home", hint="autoresearch node backup FILE writes one")
        # An end that was cut off between two files is no error to the reader, and a damaged header is an end to it.
        with file.open("rb") as raw:
            raw.seek(tar.offset)
            if raw.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError(f"what follows byte {tar.offset:,} is missing or damaged")
        inner = archive_paths(member.name for member in members)
    except (tarfile.TarError, MemoryError, OverflowError, RecursionError) as error:
        raise UsageError(f"{file} is no whole backup: {error}", hint="take another backup") from error
    except ValueError as error:
        raise UsageError(f"{file} is no backup: {error}", hint="take another backup") from error
    for member, path in zip(members, inner, strict=True):
        if member.type != tarfile.REGTYPE or member.issparse() or path.parts[0] not in roots or len(path.parts) == 1:
            raise UsageError(f"{file} has {member.name!r}, which no backup has", hint="take another backup")
    places = (roots[path.parts[0]].joinpath(*path.parts[1:]) for path in inner)
    return list(zip(members, places, strict=True))


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = tar.extractfile(member)
    return content.read(len(FORMAT) + 1) if content else b""


def _files(paths: Paths) -> Iterator[tuple[str, Path]]:
    """What is kept, by its name in the backup. Heads come before the log: one that is behind it is mended at a start.

    Blobs come last, and are listed only then: what the log and their index name was there before them.
    """
    files = [(f"config/{paths.settings.name}", paths.settings)] if paths.settings.is_file() else []
    for root, folder in (("data", paths.data), ("state", paths.state)):
        files += _files_below(folder, root)
    once = {path: name for name, path in reversed(files)}  # on macOS the three folders are one
    others = [(name, path) for path, name in once.items() if _BLOBS not in name]
    yield from sorted(others, key=lambda entry: ("heads/" not in entry[0], "/blobs/" in entry[0], entry[0]))
    yield from ((name, path) for name, path in _files_below(paths.data, "data") if _BLOBS in name)


def _files_below(folder: Path, name: str) -> list[tuple[str, Path]]:
    files = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        left_out = not LEFT_OUT.isdisjoint(parts) or path.name.endswith(ENDINGS) or path.name.startswith("daemon.log")
        if path.is_file() and not path.is_symlink() and not left_out:
            files.append(("/".join((name, *parts)), path))
    return files


def _snapshot(database: Path, copy: Path) -> Path:
    """A copy of a database as it is at one moment, whoever writes to it meanwhile."""
    copy.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(copy)) as to,
    ):
        source.backup(to)
    copy.chmod(database.stat().st_mode & 0o777)
    return copy


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
