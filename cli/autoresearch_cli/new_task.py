"""``task new`` in a folder with a program: guesses, runs it to look at its number, asks a person, writes task.toml."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import typer

from autoresearch.direction import MAXIMIZE, MINIMIZE
from autoresearch.errors import UsageError
from autoresearch.figures import size, value
from autoresearch.tasks import (
    PREPARE,
    Recipe,
    fixed_files,
    guess_direction,
    guess_metric,
    guess_recipe,
    parse_summary,
    program_in,
    write_task,
)
from autoresearch_cli import here
from autoresearch_cli.rendering.output import say
from autoresearch_cli.task_folders import PRINT_HINT, Printed, printed_once

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
        used = max(run.peak_memory_bytes for run in self.runs) >> 20
        return min(most, max(LEAST_MEMORY_MIB, TIMES_MEMORY * used))


def describe_program(place: Path, given: Given, *, ask: bool) -> None:
    """Write task.toml for the program in a folder. A person is asked what could not be known, with ``ask``.

    Raises:
        UsageError: there is no program, or it prints no number.
        Refused: task.toml is there.
    """
    from autoresearch.research import Ceiling

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
    used = max(run.peak_memory_bytes for run in seen.runs)
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
