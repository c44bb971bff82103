"""What ``run`` and ``propose`` share: an edited program, the run that it started from, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autoresearch.api import ProposeRequest, ShowAnswer
from autoresearch.direction import sign_of
from autoresearch.errors import NotFound, UsageError
from autoresearch.ideas import Idea
from autoresearch.tasks import Task, load_task, remember_start, started_from
from autoresearch_cli.options import PARENT_HELP
from autoresearch_cli.reading import NotebookReader, open_notebook
from autoresearch_cli.rendering.figures import value
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import say

Parent = Annotated[str, typer.Option("--parent", metavar="ID", help=PARENT_HELP)]
Hypothesis = Annotated[
    str, typer.Option("--hypothesis", metavar="TEXT", help="Why it should help. Its beginning is the run's title.")
]


def request(idea: Idea, *, seeds: int = 1) -> ProposeRequest:
    """An idea as the daemon takes it."""
    return ProposeRequest(
        task=str(idea.task.folder),
        program=idea.program,
        parent=idea.parent,
        hypothesis=idea.hypothesis,
        replicate=idea.replicate,
        seeds=seeds,
    )


def idea_in(folder: Path, *, parent: str = "", hypothesis: str = "", replicate: int = 0) -> Idea:
    """The program of a task folder, as the child of the run that it was edited from."""
    task = load_task(folder)
    if not task.is_pinned:
        say("task.toml pins no baseline, so an edited train.py is another task: autoresearch task pin fixes this one")
    if not parent:
        parent = started_from(folder)
        with open_notebook() as notebook:
            if parent and not is_here(notebook, parent):
                parent = ""  # the folder comes from another machine or network
    return Idea(task, task.program.decode(), parent, hypothesis, replicate)


def is_here(notebook: NotebookReader, run: str) -> bool:
    """Whether a run is in the log of this machine."""
    try:
        notebook.resolve(run)
    except NotFound:
        return False
    return True


def outcome(notebook: NotebookReader, shown: ShowAnswer, task: Task) -> list[str]:
    """How a run compares with its parent, and the next step; a better one is where the folder's next edit starts."""
    run = shown.run
    assert run is not None
    if run.value is None or run.parent is None:
        return ["→ autoresearch diff @mine, autoresearch top"]
    parent = notebook.show(run.parent).run
    if parent is None or parent.value is None:
        return [f"its parent {short(run.parent)} has no value to compare with", "→ autoresearch top"]
    gain = (parent.value - run.value) * sign_of(task.metric.direction)
    against = f"{value(run.value)}, its parent {short(run.parent)} {value(parent.value)}"
    noise = task.metric.noise
    within = f", within the noise of {value(noise)}" if noise and abs(gain) < noise else ""
    if gain > 0:
        better = f"better than its parent: {against}{within}"
        return [better, *_remember(task, shown.record.id), "→ edit train.py and run again, or: autoresearch best"]
    back = f"autoresearch show {short(run.parent)} --code > {task.folder / 'train.py'}"
    return [f"not better than its parent: {against}{within}", f"→ to go back to the parent: {back}"]


def _remember(task: Task, run: str) -> list[str]:
    """Have the folder remember the run; what to say where it can't. The run is published all the same."""
    if not started_from(task.folder) and task.program == task.baseline:
        return []
    try:
        remember_start(task.folder, run)
    except UsageError as error:
        return [f"the folder does not remember it: {error}"]
    return []
