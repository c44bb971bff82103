"""What a task folder needs on the command line: its own Python packages, locked, and what it reaches outside.

They are installed, or allowed, where a person lets them.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from autoresearch.ask.node_acts import Node
from autoresearch.errors import DaemonNotRunning, Refused
from autoresearch.log.standing.bases import contenders
from autoresearch.log.standing.context import trust_context
from autoresearch.propose.mind.recall import text_of
from autoresearch.run import consent
from autoresearch.run.packages import PackagesNotAllowed, task_not_allowed
from autoresearch.task.loading import MANIFEST, load_task
from autoresearch.task.model import Task
from autoresearch.task.needs import LOCK, Package, lock_digest
from autoresearch.text import counted
from autoresearch.words import Why
from autoresearch_cli import home
from autoresearch_cli.acts.task_folders import named_folder
from autoresearch_cli.catalogue import Folder, Json
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.models import PackagesAnswer
from autoresearch_cli.rendering.output import print_json, say

# So many packages are named before a person is asked.
NAMED = 20
# The packages of so many of a task's best programs are asked about.
BEST_PROGRAMS = 20


def ask_for_packages(task: Task, programs: Sequence[str] = (), *, allowed: bool = False) -> None:
    """Have a person agree that packages are installed, where that is needed; ``allowed``: they have.

    They are those of a task, and of programs that bring a list. What its runs can read is told.

    Raises:
        NotAllowed: the task's folder reaches out of itself, and nobody allowed that.
        PackagesNotAllowed: nobody can be asked here.
        Refused: the answer is no.
    """
    consent.check_reaches(task.folder, consent.reaches_of(task), home.paths().allowed)
    if sentence := consent.what_runs_read(task):
        say(sentence)
    option = "--allow-packages"
    if task.packages and must_ask(task):
        _agree(task.name, task.packages, agreed=allowed, refusal=task_not_allowed(task, option))
    for packages in _to_ask(programs):
        name = f"an agent of {task.name}"
        _agree(name, packages, agreed=allowed, refusal=PackagesNotAllowed(name, len(packages), hint=option))


def ask_for_agents(task: Task, *, allowed: bool = False) -> None:
    """Have a person agree to the packages of a task's best programs; where nobody can be asked, say that they wait.

    Raises:
        Refused: the answer is no.
    """
    if not any(fnmatchcase(LOCK, pattern) for pattern in task.recipe.edit):
        return
    with open_desk() as desk:
        best = contenders(desk.log, task.digest, trust_context(desk.log, desk.me), limit=BEST_PROGRAMS)
        programs = [source for each in best if (source := text_of(desk.log, desk.blobs, each.row.first))]
    if not allowed and not can_ask() and (lists := _to_ask(programs)):
        waits = f"{counted(len(lists), 'list')} of packages that agents of {task.name} bring"
        say(f"nobody allowed here {waits}: these agents are not run → autoresearch work {task.name} --allow-packages")
        return
    ask_for_packages(task, programs, allowed=allowed)


def _to_ask(programs: Sequence[str]) -> list[list[Package]]:
    """The lists that programs bring, each once, that are not installed here and that nobody allowed."""
    from autoresearch.run.packages import PackageSet, are_allowed, brought_packages

    paths, work = home.paths(), home.settings().work
    waiting = [source for source in programs if not are_allowed([source], paths, work)]
    lists = {lock_digest(packages): packages for packages in map(brought_packages, waiting)}
    return [each for each in lists.values() if not PackageSet("", each, base=True).is_installed(paths.environments)]


def lock(folder: Folder = "", *, json: Json = False) -> None:
    """Fix the versions and hashes of a task's packages: requirements.in becomes requirements.txt, task.toml pins it."""
    from autoresearch.run.lacking import lacking_in_list
    from autoresearch.run.package_locks import lock_folder
    from autoresearch.run.preflight import way_to_packages

    locked = lock_folder(home.task_folder(folder))
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
    if lacking := lacking_in_list(task):
        say(f"the list lacks {', '.join(lacking)}, which the files of the task import: it is all that they have")
        say(f"→ {way_to_packages(task, ())}")
    say(f"→ autoresearch task allow {folder and shlex.quote(folder)}".rstrip())


def allow_task(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK", help="A task folder or a published task. Left out: the one here, or the configured."
        ),
    ] = "",
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    named: Annotated[
        list[str],
        typer.Option("--name", metavar="PATH", help="A hidden folder that it may read, as ~/.cache/x; repeatable."),
    ] = [],  # noqa: B006 - typer's way to say that it may be given any number of times
    json: Json = False,
) -> None:
    """Allow what a task or project reaches outside of its folder, and its packages, after a look at the list."""
    from autoresearch.project.components.trusting import reaches_of as project_reaches
    from autoresearch.project.model import is_project, load_project
    from autoresearch.run.packages import ALLOWED, is_installed, task_python

    folder, paths = named_folder(task) if task else home.task_folder(""), home.paths()
    if is_project(folder) and not (folder / MANIFEST).exists():
        project = load_project(folder)
        _allow_reaches(project.folder, project_reaches(project), named, agreed=yes)
        answer = PackagesAnswer(task=project.folder.name, reaches=_as_answer(project_reaches(project)))
        if json:
            print_json(answer)
        else:
            say(f"→ autoresearch run {shlex.quote(str(folder))}")
        return
    loaded_task = load_task(folder)
    _allow_reaches(loaded_task.folder, consent.reaches_of(loaded_task), named, agreed=yes)
    if loaded_task.packages and not is_installed(loaded_task, paths.environments):
        if must_ask(loaded_task):
            _agree(loaded_task.name, loaded_task.packages, agreed=yes, refusal=task_not_allowed(loaded_task, "--yes"))
        if not json:
            say(f"installing {counted(len(loaded_task.packages), 'package')}")
        task_python(loaded_task, paths.environments, may_install=lambda: ALLOWED)
    _wake()
    answer = _answer(loaded_task)
    if json:
        print_json(answer)
        return
    if loaded_task.packages:
        say(f"{counted(len(answer.packages), 'package')} of {loaded_task.name} installed, in {answer.folder}")
    else:
        say(f"{loaded_task.name} has no list of packages")
    if sentence := consent.what_runs_read(loaded_task):
        say(sentence)
    say(f"→ autoresearch node doctor task {loaded_task.folder}")


def _allow_reaches(folder: Path, reaches: Sequence[consent.Reach], named: Sequence[str], *, agreed: bool) -> None:
    """Have a person agree to what a folder reaches outside of itself.

    Raises:
        Refused: the answer is no; nobody can allow it; or it has to be named.
        NotAllowed: nobody can be asked here.
    """
    paths = home.paths()
    if consent.is_allowed(paths.allowed, consent.list_digest(folder, reaches)):
        return
    if reaches:
        say(f"{folder} reaches outside of itself:")
        for each in reaches:
            leads = "" if each.text in (each.path, "") or each.kind == "code" else f", which is {each.path}"
            hidden = "; hidden, or with keys" if each.by_name else ""
            say(f"  {consent.REACH_WORDS[each.kind]}: {each.text}{leads}{hidden}")
    consent.check_names(folder, reaches, paths, [Path(name) for name in named])
    if reaches and not agreed:
        if not can_ask():
            raise consent.NotAllowed(folder, reaches)
        if not typer.confirm("Allow it?", err=True):
            raise Refused("nothing was allowed, and nothing runs", hint=f"look at {folder} first")
    consent.allow_reaches(folder, reaches, paths)


def _as_answer(reaches: Sequence[consent.Reach]) -> list[str]:
    return [f"{each.kind} {each.text} {each.path}" for each in reaches]


def must_ask(task: Task) -> bool:
    """Whether a person has to agree before a task's packages are installed here."""
    from autoresearch.run.packages import is_installed, may_install
    from autoresearch_cli.local_log import open_desk

    paths = home.paths()
    if is_installed(task, paths.environments):
        return False
    with open_desk() as desk:
        return not may_install(task, paths, home.settings().work, desk.log, desk.me, home.now_ms())


def can_ask() -> bool:
    """Whether a person sits at a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _agree(name: str, packages: list[Package], *, agreed: bool, refusal: PackagesNotAllowed) -> None:
    if not agreed:
        name_packages(name, packages)
        say("Others chose them. Installing runs none of them; the task's programs use them, in the sandbox.")
        if not can_ask():
            raise refusal
        if not typer.confirm("Install them?", err=True):
            raise Refused("nothing was installed, and nothing runs", hint="choose another task: autoresearch task list")
    consent.allow(home.paths().allowed, lock_digest(packages))


def name_packages(name: str, packages: list[Package]) -> None:
    """Say which packages ``name`` needs, and from where they come."""
    from autoresearch.run.package_locks import package_source

    names = [f"{package.name} {package.version}" for package in packages]
    further = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    say(f"{name} needs {counted(len(names), 'Python package')} from {package_source()}:")
    say(f"{', '.join(names[:NAMED])}{further}")


def _wake() -> None:
    """Have a daemon that waits because of the packages try again at once."""
    try:
        client = home.client()
        if client.ask(Node.status).why == Why.CANNOT_RUN_HERE:
            client.ask(Node.resume)
    except DaemonNotRunning:
        return


def _answer(task: Task) -> PackagesAnswer:
    from autoresearch.run.package_locks import package_source
    from autoresearch.run.packages import environment_folder, is_installed

    place: Path = home.paths().environments
    has = bool(task.packages)
    return PackagesAnswer(
        task=task.name,
        digest=task.digest.hex(),
        reaches=_as_answer(consent.reaches_of(task)),
        packages=[f"{package.name}=={package.version}" for package in task.packages],
        source=package_source() if has else "",
        folder=str(environment_folder(task, place)) if has else "",
        installed=has and is_installed(task, place),
    )
