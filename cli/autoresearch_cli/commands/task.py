"""``task``: make a task folder, explain one, or put a task away on this machine (``archive``, ``restore``).

The log keeps everything.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from autoresearch.ask.acts.new_tasks import describe_program, make_toy
from autoresearch.ask.acts.trial_runs import TaskOptions
from autoresearch.errors import CannotRunHere, NotFound, Refused, UsageError
from autoresearch.face.columns.runs import budget_words
from autoresearch.log.local import Choice, choose, chosen
from autoresearch.paths import typed_path
from autoresearch.propose.program.edits import Patches, constants, declared_in, settings_in
from autoresearch.propose.search.proposal import nothing_to_change
from autoresearch.run.attack.report import attacked, read_report
from autoresearch.run.consent import check_reaches, reaches_of
from autoresearch.task.evaluator_template import Artifact
from autoresearch.task.folders import UNNAMED, copy_task, is_taken, name_of_task, pin_baseline, pin_fixed_files
from autoresearch.task.inputs import described
from autoresearch.task.loading import MANIFEST, load_task, shipped_task
from autoresearch.task.model import Task
from autoresearch.text import counted, value
from autoresearch.words import MEASURED_BY
from autoresearch_cli import home
from autoresearch_cli.acts import packages
from autoresearch_cli.acts.new_tasks import mount_of, new_task_context
from autoresearch_cli.acts.task_folders import get_task, named_folder
from autoresearch_cli.catalogue import (
    Answered,
    CommandApp,
    Folder,
    Hidden,
    Json,
    NamedTask,
    complete_archived,
    complete_task,
)
from autoresearch_cli.models import ArchivedAnswer, ConstantAnswer, TaskAnswer
from autoresearch_cli.rendering.output import print_json, print_labelled, print_list, say, say_hidden

if TYPE_CHECKING:
    from autoresearch.run.bench import Ceiling

_NO_NAME = f"; it is called {UNNAMED}, as its folder's name has no Latin letters → write its name in task.toml first"
_NAMED = "A task's name or the beginning of its digest."
Present = Annotated[str, typer.Argument(metavar="TASK", help=_NAMED, autocompletion=complete_task)]
PutAway = Annotated[str, typer.Argument(metavar="TASK", help=_NAMED, autocompletion=complete_archived)]


def archive(name: Present, *, json: Json = False) -> None:
    """Put a task away on this machine: lists and completion leave it out, and the daemon stops work on it."""
    answer = _chosen(name, archived=True)
    if json:
        print_json(answer)
        return
    say(f"{answer.name} ({answer.digest[:12]}) is archived{'' if answer.changed else ' already'}; its records stay")
    say(f"→ autoresearch task restore {answer.name} has it back")


def restore(name: PutAway, *, json: Json = False) -> None:
    """Take a task out of the archive of this machine."""
    answer = _chosen(name, archived=False)
    if json:
        print_json(answer)
        return
    say(f"{answer.name} ({answer.digest[:12]}) is {'restored' if answer.changed else 'not archived'}")
    say(f"→ autoresearch work {answer.name}")


def _chosen(name: str, *, archived: bool) -> ArchivedAnswer:
    """Archive the task that a name means, or restore it: of several with one name that one which is the other way."""
    from autoresearch.ask.lookup import find_task
    from autoresearch_cli.local_log import open_desk

    with open_desk() as desk:
        everything = {row.digest for row in desk.log.tasks.all()}
        put_away = desk.archived() if archived else frozenset(everything - desk.archived())
        task = find_task(desk.log, name, author=desk.me, archived=put_away)
    changed = choose(home.paths().home_local, Choice.ARCHIVED, task.digest, chosen=archived)
    return ArchivedAnswer(name=task.name, digest=task.digest.hex(), archived=archived, changed=changed)


app = CommandApp()


@app.command(
    "task new",
    ("autoresearch task new .", "write task.toml for the program here: run it and find its number"),
    ("autoresearch task new . --referee predictions", "have its predictions measured outside of it, by a template"),
    ("autoresearch task new ~/my-task --new", "copy the shipped task into a new folder"),
    see="task get, task show, run, work",
)
def new(  # noqa: PLR0913 - what a person may say of a task
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder with your program.")],
    *,
    metric: Annotated[
        str,
        typer.Option("--metric", metavar="NAME", help="The number that the program prints. Left out: run it and look."),
    ] = "",
    direction: Annotated[
        Literal["minimize", "maximize"] | None,
        typer.Option("--direction", help="Which values are better. Left out: by the metric's name."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=1, max=86_400, help="How long a run may take. Left out: twice the longer run."),
    ] = None,
    command: Annotated[
        str, typer.Option("--command", metavar="LINE", help="What runs the program. Left out: by its files.")
    ] = "",
    build: Annotated[
        str, typer.Option("--build", metavar="LINE", help="What builds it before. Left out: by its files.")
    ] = "",
    edit: Annotated[
        list[str], typer.Option("--edit", metavar="FILE", help="A file that may change; repeatable. Left out: by name.")
    ] = [],  # noqa: B006 - typer's way to say that it may be given any number of times
    venv: Annotated[
        str, typer.Option("--venv", metavar="PATH", help="A Python environment that runs it. Left out: the node's own.")
    ] = "",
    mount: Annotated[
        list[str],
        typer.Option("--mount", metavar="PATH", help="What runs may read, as ~/data; repeatable."),
    ] = [],  # noqa: B006 - as above
    once: Annotated[bool, typer.Option("--once", help="Run the program once, so no noise is measured.")] = False,
    referee: Annotated[
        Artifact | None,
        typer.Option("--referee", help="Have a fixed file measure what the program leaves, outside of the program."),
    ] = None,
    copies: Annotated[bool, typer.Option("--new", help="Make the folder, with a copy of the shipped task.")] = False,
    json: Json = False,
) -> None:
    """Make a task of the program in a folder: find its number and write task.toml.

    With --new it is a new folder, with a copy of the shipped task. With --referee the number is measured outside of the
    program, by files with marked places that run at once with a toy; with both the program is a toy, too.
    """
    if not folder:  # a variable that a script did not set
        raise UsageError("“” names no folder", hint="for the folder here: autoresearch task new .")
    place, words = typed_path(folder).absolute(), f"autoresearch task new {shlex.quote(folder)}"
    if place.exists() and not place.is_dir():
        raise UsageError(
            f"{place} is not a folder", hint=f"give its folder: autoresearch task new {shlex.quote(str(place.parent))}"
        )
    if os.path.lexists(place / MANIFEST):
        raise Refused(f"{place / MANIFEST} exists already", hint="edit it, or move it away first")
    if copies and is_taken(place):
        raise UsageError(f"{place} holds something already", hint=f"its program becomes a task without --new: {words}")
    if is_taken(place):
        environment = str(typed_path(venv).absolute()) if venv else ""
        options = TaskOptions(
            metric,
            direction,
            seconds,
            command,
            build,
            tuple(edit),
            once,
            environment,
            [mount_of(name) for name in mount],
            referee,
        )
        describe_program(place, options, new_task_context(json=json))
    elif command or build or edit:
        raise UsageError(f"{place} has no program that {command or build or edit[0]} could be", hint="give its folder")
    elif copies and referee:
        make_toy(place, TaskOptions(metric, direction, seconds, artifact=referee), new_task_context(json=json))
    elif copies:
        copy_task(shipped_task(), place)
    else:
        what = f"{place} is empty" if place.exists() else f"there is no folder {place}"
        near = get_close_matches(place.name, _folders_beside(place), n=1)
        suggestion = f"did you mean {place.with_name(near[0])}? " if near and not place.exists() else ""
        raise NotFound(
            what,
            hint=f"{suggestion}give the folder with your program; or for a copy of the shipped task: {words} --new",
        )
    task = load_task(place)
    answer, left = describe(task), _for_agents(task)
    if json:
        print_json(answer)
        return
    unnamed = task.name == UNNAMED and not name_of_task(place)
    say(f"{place} is a task: {answer.metric}, {answer.direction}{_NO_NAME if unnamed else ''}")
    names = [constant.name for constant in answer.search]
    say(
        f"the search can change {', '.join(names[:6])}{' …' if len(names) > 6 else ''}"
        if names
        else str(nothing_to_change(task.program.decode()))
    )
    _say_all(left)
    typed = shlex.quote(folder)
    if referee:
        say(f"→ write yours at the marked places, then: autoresearch task pin {typed} && autoresearch run {typed}")
    else:
        say(f"→ look at {place / 'task.toml'}, then: autoresearch run {typed}")


def _folders_beside(place: Path) -> list[str]:
    """The names of the folders beside one; none where that can't be said."""
    try:
        return [entry.name for entry in place.parent.iterdir() if entry.is_dir()]
    except OSError:
        return []


@app.command(
    "task show",
    ("autoresearch task show", "the task that this node works on"),
    ("autoresearch task show ~/my-task", "is this folder a task, and with which rules?"),
    ("autoresearch task show moons", "one that ships or is published, by its name"),
    see="task new, run, best",
)
def show(
    folder: NamedTask = "",
) -> Answered:
    """What a task measures, what a run may use, which files are fixed, and which constants the search changes."""
    task = load_task(named_folder(folder) if folder else home.task_folder(""))
    from autoresearch.ask import questions
    from autoresearch.ask.requests import OfTask

    answer = describe(task)
    with suppress(NotFound):  # nobody published it
        sentence = home.ask(questions.attacks, OfTask(task=answer.digest)).sentence
        answer = msgspec.structs.replace(answer, attacked=sentence)
    yield answer
    print_labelled(_lines(answer, task))
    try:
        ceiling().check(task)
        check_reaches(task.folder, reaches_of(task), home.paths().allowed)
    except (CannotRunHere, Refused) as error:
        say(f"{error}")
        say(f"→ {error.hint}")
    else:
        say(f"→ autoresearch run {shlex.quote(answer.folder)}")


@app.command(
    "task pin",
    ("autoresearch task pin .", "from now on your edits of the program are runs of this task"),
    ("autoresearch task pin ~/my-task", "the same for another folder"),
    ("autoresearch task pin . --json | jq -r .digest", "its identity"),
    see="task new, run, run propose",
)
def pin(folder: Folder = "") -> Answered:
    """Fix the program in a task folder as the task's baseline, so that an edit is a run and not another task.

    The files under [harness] are pinned as they are now.
    """
    place = home.task_folder(folder)
    changed = pin_fixed_files(place)
    answer = describe(pin_baseline(place))
    yield answer
    if changed:
        say(f"pinned anew, as they are now: {', '.join(changed)}")
    files = " and ".join(answer.edit)
    say(f"{answer.folder}/task.toml pins the {files} there as its baseline")
    typed = folder and shlex.quote(folder)
    say(f"→ edit {files}, then: autoresearch run {typed}".rstrip())
    if read_report(Path(answer.folder), answer.digest) is None:
        say(f"→ can it be cheated? autoresearch task attack {typed}".rstrip())


@app.command(
    "task list",
    ("autoresearch task list", "all tasks, those with the most runs first"),
    ("autoresearch task list | cut -f1", "their names"),
    ("autoresearch task list --all", "the archived ones too"),
    see="task get, task archive, work, best",
)
def list_tasks(
    *,
    all_tasks: Annotated[bool, typer.Option("--all", help="The archived ones too.")] = False,
    hidden: Hidden = False,
) -> Answered:
    """The tasks that are published on this network, and the best value of each; not those that you archived."""
    from autoresearch.ask import questions
    from autoresearch.ask.requests import TasksOf
    from autoresearch.face.columns.runs import TASK_COLUMNS

    answer = home.ask(questions.tasks, TasksOf(archived=all_tasks, hidden=hidden))
    archived = not all_tasks and bool(chosen(home.paths().home_local, Choice.ARCHIVED))
    yield answer
    print_list(TASK_COLUMNS, answer.tasks)
    say_hidden(answer.hidden, "task")
    if answer.tasks or not archived:
        say("→ autoresearch work TASK" if answer.tasks else f"there is no task yet → {home.next_run()}")
    else:
        say("→ all tasks are archived: autoresearch task list --all")


app.command(
    "task archive",
    ("autoresearch task archive moons", "out of lists, completion and work, on this machine"),
    ("autoresearch task list --all", "all tasks, also those that are archived"),
    ("autoresearch task restore moons", "have it back"),
    see="task restore, task list, work",
)(archive)
app.command(
    "task restore",
    ("autoresearch task restore moons", "by its name"),
    ("autoresearch task restore 7449108f2d37", "or by the beginning of its digest"),
    ("autoresearch task restore moons --json", "the same for a program"),
    see="task archive, task list, work",
)(restore)


@app.command(
    "task get",
    ("autoresearch task get moons ~/moons", "by its name, into a new folder"),
    ("autoresearch task get moons ~/best --run @", "with the best program as the start of your edit"),
    ("autoresearch task get moons --json | jq -r .folder", "the same for a program"),
    see="task list, run, work",
)
def get(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TASK", help="A task's name or the beginning of its digest.", autocompletion=complete_task
        ),
    ],
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A new folder. Left out: the task's name, here.")] = "",
    *,
    run: Annotated[
        str, typer.Option("--run", metavar="ID", help="Begin with the program of this run, @ for the best one.")
    ] = "",
) -> Answered:
    """Write a task as a folder to work in: task.toml, the fixed files, and the program, which is yours to change."""
    place, start = get_task(name, folder, run)
    task = load_task(place)
    answer, left = describe(task), _for_agents(task)
    yield answer
    say(f"{place} is the task {answer.name}{start}")
    _say_all(left)
    files = " and ".join(str(place / name) for name in answer.edit)
    say(f"→ edit {files}, then: autoresearch run {shlex.quote(folder or answer.name)} --hypothesis '…'")


app.command(
    "task lock",
    ("autoresearch task lock .", "from requirements.in: versions and hashes, pinned in task.toml"),
    ("PIP_INDEX_URL=https://my-index/simple autoresearch task lock .", "from an index of your own"),
    ("autoresearch task lock . --json | jq -r .packages[]", "what was locked"),
    see="task allow, node doctor task, task show",
)(packages.lock)
app.command(
    "task allow",
    ("autoresearch task allow gpt-small", "look at its packages, then install them"),
    ("autoresearch task allow ~/cloned", "look at what it reaches outside of its folder, then let it"),
    ("autoresearch task allow gpt-small --yes --json | jq .installed", "the same for a program"),
    see="task lock, node doctor task, work --allow-packages",
)(packages.allow_task)


def _for_agents(task: Task) -> list[str]:
    """Write the files for coding agents into a task's folder; what to say of it."""
    from autoresearch_cli.acts.edits import written
    from autoresearch_cli.local_log import open_desk

    with open_desk() as desk:
        left = written(desk, task)
    return left or ["AGENTS.md there is for coding agents, history.md says what is known of the task"]


def _say_all(lines: list[str]) -> None:
    for line in lines:
        say(line)


def ceiling() -> Ceiling:
    """What this machine allows a run of any task."""
    from autoresearch.run.bench import Ceiling

    return Ceiling.of(home.settings().work)


def describe(task: Task) -> TaskAnswer:
    """A task as an answer."""
    patches = Patches(command_settings=settings_in(task.recipe.command), declared=declared_in(task))
    written = constants(task.baseline.decode()) or constants(task.program.decode())
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
        noise_runs=task.metric.noise_runs,
        budget_unit=task.budget.unit,
        budget=task.budget.amount,
        limits=msgspec.to_builtins(task.limits),
        ceiling=asdict(ceiling()),
        mounts=dict(task.mounts),
        inputs=[described(place, entry) for place, entry in task.inputs.items()],
        packages=[f"{package.name}=={package.version}" for package in task.packages],
        venv=task.python.venv if task.python else "",
        edit=list(task.recipe.edit),
        build=task.recipe.build,
        command=task.recipe.command,
        evaluator=task.evaluator.command if task.evaluator else "",
        artifact=task.evaluator.artifact if task.evaluator else "",
        search=[
            ConstantAnswer(name=constant.name, value=constant.value, range=str(constant.range))
            for constant in map(patches.commented, written.values())
            if constant.range and not patches.gives(constant.name)
        ],
        files=[f"{name} {hashlib.sha256(content).hexdigest()}" for name, content in task.harness.items()],
    )


NO_NOISE = (
    "not stated, so a change needs three verifiers, not two; autoresearch run {} --seeds 5 measures it, "
    "and metric.noise in task.toml states it: that is another task"
)


def _lines(answer: TaskAnswer, task: Task) -> list[tuple[str, str]]:
    measured = f"{answer.metric}, {answer.direction}, measured by {MEASURED_BY[answer.metric_source]}"
    bounds = [] if answer.floor is None else [f"floor {value(answer.floor)}"]
    if answer.noise is not None:
        runs = f" by {counted(answer.noise_runs, 'run')} only" if answer.noise_runs else ""
        bounds.append(f"noise {value(answer.noise)}{runs}")
    return [
        ("task", answer.name),
        ("about", answer.summary),
        ("folder", answer.folder),
        ("digest", answer.digest),
        *((("build", answer.build),) if answer.build else ()),
        ("runs", answer.command),
        ("may change", ", ".join(answer.edit)),
        ("metric", " · ".join([measured, *bounds])),
        *((("noise", NO_NOISE.format(shlex.quote(answer.folder))),) if answer.noise is None else ()),
        *((("evaluator", f"{answer.evaluator}, reads {answer.artifact}"),) if answer.evaluator else ()),
        ("attacked", attacked(task.folder, task.digest.hex())),
        *((("reports", answer.attacked),) if answer.attacked else ()),
        ("budget", budget_words(answer.budget, answer.budget_unit)),
        ("limits", _amounts(answer.limits)),
        ("allowed here", _amounts(answer.ceiling)),
        *(("reads", f"{folder} ({name})") for name, folder in answer.mounts.items()),
        *(("reads", entry) for entry in answer.inputs),
        *((("packages", ", ".join(answer.packages)),) if answer.packages else ()),
        *((("python", answer.venv),) if answer.venv else ()),
        *(("fixed", file) for file in answer.files),
        *(("searched", f"{constant.name} = {constant.value}: {constant.range}") for constant in answer.search),
        *(() if answer.search else [("searched", str(nothing_to_change(task.program.decode())))]),
    ]


def _amounts(limits: Mapping[str, float]) -> str:
    amounts = [f"{name} {limit:.10g}" for name, limit in limits.items() if not isinstance(limit, bool)]
    return ", ".join([*amounts, *(["on graphics cards alone"] if limits.get("card") else [])])
