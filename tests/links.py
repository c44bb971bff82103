"""Links and other things that a stranger's folder may have in a file's place, and the file that they aim at."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

CANARY = b"KEY = 'private-4b1d'  # of nobody but its owner\n"


def _chain(path: Path, secret: Path) -> None:
    for number in range(3):
        path.with_name(f"link{number}").symlink_to(f"link{number + 1}")
    path.with_name("link3").symlink_to(secret)
    path.symlink_to("link0")


def _through_folder(path: Path, secret: Path) -> None:
    path.with_name("there").symlink_to(secret.parent)
    path.symlink_to(f"there/{secret.name}")


def _down_and_up(path: Path, secret: Path) -> None:
    path.with_name("sub").mkdir()
    path.symlink_to(Path("sub/..", os.path.relpath(secret, path.parent)))


LINKS: dict[str, Callable[[Path, Path], object]] = {
    "absolute": lambda path, secret: path.symlink_to(secret),
    "climbing": lambda path, secret: path.symlink_to(os.path.relpath(secret, path.parent)),
    "twice the root": lambda path, secret: path.symlink_to(f"//{str(secret).lstrip('/')}"),
    "chain": _chain,
    "through a folder": _through_folder,
    "down and up": _down_and_up,
    "dangling": lambda path, secret: path.symlink_to(secret.with_name("nothing")),
    "dangling inside": lambda path, secret: path.symlink_to("nothing"),
    "loop": lambda path, secret: path.symlink_to(path.name),
    "endless": lambda path, secret: path.symlink_to("/dev/zero"),
    "a terminal": lambda path, secret: path.symlink_to("/dev/tty"),
    "own memory": lambda path, secret: path.symlink_to("/proc/self/environ"),
    "root of a process": lambda path, secret: path.symlink_to(f"/proc/self/root{secret}"),
    "above a process": lambda path, secret: path.symlink_to("/proc/self/cwd"),
    "an open file": lambda path, secret: path.symlink_to("/dev/stdin"),
    "home": lambda path, secret: path.symlink_to(os.path.expanduser("~")),  # noqa: PTH111
}
OTHERS: dict[str, Callable[[Path, Path], object]] = {
    "pipe": lambda path, secret: os.mkfifo(path),
    "socket": lambda path, secret: os.mknod(path, stat.S_IFSOCK | 0o600),
    "folder": lambda path, secret: path.mkdir(exist_ok=True),
    "link to a pipe": lambda path, secret: (
        os.path.lexists(path.with_name("pipe")) or os.mkfifo(path.with_name("pipe")),
        path.symlink_to("pipe"),
    ),
}
INSIDE: dict[str, Callable[[Path, Path], object]] = {
    "relative": lambda path, target: path.symlink_to(os.path.relpath(target, path.parent)),
    "absolute": lambda path, target: path.symlink_to(target),
    "chain": lambda path, target: (path.with_name("v2").symlink_to(target), path.symlink_to("v2")),
    "folder": lambda path, target: (path.with_name("d").symlink_to(target.parent), path.symlink_to(f"d/{target.name}")),
    "around": lambda path, target: path.symlink_to(f"../a/.././/a/../{target.parent.name}/{target.name}"),
    "hard": lambda path, target: os.link(target, path),
}


def plant(kind: str, path: Path, secret: Path) -> None:
    """Put a link or another thing of this kind into a file's place."""
    if os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
        path.unlink()
    for left in (path.with_name(name) for name in ("link0", "link1", "link2", "link3", "there")):
        left.unlink(missing_ok=True)
    if (sub := path.with_name("sub")).is_dir() and not any(sub.iterdir()):
        sub.rmdir()
    if kind == "hard":
        os.link(secret, path)
    elif kind != "missing":
        {**LINKS, **OTHERS}[kind](path, secret)
