"""The environment of a task's packages: made once on a machine, whole or not at all, and shared by equal lists."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from autoresearch.errors import AutoresearchError, TimedOut
from autoresearch.packages import tools
from autoresearch.packages.consent import task_not_allowed
from autoresearch.packages.unpacking import unpack
from autoresearch.running import (
    Interpreter,
    Scratch,
    interpreter_in,
    made_interpreter,
    package_folders,
    remove_tree,
    scratch_folder,
    site_packages,
    sweep,
)
from autoresearch.tasks import Package, Task, write_lock

INSTALL_SECONDS = 3600.0
# An environment that nobody used for so long is removed when the next one is made.
UNUSED_DAYS = 30
_LOCK_SECONDS = 0.2
_BASE = "autoresearch_base.pth"
_COMPILE = "import compileall, sys; compileall.compile_dir(sys.argv[1], maxlevels=100, quiet=2, workers=0)"


def task_python(
    task: Task,
    place: Path,
    *,
    may_install: Callable[[], bool],
    cancelled: Callable[[], bool] | None = None,
) -> Interpreter | None:
    """The Python that runs a task's programs; None: the node's own. Its packages are installed if they are not here.

    Raises:
        PackagesNotAllowed: they have to be installed, and ``may_install`` says no.
        CannotRunHere: the task's venv is no environment, or a package can't be installed.
        TimedOut: installing took too long.
        AutoresearchError: it was cancelled.
    """
    if task.python is None:
        return None
    if task.python.venv:
        return interpreter_in(Path(task.python.venv).expanduser())
    wanted = _of_task(task)
    if not wanted.is_installed(place) and not may_install():
        raise task_not_allowed(task)
    return wanted.python(place, cancelled=cancelled)


def environment_folder(task: Task, place: Path) -> Path:
    """Where the environment of a task's packages is, or will be: another place for another Python."""
    return _of_task(task).folder(place)


def is_installed(task: Task, place: Path) -> bool:
    """Whether the environment of a task's packages is here."""
    return _of_task(task).is_installed(place)


@dataclass(frozen=True, slots=True)
class PackageSet:
    """Locked packages of something, by its name; with ``base`` they are beside the node's own."""

    name: str
    packages: list[Package]
    base: bool

    def folder(self, place: Path) -> Path:
        """Where their environment is, or will be: another place for another Python."""
        base = [str(folder) for folder in package_folders()] if self.base else []
        text = repr((write_lock(self.packages), sys.version, base))
        return place / hashlib.sha256(text.encode()).hexdigest()

    def is_installed(self, place: Path) -> bool:
        """Whether their environment is here."""
        return self.folder(place).is_dir()

    def python(self, place: Path, *, cancelled: Callable[[], bool] | None = None) -> Interpreter:
        """The Python that has them. They are installed if they are not here.

        Raises:
            CannotRunHere: one can't be installed.
            TimedOut: installing took too long.
            AutoresearchError: it was cancelled.
        """
        target = self.folder(place)
        if not target.is_dir():
            _install(self, target, cancelled)
        os.utime(target)  # it is in use
        return made_interpreter(target, with_base=self.base)


def _of_task(task: Task) -> PackageSet:
    assert task.python is not None
    return PackageSet(task.name, task.packages, task.python.base)


def _install(wanted: PackageSet, target: Path, cancelled: Callable[[], bool] | None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target, cancelled):
        if target.is_dir():  # another process made it meanwhile
            return
        sweep(target.parent)
        _remove_unused(target.parent)
        with scratch_folder(target.parent) as scratch:
            made = _made(wanted, scratch, cancelled)
            made.rename(target)


def _made(packages: PackageSet, scratch: Scratch, cancelled: Callable[[], bool] | None) -> Path:
    """A new environment in a scratch folder.

    pip brings the files, and this process unpacks them: a package can neither run nor write anything while it is
    installed. pip holds the folder's lock too: should this process be killed, no sweep takes the folder from under it.
    """
    made, wheels, wanted = (scratch.folder / name for name in ("made", "wheels", "wanted.txt"))
    wanted.write_text(write_lock(packages.packages))
    wheels.mkdir()
    words = ["--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:", "--dest", str(wheels)]
    call = partial(
        tools.call,
        what=f"the packages of {packages.name} can't be installed",
        seconds=INSTALL_SECONDS,
        cwd=scratch.folder,
        held=[scratch.lock],
        cancelled=cancelled,
    )
    call([sys.executable, "-I", "-m", "venv", "--without-pip", str(made)])
    call(tools.pip("download", *words, "--requirement", str(wanted)))
    allowed = {digest for package in packages.packages for digest in package.hashes}
    for wheel in sorted(wheels.iterdir()):
        unpack(wheel, made, allowed)
    # A run can't keep what it compiles. Files that are no Python of this version are no fault.
    call([sys.executable, "-I", "-c", _COMPILE, str(site_packages(made))])
    for folder in (made, *made.rglob("*")):
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o755)
    if packages.base:
        (site_packages(made) / _BASE).write_text("".join(f"{folder}\n" for folder in package_folders()))
    return made


@contextmanager
def _alone(target: Path, cancelled: Callable[[], bool] | None) -> Iterator[None]:
    """Only one process makes an environment; the others wait for it."""
    deadline = time.monotonic() + INSTALL_SECONDS
    while True:
        try:
            with FileLock(f"{target}.lock", timeout=_LOCK_SECONDS):
                yield
                return
        except Timeout:
            if cancelled is not None and cancelled():
                raise AutoresearchError("installing packages was stopped on request") from None
            if time.monotonic() > deadline:
                sentence = "another process has been installing the same packages for too long"
                raise TimedOut(sentence, hint=f"is it stuck? {target}.lock") from None


def _remove_unused(place: Path) -> None:
    oldest = time.time() - UNUSED_DAYS * 86_400
    for folder in place.iterdir():
        if folder.is_dir() and len(folder.name) == 64 and folder.stat().st_mtime < oldest:
            remove_tree(folder)
