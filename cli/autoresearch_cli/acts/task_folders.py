"""Task folders of this machine: copied from a task that ships, or written from what was published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from autoresearch.ask import questions
from autoresearch.ask.requests import OneRecord
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.face.columns.column import short
from autoresearch.paths import typed_path
from autoresearch.task.folder_state import remember_start
from autoresearch.task.folders import copy_task, is_taken, write_program
from autoresearch.task.loading import load_task, shipped_by_name
from autoresearch.task.model import Task
from autoresearch_cli import home

if TYPE_CHECKING:
    from autoresearch.ask.desk import Desk


def get_task(name: str, folder: str = "", run: str = "") -> tuple[Path, str]:
    """Write a task as a folder, with the program of ``run`` or the baseline; returns it and words for that start.

    A folder that is this task already stays as it is.

    Raises:
        NotFound: no such task or run is known here.
        Refused: the folder is another task, or would have to be overwritten.
        UsageError: the name is empty, or ``run`` is no run on the task.
    """
    from autoresearch_cli.local_log import open_desk

    _check_named(name)
    with open_desk() as desk:
        try:
            published = desk.task(name)
        except NotFound:
            task = shipped_by_name(name)
            if task is None or run:
                raise
            return _shipped(task, typed_path(folder or name).absolute()), ""
        place = typed_path(folder or published.name).absolute()
        if not run:
            return _published(desk, published.digest, place), ""
        if is_taken(place):
            raise Refused(f"{place} exists already", hint="give a new folder, so that no program is overwritten")
        reference = OneRecord(id=run, task=name)
        start, program = questions.record(desk, reference), home.ask(questions.source, reference)
        if start.run is None or start.run.run.task != published.digest.hex():
            raise UsageError(f"{run} is no run on the task {published.name}", hint=f"autoresearch top {published.name}")
        _published(desk, published.digest, place)
        write_program(place, program)
        remember_start(place, start.record.id)
        return place, f", with the program of {short(start.record.id)} “{start.run.run.title}”"


def named_folder(task: str) -> Path:
    """The folder that was named; for a published task's name a folder of the cache, written when it is missing.

    A task that ships needs not be published yet.

    Raises:
        UsageError: the name is empty, or no path.
        NotFound: there is no such folder or task.
    """
    _check_named(task)
    if "/" in task or typed_path(task).exists():
        return home.existing_folder(task)
    from autoresearch_cli.local_log import open_desk

    with open_desk() as desk:
        try:
            return cached_folder(desk, desk.task(task).digest)
        except NotFound:
            if (shipped := shipped_by_name(task)) is None:
                raise
            return shipped.folder


def network_task() -> str:
    """The folder of the task that the network was founded for, as a contest's; nothing where the settings name one."""
    tasks = () if home.settings().work.task else home.manifest().tasks
    return str(named_folder(tasks[0].hex())) if tasks else ""


def _check_named(task: str) -> None:
    if not task:  # a variable that a script did not set, not a wish for whatever comes by default
        raise UsageError("“” names no task", hint="a task folder, or a name of autoresearch task list")


def cached_folder(desk: Desk, digest: bytes) -> Path:
    """The folder of the cache with a published task; written when it is missing. Raises NotFound."""
    return _published(desk, digest, home.paths().published_tasks / digest.hex())


def _shipped(task: Task, place: Path) -> Path:
    if not is_taken(place):
        copy_task(task, place)
    elif load_task(place).digest != task.digest:
        raise Refused(f"{place} is another task", hint="give a new folder")
    return place


def _published(desk: Desk, digest: bytes, place: Path) -> Path:
    from autoresearch.ask.people.claims import published_task
    from autoresearch_cli.local_log import with_blobs

    return with_blobs(lambda: published_task(desk.log, desk.blobs, digest, place)).folder
