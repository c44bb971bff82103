"""``task``: make a task folder, or explain one."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from autoresearch.errors import Refused, UsageError
from autoresearch.paths import typed_path
from autoresearch.proposers import constants, nothing_to_change
from autoresearch.tasks import (
    ENTRY,
    MANIFEST,
    PREPARE,
    Task,
    guess_direction,
    guess_metric,
    load_task,
    pin_baseline,
    shipped_task,
    write_task,
)
from autoresearch_cli import here, packages, task_archive
from autoresearch_cli.completing import complete_task
from autoresearch_cli.models import ConstantAnswer, TaskAnswer
from autoresearch_cli.options import Folder, Json, command_app, examples
from autoresearch_cli.rendering.figures import duration, value
from autoresearch_cli.rendering.output import print_json, print_labelled, say
from autoresearch_cli.task_folders import PRINT_HINT, copy_task, get_task, printed_once, program_in

if TYPE_CHECKING:
    from autoresearch.research import Ceiling

app = command_app("List tasks; make a task folder, or explain one.")
apps = {"task": app}
NOTHING_TO_CHANGE = "the search finds no number to change; write a range behind one: LR = 0.01  # 0.001 .. 0.1"
# Of a program whose time nobody measured.
USUAL_SECONDS = 300.0
_MEASURED_BY = {
    "referee": "a referee, which evaluates the trained model",
    "harness": "the harness, in the program's own process",
    "stdout": "the program itself (self-reported)",
}


@app.callback(
    epilog=examples(
        ("autoresearch task list", "the tasks of this network"),
        ("autoresearch task get grammar ~/grammar", "the folder of a published task"),
        ("cd my-repo && autoresearch task new .", "describe your own train.py and prepare.py"),
        see="run, work, config set work.task",
    )
)
def task() -> None:
    """A task is a folder: task.toml, a fixed prepare.py that measures, and train.py, the file to improve."""


@app.command(
    epilog=examples(
        ("autoresearch task new ~/my-task", "copy the shipped task into a new folder"),
        ("autoresearch task new .", "write task.toml beside your train.py: run it once and find its number"),
        ("autoresearch task new . --metric accuracy --seconds 60", "name the number and the time of a run"),
        see="task show, run, work",
    )
)
def new(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A new folder, or one with your train.py.")],
    *,
    metric: Annotated[
        str,
        typer.Option("--metric", metavar="NAME", help="The number that train.py prints. Left out: run it and look."),
    ] = "",
    direction: Annotated[
        Literal["minimize", "maximize"] | None,
        typer.Option("--direction", help="Which values are better. Left out: by the metric's name."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=1, max=86_400, help="How long a run may take. Left out: twice the first run."),
    ] = None,
    json: Json = False,
) -> None:
    """Make a task folder: a copy of the shipped task, or a task.toml for the program that is there."""
    place = typed_path(folder).absolute()
    if place.exists() and not place.is_dir():
        raise UsageError(f"{place} is not a folder", hint="give a folder, new or with your train.py")
    if (place / MANIFEST).exists():
        raise Refused(f"{place / MANIFEST} exists already", hint="edit it, or move it away first")
    if place.exists() and any(place.iterdir()):
        found, most = (metric, seconds or USUAL_SECONDS) if metric else _printed_metric(place, seconds)
        better = direction or guess_direction(found)
        write_task(place, metric=found, direction=better, seconds=most, most_memory_mib=ceiling().memory_mib)
    else:
        copy_task(shipped_task(), place)
    task = load_task(place)
    answer, left = describe(task), _for_agents(task)
    if json:
        print_json(answer)
        return
    say(f"{place} is a task: {answer.metric}, {answer.direction}")
    names = [one.name for one in answer.search]
    say(f"the search can change {', '.join(names[:6])}{' …' if len(names) > 6 else ''}" if names else NOTHING_TO_CHANGE)
    _say_all(left)
    say(f"→ look at {place / 'task.toml'}, then: autoresearch run {folder}")


def _printed_metric(place: Path, seconds: float | None) -> tuple[str, float]:
    """The number by which a program most likely wants to be judged, and how many seconds a run may take."""
    if (place / PREPARE).is_file() and b"val_bpb" in program_in(place):  # the shape of karpathy/autoresearch
        return "val_bpb", seconds or USUAL_SECONDS
    say(f"running {place / ENTRY} once to find its number")
    text, took = printed_once(place, seconds=seconds or USUAL_SECONDS)
    found = guess_metric(text)
    if found is None:
        raise UsageError(f"{place / ENTRY} printed no number with a name", hint=PRINT_HINT)
    say(f"it printed {found[0]}: {value(found[1])}, after {duration(took * 1000)}")
    return found[0], seconds or max(2.0, math.ceil(2 * took))


@app.command(
    epilog=examples(
        ("autoresearch task show", "the task that this node works on"),
        ("autoresearch task show ~/my-task", "is this folder a task, and with which rules?"),
        ("autoresearch task show --json | jq -r .digest", "its identity"),
        see="task new, run, best",
    )
)
def show(folder: Folder = "", *, json: Json = False) -> None:
    """What a task measures, what a run may use, which files are fixed, and which constants the search changes."""
    task = load_task(here.task_folder(folder))
    answer = describe(task)
    if json:
        print_json(answer)
        return
    print_labelled(_lines(answer))
    try:
        ceiling().check(task)
    except Refused as error:
        say(f"{error}")
        say(f"→ {error.hint}")
    else:
        say(f"→ autoresearch run {answer.folder}")


@app.command(
    epilog=examples(
        ("autoresearch task pin .", "from now on your edits of train.py are runs of this task"),
        ("autoresearch task pin ~/my-task", "the same for another folder"),
        ("autoresearch task pin . --json | jq -r .digest", "its identity"),
        see="task new, run, propose",
    )
)
def pin(folder: Folder = "", *, json: Json = False) -> None:
    """Fix the train.py in a task folder as the task's baseline, so that an edit is a run and not another task."""
    answer = describe(pin_baseline(here.task_folder(folder)))
    if json:
        print_json(answer)
        return
    say(f"{answer.folder}/task.toml pins the {ENTRY} that is there now as its baseline")
    say(f"→ edit {ENTRY}, then: autoresearch run {folder}".rstrip())


@app.command(
    name="list",
    epilog=examples(
        ("autoresearch task list", "all tasks, those with the most runs first"),
        ("autoresearch task list | cut -f1", "their names"),
        ("autoresearch task list --all", "the archived ones too"),
        see="task get, task archive, work, best",
    ),
)
def list_tasks(
    *,
    all_tasks: Annotated[bool, typer.Option("--all", help="The archived ones too.")] = False,
    json: Json = False,
) -> None:
    """The tasks that are published on this network, and the best value of each; not those that you archived."""
    from autoresearch.answers import tasks_answer
    from autoresearch_cli.reading import open_notebook
    from autoresearch_cli.rendering.boards import print_tasks

    with open_notebook() as notebook:
        answer = tasks_answer(notebook.log, archived=notebook.archived, all_tasks=all_tasks)
        hidden = not all_tasks and bool(notebook.archived)
    if json:
        print_json(answer)
        return
    print_tasks(answer)
    if answer.tasks or not hidden:
        say("→ autoresearch work TASK" if answer.tasks else "→ there is no task yet: autoresearch up --work")
    else:
        say("→ all tasks are archived: autoresearch task list --all")


app.command(
    epilog=examples(
        ("autoresearch task archive grammar", "out of lists, completion and work, on this machine"),
        ("autoresearch task list --all", "all tasks, also those that are archived"),
        ("autoresearch task restore grammar", "have it back"),
        see="task restore, task list, work",
    )
)(task_archive.archive)
app.command(
    epilog=examples(
        ("autoresearch task restore grammar", "by its name"),
        ("autoresearch task restore 7449108f2d37", "or by the beginning of its digest"),
        ("autoresearch task restore grammar --json", "the same for a program"),
        see="task archive, task list, work",
    )
)(task_archive.restore)


@app.command(
    epilog=examples(
        ("autoresearch task get grammar ~/grammar", "by its name, into a new folder"),
        ("autoresearch task get grammar ~/best --run @", "with the best program as the start of your edit"),
        ("autoresearch task get grammar --json | jq -r .folder", "the same for a program"),
        see="task list, run, work",
    )
)
def get(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TASK", help="A task's name or the beginning of its digest.", autocompletion=complete_task
        ),
    ],
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="A new folder. Left out: the task's name, here.")] = "",
    *,
    run: Annotated[
        str, typer.Option("--run", metavar="ID", help="Begin with the program of this run, @ for the best one.")
    ] = "",
    json: Json = False,
) -> None:
    """Write a task as a folder to work in: task.toml, the fixed files, and train.py, which is yours to change."""
    place, start = get_task(name, folder, run)
    task = load_task(place)
    answer, left = describe(task), _for_agents(task)
    if json:
        print_json(answer)
        return
    say(f"{place} is the task {answer.name}{start}")
    _say_all(left)
    say(f"→ edit {place / ENTRY}, then: autoresearch run {folder or answer.name} --hypothesis '…'")


app.command(
    epilog=examples(
        ("autoresearch task lock .", "from requirements.in: versions and hashes, pinned in task.toml"),
        ("PIP_INDEX_URL=https://my-index/simple autoresearch task lock .", "from an index of your own"),
        ("autoresearch task lock . --json | jq -r .packages[]", "what was locked"),
        see="task allow, doctor task, task show",
    )
)(packages.lock)
app.command(
    epilog=examples(
        ("autoresearch task allow grammar", "look at its packages, then install them"),
        ("autoresearch task allow ~/my-task --yes", "without a question"),
        ("autoresearch task allow grammar --yes --json | jq .installed", "the same for a program"),
        see="task lock, doctor task, work --allow-packages",
    )
)(packages.allow)


def _for_agents(task: Task) -> list[str]:
    """Write the files for coding agents into a task's folder; what to say of it."""
    from autoresearch_cli.agent_folders import written
    from autoresearch_cli.reading import open_notebook

    with open_notebook() as notebook:
        left = written(notebook, task)
    return left or ["AGENTS.md there is for coding agents, history.md says what is known of the task"]


def _say_all(lines: list[str]) -> None:
    for line in lines:
        say(line)


def ceiling() -> Ceiling:
    """What this machine allows a run of any task."""
    from autoresearch.research import Ceiling

    return Ceiling.of(here.settings().work)


def describe(task: Task) -> TaskAnswer:
    """A task as an answer."""
    return TaskAnswer(
        folder=str(task.folder),
        name=task.name,
        digest=task.digest.hex(),
        summary=task.summary,
        metric=task.metric.name,
        direction=task.metric.direction,
        metric_source=task.metric.source,
        floor=task.metric.floor,
        noise=task.metric.noise,
        budget_unit=task.budget.unit,
        budget=task.budget.amount,
        limits=msgspec.to_builtins(task.limits),
        ceiling=asdict(ceiling()),
        mounts=dict(task.mounts),
        packages=[f"{package.name}=={package.version}" for package in task.packages],
        venv=task.python.venv if task.python else "",
        search=[
            ConstantAnswer(name=one.name, value=one.value, range=str(one.range))
            for one in constants(task.baseline.decode()).values()
            if one.range
        ],
        files=[f"{name} {hashlib.sha256(content).hexdigest()}" for name, content in task.harness.items()],
    )


def _lines(answer: TaskAnswer) -> list[tuple[str, str]]:
    measured = f"{answer.metric}, {answer.direction}, measured by {_MEASURED_BY[answer.metric_source]}"
    bounds = [f"{name} {value(bound)}" for name, bound in (("floor", answer.floor), ("noise", answer.noise)) if bound]
    budget = duration(answer.budget * 1000) if answer.budget_unit == "seconds" else f"{answer.budget:.3g} work units"
    return [
        ("task", answer.name),
        ("about", answer.summary),
        ("folder", answer.folder),
        ("digest", answer.digest),
        ("metric", " · ".join([measured, *bounds])),
        ("budget", budget),
        ("limits", _amounts(answer.limits)),
        ("allowed here", _amounts(answer.ceiling)),
        *(("reads", f"{folder} ({name})") for name, folder in answer.mounts.items()),
        *((("packages", ", ".join(answer.packages)),) if answer.packages else ()),
        *((("python", answer.venv),) if answer.venv else ()),
        *(("fixed", file) for file in answer.files),
        *(("searched", f"{one.name} = {one.value}: {one.range}") for one in answer.search),
        *(() if answer.search else [("searched", str(nothing_to_change(ENTRY)))]),
    ]


def _amounts(limits: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {limit:.10g}" for name, limit in limits.items())
