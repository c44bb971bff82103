"""Task folders of this machine: copied from the task that ships, written from what was published, or new.

``task new`` in a folder with a program guesses, runs it to look at its number, asks a person, writes task.toml.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from autoresearch.ask import questions
from autoresearch.ask.requests import OneRecord
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.face.columns.column import short
from autoresearch.paths import typed_path
from autoresearch.task.folders import PREPARE, fixed_files, guess_recipe, is_taken, side_file, write_task
from autoresearch.task.loading import (
    CHANGES,
    NAMES,
    keep_baseline,
    load_task,
    program_in,
    remember_start,
    shipped_task,
)
from autoresearch.task.model import Recipe, Task
from autoresearch.task.program import guess_direction, guess_metric, parse_summary, split_program
from autoresearch.text import MAXIMIZE, MINIMIZE, size, value
from autoresearch_cli import here
from autoresearch_cli.rendering.output import say

if TYPE_CHECKING:
    from autoresearch.ask.desk import Desk
from autoresearch.ask.desk import Desk

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
    for name in (CHANGES, NAMES):
        if content := side_file(name, task.definition(), task.folder):
            (place / name).write_bytes(content)
    (place / "task.toml").write_bytes((task.folder / "task.toml").read_bytes())


def get_task(name: str, folder: str = "", run: str = "") -> tuple[Path, str]:
    """Write a task as a folder, with the program of ``run`` or the baseline; returns it and words for that start.

    A folder that is this task already stays as it is.

    Raises:
        NotFound: no such task or run is known here.
        Refused: the folder is another task, or would have to be overwritten.
        UsageError: ``run`` is no run on the task.
    """
    from autoresearch_cli.reading import open_desk

    with open_desk() as desk:
        try:
            found = desk.task(name)
        except NotFound:
            if name != shipped_task().name or run:
                raise
            return _shipped(typed_path(folder or name).absolute()), ""
        place = typed_path(folder or found.name).absolute()
        if not run:
            return _published(desk, found.digest, place), ""
        if is_taken(place):
            raise Refused(f"{place} exists already", hint="give a new folder, so that no program is overwritten")
        asked = OneRecord(id=run, task=name)
        start, program = questions.record(desk, asked), here.ask(questions.source, asked)
        if start.run is None or start.run.run.task != found.digest.hex():
            raise UsageError(f"{run} is no run on the task {found.name}", hint=f"autoresearch top {found.name}")
        _published(desk, found.digest, place)
        write_program(place, program)
        remember_start(place, start.record.id)
        return place, f", with the program of {short(start.record.id)} “{start.run.run.title}”"


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
    from autoresearch_cli.reading import open_desk

    with open_desk() as desk:
        return cached_folder(desk, desk.task(task).digest)


def cached_folder(desk: Desk, digest: bytes) -> Path:
    """The folder of the cache with a published task; written when it is missing. Raises NotFound."""
    return _published(desk, digest, here.paths().published_tasks / digest.hex())


def write_program(folder: Path, program: str) -> None:
    """Write the files of a program into a folder."""
    for name, content in split_program(program).items():
        (folder / name).write_text(content, encoding="utf-8", newline="")


@dataclass(frozen=True, slots=True)
class Printed:
    """What a program printed, and what its run took."""

    text: str
    seconds: float
    memory_bytes: int


def printed_once(folder: Path, recipe: Recipe, *, seconds: float, seed: int = 0, venv: str = "") -> Printed:
    """What the program in a folder prints when it is run once in the sandbox, by the Python of ``venv``.

    Raises:
        UsageError: it is no program, it stops with an error, it takes longer, or there is no sandbox.
        CannotRunHere: ``venv`` is no Python environment.
    """
    from autoresearch.run.bench import Ceiling, command_words, missing_command, program_files
    from autoresearch.run.sandbox.execute import execute
    from autoresearch.run.sandbox.job import Job, Level, Limits
    from autoresearch.run.sandbox.layout import interpreter_in
    from autoresearch.run.sandbox.probes import detect_level
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


def _published(desk: Desk, digest: bytes, place: Path) -> Path:
    from autoresearch.ask.people.claims import published_task
    from autoresearch_cli.reading import with_blobs

    return with_blobs(lambda: published_task(desk.log, desk.blobs, digest, place)).folder


# Of a program whose time nobody measured.
USUAL_SECONDS = 300.0
# Of a program that was run, what a run may use beside what it used, in MiB.
LEAST_MEMORY_MIB = 1024
TIMES_MEMORY = 4
_KARPATHY = "val_bpb"


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says of a task; what is empty is guessed."""

    metric: str = ""
    direction: Literal["minimize", "maximize"] | None = None
    seconds: float | None = None
    command: str = ""
    build: str = ""
    edit: Sequence[str] = ()
    once: bool = False
    venv: str = ""
    """An absolute path, or empty: the node's own Python."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the program printed when it was run, and what that took."""

    runs: Sequence[Printed] = ()

    def values(self, metric: str) -> list[float]:
        """The value of a metric in each run that printed it."""
        found = (parse_summary(run.text, metric).get(metric) for run in self.runs)
        return [number for number in found if number is not None]

    def seconds(self) -> float:
        """How long a run may take."""
        return max(2.0, math.ceil(2 * max(run.seconds for run in self.runs))) if self.runs else USUAL_SECONDS

    def memory_mib(self, most: int) -> int:
        """How much memory a run may use."""
        if not self.runs:
            return most
        used = max(run.memory_bytes for run in self.runs) >> 20
        return min(most, max(LEAST_MEMORY_MIB, TIMES_MEMORY * used))


def describe_program(place: Path, given: Given, *, ask: bool) -> None:
    """Write task.toml for the program in a folder. A person is asked what could not be known, with ``ask``.

    Raises:
        UsageError: there is no program, or it prints no number.
        Refused: task.toml is there.
    """
    from autoresearch.run.bench import Ceiling

    recipe = guess_recipe(place, command=given.command, build=given.build, edit=given.edit)
    if ask and not given.command:
        recipe = _asked_command(place, given, recipe)
    program_in(place, recipe)
    fixed = fixed_files(place, recipe.edit)
    say(f"the program is {' and '.join(recipe.edit)}, started by: {recipe.command}")
    if fixed:
        say(f"fixed beside it: {', '.join(fixed)}")
    seen = _Seen()
    if not (given.metric and given.seconds) and not _is_karpathy(place, recipe):
        seen = _Seen(_looked(place, recipe, given))
    metric, direction = _judged(place, recipe, given, seen, ask=ask)
    seconds = given.seconds or seen.seconds()
    if ask and given.seconds is None:
        seconds = typer.prompt("Seconds that a run may take", default=seconds, type=float, err=True)
        if not 1 <= seconds <= 86_400:
            raise UsageError(f"a run can't take {seconds:g} seconds", hint="between 1 and 86400")
    most = Ceiling.of(here.settings().work).memory_mib
    write_task(
        place,
        recipe=recipe,
        metric=metric,
        direction=direction,
        seconds=seconds,
        most_memory_mib=seen.memory_mib(most),
        noise=_noise(metric, seen.values(metric)),
        venv=given.venv,
    )


def asks(*, json: bool) -> bool:
    """Whether there is a person to ask."""
    return not json and sys.stdin.isatty() and sys.stderr.isatty()


def _asked_command(place: Path, given: Given, guess: Recipe) -> Recipe:
    line = typer.prompt("Command that runs the program", default=guess.command, err=True).strip()
    if line == guess.command:
        return guess
    return guess_recipe(place, command=line, build=given.build, edit=given.edit)


def _is_karpathy(place: Path, recipe: Recipe) -> bool:
    """Whether a folder has the shape of karpathy/autoresearch, where a run takes minutes and the number is known."""
    return recipe == Recipe() and (place / PREPARE).is_file() and _KARPATHY.encode() in program_in(place, recipe)


def _looked(place: Path, recipe: Recipe, given: Given) -> list[Printed]:
    """What the program prints, in two runs with different seeds."""
    names, most = " and ".join(recipe.edit), given.seconds or USUAL_SECONDS
    say(f"running {names} {'once' if given.once else 'twice'} to find its number")
    runs = [printed_once(place, recipe, seconds=most, venv=given.venv)]
    if given.once:
        return runs
    try:
        runs.append(printed_once(place, recipe, seconds=most, seed=1, venv=given.venv))
    except UsageError as error:
        say(f"the second run did not end as the first: {error}")
    return runs


def _judged(place: Path, recipe: Recipe, given: Given, seen: _Seen, *, ask: bool) -> tuple[str, str]:
    """The number by which runs are compared, and which of its values are better."""
    if not seen.runs:
        metric = given.metric or _KARPATHY
        return metric, given.direction or guess_direction(metric)
    found = guess_metric(seen.runs[0].text)
    metric = given.metric or (found[0] if found else "")
    if ask and not given.metric:
        metric = typer.prompt("Number to improve", default=metric or None, err=True).strip()
    if not seen.values(metric):
        names = " and ".join(str(place / name) for name in recipe.edit)
        raise UsageError(f"{names} printed no number {metric}" if metric else f"{names} printed no number with a name",
                         hint=PRINT_HINT)  # fmt: skip
    used = max(run.memory_bytes for run in seen.runs)
    took = max(run.seconds for run in seen.runs)
    say(f"it printed {metric}: {value(seen.values(metric)[0])}, after {took:.1f} s, with {size(used)}")
    direction: str = given.direction or guess_direction(metric)
    if ask and given.direction is None:
        direction = typer.prompt("Which values are better, minimize or maximize", default=direction, err=True).strip()
        if direction not in (MINIMIZE, MAXIMIZE):
            raise UsageError(f"{direction!r} is no direction", hint="minimize or maximize")
    return metric, direction


def _noise(metric: str, values: Sequence[float]) -> float | None:
    """The standard deviation by two runs; None where they say nothing."""
    if len(values) < 2:
        return None
    if values[0] == values[1]:
        say(f"both runs gave the same {metric}: metric.noise = 0, so no program is run with a second seed")
        return 0.0
    noise = abs(values[0] - values[1]) / math.sqrt(2)
    gave = " and ".join(map(value, values))
    say(f"two runs gave {gave}: metric.noise = {noise:.2g}, a rough guess from so few runs")
    return noise
