"""Files of a folder that a stranger may have made. No link leads out of it, for reading or for writing.

Each part of a path is opened for itself, below the one before, and never through a link. A link is read and walked like
a path: one that stays in the folder is followed, one that leads out is refused. So nothing that changes meanwhile leads
out either. Every failure is an OSError whose ``strerror`` is a reason for people.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, StringIO
from pathlib import Path

from autoresearch.text import one_line

# As many links in one path as Linux follows.
_MOST_LINKS = 40
_TARGET_CHARACTERS = 200
_NAME_BYTES = 200
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


class LeadsOut(OSError):
    """A path that leads out of its folder, by a link or by ``..``."""


def open_beneath(folder: Path, name: str | Path, *, links: bool = True) -> BufferedReader:
    """A plain file of a folder, to read. Without ``links`` it may not be one, not even to a file beside it.

    Raises:
        LeadsOut: it lies elsewhere.
        OSError: it is missing, no plain file, or can't be read.
    """
    with _place(folder, name, follows=links) as (place, last, _):
        _check_plain(os.stat(last, dir_fd=place, follow_symlinks=False))  # opening a device can have effects
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(last, flags, dir_fd=place)
        try:
            _check_plain(os.fstat(descriptor))
        except OSError:
            os.close(descriptor)
            raise
    return os.fdopen(descriptor, "rb")


def read_beneath(folder: Path, name: str | Path, most: int, *, links: bool = True) -> bytes:
    """The content of a plain file of at most so many bytes. Raises what :func:`open_beneath` does."""
    with open_beneath(folder, name, links=links) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 10} KiB", str(folder / name))
    return content


def text_beneath(folder: Path, name: str | Path, most: int, *, links: bool = True) -> str:
    """The same as text, with the ends of lines that Python makes of them. Raises UnicodeDecodeError, too."""
    return StringIO(read_beneath(folder, name, most, links=links).decode(), newline=None).getvalue()


def write_beneath(folder: Path, name: str | Path, content: bytes, *, new: bool = False) -> None:
    """Write a file of a folder whole, with the folders that it lies in: a crash leaves the old one.

    A link in the file's place is replaced, not followed. With ``new`` nothing is replaced.

    Raises:
        LeadsOut: it would lie elsewhere.
        OSError: it can't be written; FileExistsError: something is there, and it is to be ``new``.
    """
    with _place(folder, name, follows=False, makes=True) as (place, last, _):
        temporary = f".{os.fsdecode(os.fsencode(last)[:_NAME_BYTES])}.{secrets.token_hex(4)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666, dir_fd=place)
        try:
            with os.fdopen(descriptor, "wb") as file:
                with suppress(FileNotFoundError):
                    before = os.stat(last, dir_fd=place, follow_symlinks=False).st_mode
                    if stat.S_ISREG(before):
                        os.fchmod(descriptor, before & 0o777)
                file.write(content)
            if new:
                os.link(temporary, last, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
            else:
                os.rename(temporary, last, src_dir_fd=place, dst_dir_fd=place)
        finally:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=place)


def remove_beneath(folder: Path, name: str | Path, *, tree: bool = False) -> None:
    """Remove a file of a folder, or a link in its place, where there is one; with ``tree`` also a folder.

    Raises OSError.
    """
    with suppress(FileNotFoundError), _place(folder, name, follows=False) as (place, last, _):
        if tree and stat.S_ISDIR(os.stat(last, dir_fd=place, follow_symlinks=False).st_mode):
            shutil.rmtree(last, dir_fd=place)  # it would wait for the other end of a pipe
        else:
            os.unlink(last, dir_fd=place)


def resolve_beneath(folder: Path, name: str | Path) -> Path:
    """The path of a file or folder without links, for what opens it by itself.

    Raises:
        LeadsOut: it lies elsewhere.
        OSError: there is none.
    """
    with _place(folder, name) as (place, last, inside):
        os.stat(last, dir_fd=place, follow_symlinks=False)
    return Path(os.path.realpath(folder), *inside)


def path_to_write(folder: Path, name: str | Path) -> Path:
    """The path of a file or folder that something else is to write, in folders that are made.

    What lies in its place goes where it is a link, has another name or is no plain file.

    Raises:
        LeadsOut: it would lie elsewhere.
        OSError: a folder can't be made.
    """
    with _place(folder, name, follows=False, makes=True) as (place, last, inside), suppress(FileNotFoundError):
        status = os.stat(last, dir_fd=place, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode) and (not stat.S_ISREG(status.st_mode) or status.st_nlink > 1):
            os.unlink(last, dir_fd=place)
    return Path(os.path.realpath(folder), *inside)


def is_file_beneath(folder: Path, name: str | Path) -> bool:
    """Whether a folder has such a plain file."""
    try:
        return resolve_beneath(folder, name).is_file()
    except OSError:
        return False


@contextmanager
def _place(
    folder: Path, name: str | Path, *, follows: bool = True, makes: bool = False
) -> Iterator[tuple[int, str, list[str]]]:
    """The folder that a path ends in, opened; the last part of the path; all its parts without links.

    Without ``follows`` the last part may be a link. ``makes``: folders on the way are made.
    """
    opened: list[int] = []
    try:
        opened.append(os.open(folder, _FOLDER))
        last, inside = _walked(folder, name, opened, follows=follows, makes=makes)
        yield opened[-1], last, inside
    except ValueError as error:  # a NUL in a path
        raise OSError(errno.EINVAL, "it has a character that no path has", str(folder)) from error
    except OSError as error:
        error.filename, error.filename2 = str(folder / name), None
        raise
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _walked(folder: Path, name: str | Path, opened: list[int], *, follows: bool, makes: bool) -> tuple[str, list[str]]:
    """Open the folders of a path, each below the one before; its last part, and all its parts without links."""
    inside: list[str] = []
    pending, links = _parts(name, folder, name), 0
    while pending:
        part = pending.pop()
        if part == "..":
            if not inside:
                raise _leads_out(folder, name)
            inside.pop()
            os.close(opened.pop())
        elif (pending or follows) and (target := _target(part, opened[-1])):
            if (links := links + 1) > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            pending += _parts(target, folder, name)
            if target.startswith("/"):
                inside.clear()
                while len(opened) > 1:
                    os.close(opened.pop())
        elif not pending:
            return part, [*inside, part]
        else:
            if makes:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=opened[-1])
            opened.append(os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=opened[-1]))
            inside.append(part)
    return ".", inside


def _parts(path: str | Path, folder: Path, name: str | Path) -> list[str]:
    """The parts of a path or of a link's target, the last first; of an absolute one those below the folder."""
    text = str(path)
    if text.startswith("/"):
        roots = (str(folder.absolute()), os.path.realpath(folder))
        root = next((root for root in roots if f"{text}/".startswith(f"{root}/")), None)
        if root is None:
            raise _leads_out(folder, name)
        text = text[len(root) :]
    return [part for part in reversed(text.split("/")) if part not in ("", ".")]


def _target(part: str, place: int) -> str:
    """Where a link leads, as it is written; empty for what is none."""
    try:
        return os.readlink(part, dir_fd=place)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return ""
        raise


def _leads_out(folder: Path, name: str | Path) -> LeadsOut:
    target = one_line(os.path.realpath(folder / name), _TARGET_CHARACTERS)
    return LeadsOut(errno.EXDEV, f"a link leads out of the folder, to {target}")


def _check_plain(status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'something else')}, and no plain file")
