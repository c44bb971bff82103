"""A task's own Python packages on the command line: locking them, and whether a person lets them be installed here."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from autoresearch.api import operations
from autoresearch.errors import DaemonNotRunning, Refused
from autoresearch.figures import counted
from autoresearch.tasks import MANIFEST, Task, load_task
from autoresearch.words import Why
from autoresearch_cli import here
from autoresearch_cli.models import PackagesAnswer
from autoresearch_cli.options import Folder, Json
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.task_folders import named_folder

if TYPE_CHECKING:
    from pathlib import Path

AllowPackages = Annotated[
    bool, typer.Option("--allow-packages", help="Install the Python packages of another participant's work, unasked.")
]
# So many packages are named before a person is asked.
NAMED = 20


def ask_for_packages(task: Task, *, allowed: bool = False) -> None:
    """Have a person agree that a task's packages are installed, where that is needed; ``allowed``: they have.

    Raises:
        PackagesNotAllowed: nobody can be asked here.
        Refused: the answer is no.
    """
    if task.packages and _must_ask(task):
        _agree(task, agreed=allowed, option="--allow-packages")


def lock(folder: Folder = "", *, json: Json = False) -> None:
    """Fix the versions and hashes of a task's packages: requirements.in becomes requirements.txt, task.toml pins it."""
    from autoresearch.packages import lock_folder

    locked = lock_folder(here.task_folder(folder))
    task, answer = locked.task, _answer(locked.task)
    if json:
        print_json(answer)
        return
    file = task.folder / (task.python.requirements if task.python else "")
    if locked.loose is None:
        say(f"{file} is locked already: {counted(len(task.packages), 'package')}")
    else:
        say(f"{file} is locked, by {locked.tool}: {', '.join(answer.packages[:NAMED])}")
    say(f"{task.folder / MANIFEST} pins it: with another list it is another task")
    say(f"→ autoresearch task allow {folder}".rstrip())


def allow(
    task: Annotated[
        str, typer.Argument(metavar="[TASK]", help="A task folder or a published task. Left out: the configured task.")
    ] = "",
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Install the Python packages of a task on this machine, after a look at the list."""
    from autoresearch.packages import is_installed, task_python

    found = load_task(named_folder(task) if task else here.task_folder(""))
    paths = here.paths()
    if found.packages and not is_installed(found, paths.environments):
        if _must_ask(found):
            _agree(found, agreed=yes, option="--yes")
        if not json:
            say(f"installing {counted(len(found.packages), 'package')}")
        task_python(found, paths.environments, may_install=lambda: True)
    _wake()
    answer = _answer(found)
    if json:
        print_json(answer)
        return
    if found.packages:
        say(f"{counted(len(answer.packages), 'package')} of {found.name} installed, in {answer.folder}")
    else:
        say(f"{found.name} has no list of packages")
    say(f"→ autoresearch doctor task {found.folder}")


def _must_ask(task: Task) -> bool:
    from autoresearch.packages import is_installed, may_install
    from autoresearch_cli.reading import open_notebook

    paths = here.paths()
    if is_installed(task, paths.environments):
        return False
    setting = here.settings().work.allow_packages
    with open_notebook() as notebook:
        return not may_install(task, paths.allowed_packages, setting, notebook.log, notebook.me, here.now_ms())


def _agree(task: Task, *, agreed: bool, option: str) -> None:
    from autoresearch import packages

    if not agreed:
        can_ask = sys.stdin.isatty() and sys.stderr.isatty()
        _tell(task)
        if not can_ask:
            raise packages.task_not_allowed(task, option)
        if not typer.confirm("Install them?", err=True):
            raise Refused("nothing was installed, and nothing runs", hint="choose another task: autoresearch task list")
    packages.allow(here.paths().allowed_packages, task.packages)


def _tell(task: Task) -> None:
    from autoresearch.packages import package_source

    names = [f"{package.name} {package.version}" for package in task.packages]
    further = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    say(f"{task.name} needs {counted(len(names), 'Python package')} from {package_source()}:")
    say(f"{', '.join(names[:NAMED])}{further}")
    say("Others chose them. Installing runs none of them; the task's programs use them, in the sandbox.")


def _wake() -> None:
    """Have a daemon that waits because of the packages try again at once."""
    try:
        client = here.client()
        if client.ask(operations.STATUS).why == Why.CANNOT_RUN_HERE:
            client.ask(operations.RESUME)
    except DaemonNotRunning:
        return


def _answer(task: Task) -> PackagesAnswer:
    from autoresearch.packages import environment_folder, is_installed, package_source

    place: Path = here.paths().environments
    has = bool(task.packages)
    return PackagesAnswer(
        task=task.name,
        digest=task.digest.hex(),
        packages=[f"{package.name}=={package.version}" for package in task.packages],
        source=package_source() if has else "",
        folder=str(environment_folder(task, place)) if has else "",
        installed=has and is_installed(task, place),
    )
