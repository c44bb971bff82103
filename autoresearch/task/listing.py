"""Which files lie in a folder that is to become a task, and which of them no run can be shown. Bounded in time."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from autoresearch.errors import UsageError

# Folders that tools make.
_MADE_BY_TOOLS = frozenset({"__pycache__", "node_modules", "site-packages"})
# So many files and folders are looked at in all, and so many files of one folder: the programs in it come first.
_MOST_NAMES, _MOST_FOLDERS, MOST_IN_FOLDER = 20_000, 5000, 1000
_MOST_ENTRIES = 500_000
# A link in a folder that is a link, and so on: what is further is left out.
_MOST_LINKS = 3
LINK_OUT = "a link that leads out of the folder"
"""How the reason begins why such a link is left out."""
_CODE = (".py", ".sh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".toml", ".yaml", ".yml", ".json", ".cfg", ".ini")
_KINDS = {stat.S_IFSOCK: "a socket", stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


@dataclass(slots=True)
class FolderListing:
    """The files of a folder by their path in it, and what was left out, with the reason.

    ``crowded`` are folders with more files than were looked at. ``leading_out`` are links that lead out of the folder,
    with where they lead, into a folder that runs may read.
    """

    names: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    crowded: set[str] = field(default_factory=set)
    leading_out: dict[str, str] = field(default_factory=dict)


def list_folder(folder: Path, mounts: Collection[Path] = ()) -> FolderListing:
    """Look through a folder and the folders in it, but hidden ones, environments and what tools made.

    Links are followed where they stay in the folder, or lead into one of ``mounts``. Raises UsageError where the folder
    itself can't be read.
    """
    listing, real = FolderListing(), folder.resolve()
    pending: deque[tuple[str, tuple[Path, ...], int]] = deque([("", (real,), 0)])
    count = 0
    while pending:
        inside, above, links = pending.popleft()
        count += 1
        if len(listing.names) > _MOST_NAMES or count > _MOST_FOLDERS:
            listing.left_out[inside or "."] = f"the folder has more than {_MOST_NAMES} files or {_MOST_FOLDERS} folders"
            break
        try:
            files, folders = _entries(folder, inside, real, mounts, listing)
        except OSError as error:
            if not inside:
                raise UsageError(f"{folder} can't be read: {error.strerror}", hint="check the folder") from error
            listing.left_out[inside.rstrip("/")] = "no permission to read it"
            continue
        if inside and ("pyvenv.cfg" in files or "conda-meta" in folders):
            continue
        if len(files) > MOST_IN_FOLDER:
            listing.crowded.add(inside.rstrip("/"))
            files = sorted(files, key=lambda name: (not name.endswith(_CODE), name))[:MOST_IN_FOLDER]
        listing.names += (inside + name for name in files)
        for name in sorted(folders):
            path = folder / inside / name
            is_link = path.is_symlink()
            target = path.resolve() if is_link else above[-1] / name
            if is_link and any(parent.is_relative_to(target) for parent in above):
                listing.left_out[inside + name] = "a link to a folder that it lies in"
            elif links + is_link > _MOST_LINKS:
                listing.left_out[inside + name] = "a link in a folder that is reached by links"
            elif name not in _MADE_BY_TOOLS:
                pending.append((f"{inside}{name}/", (*above, target), links + is_link))
    listing.names.sort()
    return listing


def _entries(
    folder: Path, inside: str, real: Path, mounts: Collection[Path], listing: FolderListing
) -> tuple[list[str], list[str]]:
    """The files and the folders in a folder; what is neither is noted. Raises OSError."""
    files: list[str] = []
    folders: list[str] = []
    with os.scandir(folder / inside) as entries:
        for number, entry in enumerate(entries):
            if number > _MOST_ENTRIES:
                break
            name = inside + entry.name
            if entry.name.startswith("."):
                continue
            if reason := _fault(entry, real, mounts, name, listing):
                listing.left_out[name if name.isprintable() else repr(name)] = reason
            elif entry.is_dir():
                folders.append(entry.name)
            else:
                files.append(entry.name)
    return files, folders


def _fault(entry: os.DirEntry[str], real: Path, mounts: Collection[Path], name: str, listing: FolderListing) -> str:
    """Why a file or folder can't be shown to runs; empty where it can."""
    if not entry.name.isprintable():
        return "its name has characters that can't be printed"
    try:
        mode = entry.stat().st_mode
        target = Path(entry.path).resolve(strict=True) if entry.is_symlink() else None
    except (OSError, RuntimeError):
        return "a link that leads nowhere" if entry.is_symlink() else "it can't be read"
    if kind := _KINDS.get(stat.S_IFMT(mode)):
        return f"{kind}, and no file"
    if target is not None and not target.is_relative_to(real):
        if not any(target.is_relative_to(mount) for mount in mounts):
            return f"{LINK_OUT}; to show it to runs: --mount {target}"
        listing.leading_out[name] = str(target)
    if stat.S_ISREG(mode) and not os.access(entry.path, os.R_OK):
        return "no permission to read it"
    return ""
