"""What a folder reaches outside of itself, and whether a person allowed that: this folder, and exactly this list.

A folder may be a stranger's. So no line of its ``task.toml`` that leads out of it works before. The marks lie in the
node's home, an empty file for each list, as those of packages do.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Literal

from autoresearch.errors import CannotRunHere, Refused
from autoresearch.paths import Paths
from autoresearch.run.sandbox.layout import home, interpreter_in
from autoresearch.task.model import PLACE, Task
from autoresearch.task.needs import SECRET_FOLDERS
from autoresearch.text import sanitised

REACH_WORDS = {
    "mount": "its runs read",
    "python": "its programs run with the Python in",
    "base": "that Python is part of",
    "code": "runs with all that you may do",
}
_DOMAIN = b"autoresearch/consent/1"
# No person can allow these: what they show changes with the process, or is the machine itself.
_NEVER = tuple(map(Path, ("/proc", "/sys", "/dev", "/run", "/var/run")))
# Ordinary files in there: memory that is shared, disks that were plugged in.
_USUAL = tuple(map(Path, ("/dev/shm", "/run/media")))  # noqa: S108
# Allowed only by their names on the command line, as the hidden folders of the home are.
_BY_NAME = tuple(map(Path, ("/etc", "/boot", "/root")))
_NAMED = 3


@dataclass(frozen=True, slots=True, order=True)
class Reach:
    """One thing that a folder reaches outside of itself.

    ``text`` is what the folder says of it, such as ``~/data``; ``path`` is where that leads now, without a link.
    """

    kind: Literal["mount", "python", "base", "code"]
    text: str
    path: str

    @property
    def by_name(self) -> bool:
        """Whether a person has to name it: a hidden folder of the home, a folder with keys, one of the system."""
        # A base is a Python, which was looked at; those of pyenv and uv lie in hidden folders.
        return self.kind in ("mount", "python") and any(map(_is_private, self._places))

    @property
    def _places(self) -> tuple[Path, Path]:
        return _written(self.text), Path(self.path)

    def fault(self, paths: Paths) -> str:
        """Why nobody can allow it, as a part of a sentence; empty where a person can."""
        if self.kind == "code":  # it reaches whatever the owner does
            return ""
        own = [place for folder in (paths.config, paths.data, paths.state) for place in (folder, folder.resolve())]
        for place in self._places:
            if place == Path("/") or home().resolve().is_relative_to(place):
                return "it holds your whole home folder"
            if _is_of_system(place):
                return "it is a part of the running system"
            if any(place.is_relative_to(each) or each.is_relative_to(place) for each in own):
                return "it holds files of this node, such as its keys"
        return ""


def _written(text: str) -> Path:
    """A path as it is written, whatever its links are; ``//proc`` is ``/proc``."""
    path = os.path.normpath(Path(text).expanduser())
    return Path(f"/{path.lstrip('/')}" if path.startswith("/") else path)


def _is_of_system(place: Path) -> bool:
    return any(map(place.is_relative_to, _NEVER)) and not any(each in place.parents for each in _USUAL)


def _is_private(place: Path) -> bool:
    if SECRET_FOLDERS.intersection(place.parts):
        return True
    for own in (home(), home().resolve()):
        if place.is_relative_to(own):
            return any(part.startswith(".") for part in place.relative_to(own).parts[:1])
    return any(place.is_relative_to(each) for each in _BY_NAME)


class NotAllowed(CannotRunHere):
    """A folder reaches something outside of itself that nobody allowed it."""

    def __init__(self, folder: Path, reaches: Collection[Reach]) -> None:
        names = [f"{sanitised(each.text)} ({each.kind})" for each in reaches]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        sentence = f"{folder} reaches out of itself, and nobody allowed that here: {', '.join(names[:_NAMED])}{more}"
        super().__init__(sentence, hint=f"autoresearch task allow {quote(str(folder))}")


def reaches_of(task: Task) -> tuple[Reach, ...]:
    """What a task reaches outside of its folder: its environment with the Python below it, and its mounts.

    Nothing of it is started. Raises CannotRunHere where the environment is none.
    """
    reaches: set[Reach] = set()
    for name, text in task.mounts.items():
        place = Path(text).expanduser() if text.startswith(("/", "~/")) else task.folder / text
        if name.startswith(PLACE) and place.resolve().is_relative_to(task.folder.resolve()):
            continue
        reaches.add(Reach("mount", text, str(place.resolve())))
    if task.python is not None and task.python.venv:
        text = task.python.venv
        environment = Path(text).expanduser()
        reaches.add(Reach("python", text, str(environment.resolve())))
        if not (_is_of_system(_written(text)) or _is_of_system(environment.resolve())):
            folders = interpreter_in(environment).folders
            bases = (folder for folder in folders if not folder.resolve().is_relative_to(environment.resolve()))
            reaches |= {Reach("base", str(folder), str(folder.resolve())) for folder in bases}
    return tuple(sorted(reaches))


def list_digest(folder: Path, reaches: Iterable[Reach]) -> bytes:
    """What stands for a folder and exactly this list: a copy of the folder, or a link that leads elsewhere, differs."""
    parts = [
        str(folder.resolve()),
        *(part for each in sorted(set(reaches)) for part in (each.kind, each.text, each.path)),
    ]
    return hashlib.sha256(b"\0".join([_DOMAIN, *map(os.fsencode, parts)])).digest()


def allow(marks: Path, digest: bytes) -> None:
    """Note that a person allowed a list, by its digest: a list of packages, or what a folder reaches."""
    marks.mkdir(parents=True, exist_ok=True)
    (marks / digest.hex()).touch()


def is_allowed(marks: Path, digest: bytes) -> bool:
    """Whether a person allowed a list."""
    return (marks / digest.hex()).exists()


def check_reaches(folder: Path, reaches: Collection[Reach], marks: Path | None) -> None:
    """Refuse what nobody allowed: each run asks here, before anything of its folder has an effect.

    Raises NotAllowed.
    """
    if reaches and not (marks is not None and is_allowed(marks, list_digest(folder, reaches))):
        raise NotAllowed(folder, reaches)


def check_names(folder: Path, reaches: Collection[Reach], paths: Paths, named: Collection[Path]) -> None:
    """Refuse what nobody can allow, and what has to stand in ``named``, the paths of the command line.

    Raises Refused.
    """
    for each in reaches:
        if fault := each.fault(paths):
            raise Refused(f"{sanitised(each.text)} can't be shown to runs: {fault}", hint="leave it out")
    places = {str(path.expanduser().resolve()) for path in named}
    if hidden := [each for each in reaches if each.by_name and each.path not in places]:
        options = " ".join(f"--name {quote(sanitised(each.path))}" for each in hidden)
        raise Refused(
            f"{', '.join(sanitised(each.text) for each in hidden)}: a hidden folder, or one with keys, is allowed by "
            "its name alone",
            hint=f"only if runs may read and print it: autoresearch task allow {quote(str(folder))} {options}",
        )


def allow_reaches(folder: Path, reaches: Collection[Reach], paths: Paths) -> None:
    """Note that a person allowed what a folder reaches: they named or saw all of it.

    Raises Refused where nobody can allow some of it.
    """
    check_names(folder, reaches, paths, [Path(each.path) for each in reaches])
    if reaches:
        allow(paths.allowed, list_digest(folder, reaches))


def what_runs_read(task: Task) -> str:
    """What runs of a task read besides its own files, as a sentence; empty where there is nothing."""
    folders = [sanitised(folder) for folder in task.mounts.values()]
    if not folders:
        return ""
    more = f" and {len(folders) - _NAMED} more" if len(folders) > _NAMED else ""
    return f"its runs can read {', '.join(folders[:_NAMED])}{more}; what they print will be public"
