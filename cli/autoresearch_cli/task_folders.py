"""Task folders of this machine: copied from the task that ships, or written from what was published."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.paths import typed_path
from autoresearch.tasks import (
    Recipe,
    Task,
    fixed_files,
    guess_metric,
    is_taken,
    keep_baseline,
    load_task,
    program_in,
    remember_start,
    shipped_task,
    split_program,
)
from autoresearch_cli import here
from autoresearch_cli.rendering.ids import short

if TYPE_CHECKING:
    from autoresearch_cli.reading import NotebookReader

PRINT_HINT = "have it print a line such as accuracy: 0.93"

PACKAGES_HINT = (
    "name an environment that has them: --venv PATH; or list them in {folder}/requirements.in, then "
    "autoresearch task new {folder} --metric NAME --seconds N runs nothing: autoresearch task lock {folder}"
)


def copy_task(task: Task, place: Path) -> None:
    """Copy a task's files into a new folder; task.toml last, so that a folder with it is whole."""
    place.mkdir(parents=True, exist_ok=True)
    for name, content in task.harness.items():
        (place / name).write_bytes(content)
    write_program(place, task.baseline.decode())
    keep_baseline(place, task.baseline)
    (place / "task.toml").write_bytes((task.folder / "task.toml").read_bytes())


def get_task(name: str, folder: str = "", run: str = "") -> tuple[Path, str]:
    """Write a task as a folder, with the program of ``run`` or the baseline; returns it and words for that start.

    A folder that is this task already stays as it is.

    Raises:
        NotFound: no such task or run is known here.
        Refused: the folder is another task, or would have to be overwritten.
        UsageError: ``run`` is no run on the task.
    """
    from autoresearch_cli.reading import open_notebook

    with open_notebook() as notebook:
        try:
            found = notebook.task(name)
        except NotFound:
            if name != shipped_task().name or run:
                raise
            return _shipped(typed_path(folder or name).absolute()), ""
        place = typed_path(folder or found.name).absolute()
        if not run:
            return _published(notebook, found.digest, place), ""
        if is_taken(place):
            raise Refused(f"{place} exists already", hint="give a new folder, so that no program is overwritten")
        start, program = notebook.show(run), notebook.source(run)
        if start.run is None or start.run.task != found.digest.hex():
            raise UsageError(f"{run} is no run on the task {found.name}", hint=f"autoresearch top {found.name}")
        _published(notebook, found.digest, place)
        write_program(place, program)
        remember_start(place, start.record.id)
        return place, f", with the program of {short(start.record.id)} “{start.run.title}”"


def named_folder(task: str) -> Path:
    """The folder that was named; for a published task's name a folder of the cache, written when it is missing.

    Raises:
        UsageError: the name is empty, or no path.
        NotFound: there is no such folder or task.
    """
    if not task:  # a variable that a script did not set, not a wish for whatever comes by default
        raise UsageError("“” names no task", hint="a task folder, or a name of autoresearch task list")
    if "/" in task or typed_path(task).exists():
        return here.existing_folder(task)
    from autoresearch_cli.reading import open_notebook

    with open_notebook() as notebook:
        return cached_folder(notebook, notebook.task(task).digest)


def cached_folder(notebook: NotebookReader, digest: bytes) -> Path:
    """The folder of the cache with a published task; written when it is missing. Raises NotFound."""
    return _published(notebook, digest, here.paths().published_tasks / digest.hex())


def write_program(folder: Path, program: str) -> None:
    """Write the files of a program into a folder."""
    for name, content in split_program(program).items():
        (folder / name).write_text(content, encoding="utf-8", newline="")


@dataclass(frozen=True, slots=True)
class Printed:
    """What a program printed, and what its run took."""

    text: str
    seconds: float
    peak_memory_bytes: int


def printed_once(folder: Path, recipe: Recipe, *, seconds: float, seed: int = 0, venv: str = "") -> Printed:
    """What the program in a folder prints when it is run once in the sandbox, by the Python of ``venv``.

    Raises:
        UsageError: it is no program, it stops with an error, it takes longer, or there is no sandbox.
        CannotRunHere: ``venv`` is no Python environment.
    """
    from autoresearch.research import Ceiling, command_words, missing_command, program_files
    from autoresearch.running import Job, Level, Limits, detect_level, execute, interpreter_in
    from autoresearch.words import RunStatus

    names, hint = " and ".join(str(folder / name) for name in recipe.edit), "name them: --metric NAME --seconds N"
    if (missing := missing_command(recipe.build, recipe.command)) is not None:
        raise UsageError(f"{missing} is not on this machine", hint=f"install {missing}, or {hint}")
    if (level := detect_level()[0]) < Level.LANDLOCK:  # nobody knows yet who wrote it
        raise UsageError(f"there is no sandbox here, so {names} is not run to find its number and its time", hint=hint)
    files = {**program_files(program_in(folder, recipe).decode()), **fixed_files(folder, recipe.edit)}
    ceiling = Ceiling.of(here.settings().work)
    job = Job(
        files=files,
        build=command_words(recipe.build),
        command=command_words(recipe.command),
        copied=tuple(files),
        limits=Limits(seconds=seconds, memory_bytes=ceiling.memory_mib << 20),
        seed=seed,
        device=here.first_device(),
        metric_source="stdout",
        parse=lambda _: {},
        python=interpreter_in(Path(venv)) if venv else None,
    )
    outcome = execute(job, level=level)
    text = outcome.log.decode("utf-8", "replace")
    if outcome.status is RunStatus.TIMED_OUT:
        raise UsageError(f"{names} ran for {seconds:g} s without an end", hint=hint)
    if outcome.status is not RunStatus.OK and guess_metric(text) is None:
        hint = PACKAGES_HINT.format(folder=folder) if "No module named" in outcome.reason else PRINT_HINT
        raise UsageError(f"{names} printed no number: {outcome.reason}", hint=hint)
    return Printed(text, outcome.duration_ms / 1000, outcome.peak_memory_bytes)


def _shipped(place: Path) -> Path:
    task = shipped_task()
    if not is_taken(place):
        copy_task(task, place)
    elif load_task(place).digest != task.digest:
        raise Refused(f"{place} is another task", hint="give a new folder")
    return place


def _published(notebook: NotebookReader, digest: bytes, place: Path) -> Path:
    from autoresearch.answers import published_task
    from autoresearch_cli.reading import with_blobs

    return with_blobs(lambda: published_task(notebook.log, notebook.blobs, digest, place)).folder
