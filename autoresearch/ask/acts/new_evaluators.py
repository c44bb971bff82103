"""An evaluator beside a program that prints its own number: its files are written, and tried with their toy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from autoresearch.ask.acts import trial_runs
from autoresearch.beneath import remove_beneath
from autoresearch.errors import AutoresearchError
from autoresearch.task.evaluator_template import QUESTIONS, REFEREE, Artifact, evaluator_files
from autoresearch.task.folder_state import create_file, replace_file
from autoresearch.task.loading import load_task, read_file
from autoresearch.task.model import Evaluator, Recipe
from autoresearch.task.needed import Needed
from autoresearch.text import value
from autoresearch.words import RunStatus


class EvaluatedProgram(NamedTuple):
    """A program with an evaluator beside it: what task.toml says of both."""

    recipe: Recipe
    needed: Needed
    evaluator: Evaluator | None = None
    floor: float | None = None


@contextmanager
def with_evaluator(
    look: trial_runs.Look, artifact: Artifact | None, metric: str, direction: str, floor: float | None
) -> Iterator[EvaluatedProgram]:
    """A program with the files of an evaluator beside it; without an ``artifact`` the program as it is.

    They are gone, and the program as it was, where what is done with them fails. Raises Refused where a file is there.
    """
    if artifact is None:
        yield EvaluatedProgram(look.recipe, look.needed, None, floor)
        return
    files = evaluator_files(artifact, look.recipe, metric, direction, floor)
    before = read_file(look.place, files.block_file) if files.block_file else b""
    made: list[str] = []
    is_changed = False
    try:
        for name, text in {**files.program, **files.fixed}.items():
            create_file(look.place, name, text)
            made.append(name)
        if files.block_file:
            replace_file(look.place, files.block_file, before.rstrip() + b"\n\n" + files.block.encode())
            is_changed = True
        fixed = look.needed.fixed | {name: text.encode() for name, text in files.fixed.items()}
        recipe = msgspec.structs.replace(look.recipe, edit=(*look.recipe.edit, *files.program))
        yield EvaluatedProgram(recipe, replace(look.needed, fixed=fixed), files.evaluator, files.floor)
    except BaseException:  # Ctrl-C too
        for name in made:
            with suppress(OSError):
                remove_beneath(look.place, name)
        if is_changed:
            replace_file(look.place, files.block_file, before)
        raise


def say_marked_places(look: trial_runs.Look, artifact: Artifact) -> None:
    """Run the new task once as it is, and say what its evaluator measured and what a person has to write."""
    place, say = look.place, look.context.say
    task = load_task(place)
    assert task.evaluator is not None
    left, marked = task.evaluator.artifact, "Marked place 1 "
    holder = next(
        (name for name in task.recipe.edit if marked in read_file(place, name).decode("utf-8", "replace")), ""
    )
    if not holder:
        what = f"a list with a number for each row of {QUESTIONS}" if artifact is Artifact.PREDICTIONS else "the model"
        say(f"place 1: have {' or '.join(task.recipe.edit)} leave {left}, {what}")
    else:
        say("it was not run again: that takes long" if look.is_long else _trial(look.context, place))
        say(f"the marked places have a toy; yours belongs there: {holder}, {', '.join(_others(task.recipe, artifact))}")


def _others(recipe: Recipe, artifact: Artifact) -> list[str]:
    """The other files with a marked place."""
    return [*(recipe.edit[-1:] if artifact is Artifact.MODEL else ()), REFEREE]


def _trial(context: trial_runs.NewTaskContext, place: Path) -> str:
    try:
        outcome = trial_runs.measured_once(context, place)
    except AutoresearchError as error:
        return f"it was not run: {error}"
    if outcome is None:
        return "it was not run: there is no sandbox here"
    if outcome.status != RunStatus.OK or outcome.value is None:
        return f"{REFEREE} measured nothing yet: {outcome.reason}"
    metric = load_task(place).metric.name
    return f"{REFEREE} measured {metric} {value(outcome.value)} outside of the program, by the toy"
