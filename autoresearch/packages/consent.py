"""Whether a task's packages may be installed here: one's own, those that a person allowed, or all."""

from __future__ import annotations

from pathlib import Path

from autoresearch.errors import CannotRunHere
from autoresearch.log import Log
from autoresearch.tasks import Package, Task, lock_digest, shipped_task
from autoresearch.views import is_own_task, own_keys

ALL = "all"


class PackagesNotAllowed(CannotRunHere):
    """What another participant wrote needs packages, and nobody allowed this machine to install them."""

    def __init__(self, name: str, count: int, *, hint: str) -> None:
        packages = f"{count} Python {'package' if count == 1 else 'packages'}"
        super().__init__(f"{name} needs {packages} that nobody allowed here", hint=hint)


def task_not_allowed(task: Task, option: str = "") -> PackagesNotAllowed:
    """The error for a task. ``option`` of the command in hand allows it."""
    hint = f"{option and f'{option}, or: '}autoresearch task allow {task.folder}"
    return PackagesNotAllowed(task.name, len(task.packages), hint=hint)


def allow(folder: Path, packages: list[Package]) -> None:
    """Note that a person allowed to install a list of packages: this very list, with these hashes."""
    folder.mkdir(parents=True, exist_ok=True)
    _mark(folder, packages).touch()


def is_allowed(folder: Path, packages: list[Package]) -> bool:
    """Whether a person allowed to install a list of packages."""
    return _mark(folder, packages).exists()


def may_install(task: Task, folder: Path, setting: str, log: Log, device: bytes | None, now_ms: int) -> bool:
    """Whether a task's packages may be installed without asking again.

    ``folder`` keeps what a person allowed, ``setting`` is ``work.allow_packages``. ``device`` is this node's key, None
    where it has none yet.
    """
    if setting == ALL or is_allowed(folder, task.packages):
        return True
    own = own_keys(log, device, now_ms) if device else frozenset[bytes]()
    return is_own_task(log, task, own, shipped=shipped_task())


def _mark(folder: Path, packages: list[Package]) -> Path:
    return folder / lock_digest(packages).hex()
