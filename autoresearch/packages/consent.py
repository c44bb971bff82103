"""Whether a task's packages may be installed here: one's own, those that a person allowed, or all."""

from __future__ import annotations

from pathlib import Path

from autoresearch.errors import CannotRunHere
from autoresearch.log import Log
from autoresearch.tasks import Task, lock_digest, shipped_task
from autoresearch.views import is_own_task, own_keys

ALL = "all"


class PackagesNotAllowed(CannotRunHere):
    """Another participant's task needs packages, and nobody allowed this machine to install them.

    ``option`` of the command in hand allows it.
    """

    def __init__(self, task: Task, option: str = "") -> None:
        count = len(task.packages)
        super().__init__(
            f"{task.name} needs {count} Python {'package' if count == 1 else 'packages'} that nobody allowed here",
            hint=f"{option and f'{option}, or: '}autoresearch task allow {task.folder}",
        )


def allow(folder: Path, task: Task) -> None:
    """Note that a person allowed to install the packages of a task: this very list, with these hashes."""
    folder.mkdir(parents=True, exist_ok=True)
    _mark(folder, task).touch()


def is_allowed(folder: Path, task: Task) -> bool:
    """Whether a person allowed to install the packages of a task."""
    return _mark(folder, task).exists()


def may_install(task: Task, folder: Path, setting: str, log: Log, device: bytes | None, now_ms: int) -> bool:
    """Whether a task's packages may be installed without asking again.

    ``folder`` keeps what a person allowed, ``setting`` is ``work.allow_packages``. ``device`` is this node's key, None
    where it has none yet.
    """
    if setting == ALL or is_allowed(folder, task):
        return True
    own = own_keys(log, device, now_ms) if device else frozenset[bytes]()
    return is_own_task(log, task, own, shipped=shipped_task())


def _mark(folder: Path, task: Task) -> Path:
    return folder / lock_digest(task.packages).hex()
