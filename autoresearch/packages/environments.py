"""The environment of a task's packages: made once on a machine, whole or not at all, and shared by equal lists."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from autoresearch.errors import AutoresearchError, CannotRunHere, TimedOut
from autoresearch.packages import tools
from autoresearch.packages.consent import PackagesNotAllowed
from autoresearch.running import (
    Interpreter,
    Scratch,
    interpreter_in,
    package_folders,
    remove_tree,
    scratch_folder,
    sweep,
)
from autoresearch.tasks import Task, write_lock

INSTALL_SECONDS = 3600.0
# An environment that nobody used for so long is removed when the next one is made.
UNUSED_DAYS = 30
_LOCK_SECONDS = 0.2
_BASE = "autoresearch_base.pth"


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
    target = environment_folder(task, place)
    if not is_installed(task, place):
        if not may_install():
            raise PackagesNotAllowed(task)
        _install(task, target, cancelled)
    os.utime(target)  # it is in use
    return interpreter_in(target, with_base=task.python.base)


def environment_folder(task: Task, place: Path) -> Path:
    """Where the environment of a task's packages is, or will be: another place for another Python."""
    assert task.python is not None
    base = [str(folder) for folder in package_folders()] if task.python.base else []
    text = repr((write_lock(task.packages), sys.version, base))
    return place / hashlib.sha256(text.encode()).hexdigest()


def is_installed(task: Task, place: Path) -> bool:
    """Whether the environment of a task's packages is here."""
    return environment_folder(task, place).is_dir()


def _install(task: Task, target: Path, cancelled: Callable[[], bool] | None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target, cancelled):
        if target.is_dir():  # another process made it meanwhile
            return
        sweep(target.parent)
        _remove_unused(target.parent)
        with scratch_folder(target.parent) as scratch:
            made = _made(task, scratch, cancelled)
            made.rename(target)


def _made(task: Task, scratch: Scratch, cancelled: Callable[[], bool] | None) -> Path:
    """A new environment in a scratch folder.

    pip holds the folder's lock too: should this process be killed, no sweep takes the folder from under it.
    """
    assert task.python is not None
    made, wanted = scratch.folder / "made", scratch.folder / "requirements.txt"
    wanted.write_text(write_lock(task.packages))
    what = f"the packages of {task.name} can't be installed"
    make = [sys.executable, "-I", "-m", "venv", "--without-pip", str(made)]
    tools.call(make, what, seconds=INSTALL_SECONDS, cwd=scratch.folder, held=[scratch.lock], cancelled=cancelled)
    command = _installer(made, wanted)
    tools.call(command, what, seconds=INSTALL_SECONDS, cwd=scratch.folder, held=[scratch.lock], cancelled=cancelled)
    if task.python.base:
        site = next(made.glob("lib/python*/site-packages"))
        (site / _BASE).write_text("".join(f"{folder}\n" for folder in package_folders()))
    return made


def _installer(environment: Path, wanted: Path) -> list[str]:
    """The command that installs a locked list into an empty environment: wheels alone, nothing is built or executed."""
    python, rest = str(environment / "bin" / "python"), ["--require-hashes", "--no-deps", "--requirement", str(wanted)]
    if tools.has_pip():
        words = ("--python", python, "install", "--quiet", "--only-binary", ":all:", *rest)
        return tools.pip(*words)
    if found := tools.uv():
        return [found, "pip", "install", "--quiet", "--python", python, "--no-build", *rest]
    raise CannotRunHere("neither pip nor uv is here to install packages", hint=f"{sys.executable} -m ensurepip")


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
