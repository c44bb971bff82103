"""Data that a task's programs read where it lies: shown to runs read-only, at its place below the task's folder.

What is large is not copied into records. ``[inputs]`` in task.toml has its size and digest, so other data is another
task. ``[mounts]`` says where this machine has it, where that is not its place in the task's folder.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from autoresearch.beneath import LeadsOut, open_beneath, resolve_beneath
from autoresearch.errors import CannotRunHere, UsageError
from autoresearch.task.model import PLACE, Input, Task
from autoresearch.text import size

# A file up to this size is hashed whole, as sha256sum does. Of a larger one, and of a folder, parts are read.
WHOLE_BYTES = 64 << 20
_PARTS, _PART_BYTES = 64, 1 << 20
_DOMAIN = b"autoresearch/input/1\n"
# A folder with more files takes minutes to look through.
MOST_FILES = 500_000


def read_input(path: Path) -> Input:
    """The size and the digest of a file, or of a folder with all that is in it; links in a folder are not followed.

    Of a file above 64 MiB 64 parts of 1 MiB are read, spread evenly; of a folder its names and sizes, and the
    beginnings of 64 files. So the digest of many gigabytes takes a second.

    Raises UsageError where something can't be read, or a folder has too many files.
    """
    try:
        state = path.stat()
        if not stat.S_ISDIR(state.st_mode):
            return _file_input(str(path), state.st_size, state.st_mtime_ns)
        files = tuple(sorted(_files(path)))
        if len(files) > MOST_FILES:
            raise UsageError(f"{path} has more than {MOST_FILES} files", hint=f"show it as it is: --mount {path}")
        return _folder_input(str(path), files)
    except OSError as error:
        name = error.filename or path
        raise UsageError(f"{name} can't be read: {error.strerror}", hint="check what lies there") from error


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    """The plain files in a folder and below, with their sizes and times."""
    pending, count = [""], 0
    while pending and count <= MOST_FILES:
        inside = pending.pop()
        with os.scandir(folder / inside) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{inside}{entry.name}/")
                elif entry.is_file(follow_symlinks=False):
                    state = entry.stat(follow_symlinks=False)
                    count += 1
                    yield f"{inside}{entry.name}", state.st_size, state.st_mtime_ns


@lru_cache(maxsize=256)
def _file_input(path: str, length: int, _time: int) -> Input:
    with open_beneath(Path(path).parent, Path(path).name) as file:
        if length <= WHOLE_BYTES:
            return Input(bytes=length, sha256=hashlib.file_digest(file, "sha256").hexdigest())
        digest = hashlib.sha256(_DOMAIN + b"file %d\n" % length)
        for part in range(_PARTS):
            file.seek((length - _PART_BYTES) * part // (_PARTS - 1))
            digest.update(file.read(_PART_BYTES))
        return Input(bytes=length, sha256=digest.hexdigest())


@lru_cache(maxsize=16)
def _folder_input(path: str, files: tuple[tuple[str, int, int], ...]) -> Input:
    digest = hashlib.sha256(_DOMAIN + b"folder %d\n" % len(files))
    for name, length, _ in files:
        digest.update(os.fsencode(name) + b"\0%d\n" % length)
    for part in range(min(_PARTS, len(files))):
        name = files[len(files) * part // min(_PARTS, len(files))][0]
        with open_beneath(Path(path), name, links=False) as file:
            digest.update(file.read(_PART_BYTES))
    return Input(bytes=sum(length for _, length, _ in files), sha256=digest.hexdigest(), files=len(files))


def described(place: str, entry: Input) -> str:
    """A place and how much is there, for people: ``data/ (11.4 MiB, 3 files)``."""
    if not entry.files:
        return f"{place} ({size(entry.bytes)})"
    return f"{place}/ ({size(entry.bytes)}, {entry.files} {'file' if entry.files == 1 else 'files'})"


def source_of(folder: Path, mounts: Mapping[str, str], place: str) -> Path:
    """Where this machine has what is shown at a place: where ``[mounts]`` says, else there in the task's folder.

    Raises UsageError where it is a link that leads out of the folder.
    """
    mount = mounts.get(PLACE + place, place)
    if mount.startswith(("/", "~/")):
        return Path(mount).expanduser().resolve()
    try:
        return resolve_beneath(folder, mount)
    except LeadsOut as error:
        path = (folder / mount).resolve()
        raise UsageError(
            f"{folder / mount} leads out of the task's folder, to {path}",
            hint=f'to show it to runs, in task.toml under [mounts]: "{PLACE}{place}" = "{path}"',
        ) from error
    except OSError:  # whoever needs it says that it is missing
        return folder / mount


def sources(task: Task) -> dict[str, Path]:
    """What runs of a task see at which place of their working folder, as this machine has it.

    Raises:
        CannotRunHere: something is not here, or is other data than the task's.
    """
    entries: dict[str, Path] = {}
    for place in (*task.inputs, *(name.removeprefix(PLACE) for name in task.mounts if name.startswith(PLACE))):
        expected = task.inputs.get(place)
        try:
            path = entries[place] = source_of(task.folder, task.mounts, place)
            present = read_input(path) if expected and path.exists() else None
        except UsageError as error:
            raise CannotRunHere(str(error), hint=error.hint) from error
        what = place if expected is None else f"{described(place, expected)[:-1]}, sha256 {expected.sha256[:12]}…)"
        if not path.exists():
            hint = (
                f"put it there: {task.folder / place}; or name its place under [mounts] of {task.folder / 'task.toml'}"
            )
            raise CannotRunHere(f"the task {task.name} needs {what}, which is not on this machine", hint=hint)
        if present != expected:
            raise CannotRunHere(
                f"{path} is not the data of the task {task.name}, which needs {what}",
                hint=f"restore it, or for a task with this data: move {task.folder / 'task.toml'} away, then "
                f"autoresearch task new {shlex.quote(str(task.folder))}",
            )
    return entries
