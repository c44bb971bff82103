"""``best``: the best program of a task; ``top``: its leaderboard; ``effects``: what each setting did to the metric.

``credit``: what participants have done.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from autoresearch.ask import operations
from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.people.evidence import credit_answer
from autoresearch.ask.requests import OfTask
from autoresearch.ask.runs.answers import BestAnswer, TopAnswer
from autoresearch.ask.runs.boards import top_answer
from autoresearch.ask.runs.diffs import effects_answer
from autoresearch.ask.runs.headlines import with_headlines
from autoresearch.errors import DaemonNotRunning, NoTaskYet, NotFound
from autoresearch.text import counted
from autoresearch_cli import here
from autoresearch_cli.catalogue import Json, Task, command_app, complete_task, examples
from autoresearch_cli.models import TextAnswer
from autoresearch_cli.reading import NotebookReader, open_notebook
from autoresearch_cli.rendering.boards import explained, other_tasks, print_best, print_top
from autoresearch_cli.rendering.credit import how_to_check, print_credit, print_effects, print_participant
from autoresearch_cli.rendering.output import paged, print_exactly, print_json, say

app = command_app()


@app.command(
    "best",
    epilog=examples(
        ("autoresearch best", "the best run, and how far the floor is"),
        ("autoresearch best --code > train.py", "its source"),
        ("autoresearch best --task grammar --json", "of one task, for a program"),
        see="top, show, run lineage, diff",
    ),
)
def best(
    *,
    task: Task = "",
    code: Annotated[bool, typer.Option("--code", help="Print its program, and nothing else.")] = False,
    json: Json = False,
) -> None:
    """The best program of a task so far: the best confirmed run, and the best provisional and reported ones."""
    if not code:
        _report(_answer(task), json=json, named=bool(task))
        return
    from autoresearch.ask.runs.boards import task_status
    from autoresearch_cli.reading import open_notebook

    with open_notebook() as notebook:
        program = task_status(notebook.log, notebook.task(task), author=notebook.me).best
        if program is None:
            raise NotFound("nothing is measured yet", hint="autoresearch up --work")
        source = notebook.source(program.id)
    if json:
        print_json(TextAnswer(id=program.id, what="code", text=source))
    else:
        with paged():
            print_exactly(source)


def _answer(task: str) -> BestAnswer:
    """What the daemon says; without one, what the log holds."""
    try:
        return here.client().ask(operations.BEST, OfTask(task=task or None))
    except DaemonNotRunning:
        if here.is_new() and not task:
            raise NoTaskYet from None
    # What reads a log takes longer to load than all the rest.
    from autoresearch.ask.runs.boards import best_answer
    from autoresearch.ask.runs.headlines import with_headlines
    from autoresearch_cli.reading import open_notebook

    with open_notebook() as notebook:
        found = best_answer(notebook.log, notebook.task(task), author=notebook.me, archived=notebook.archived)
        return with_headlines(notebook.log, notebook.blobs, found, me=notebook.me)


def _report(answer: BestAnswer, *, json: bool, named: bool) -> None:
    if json:
        print_json(answer)
        return
    print_best(answer, now_ms=here.now_ms())
    shown = (answer.confirmed, answer.provisional, answer.reported, answer.task.best)
    for line in explained([program for program in shown if program]):
        say(line)
    if others := other_tasks(answer.other_tasks):
        say(others)
    at = f" --task {answer.task.name}" if named else ""
    say(f"→ autoresearch best --code{at}, autoresearch run lineage @{at}, autoresearch diff @{at}")


@app.command(
    "top",
    epilog=examples(
        ("autoresearch top", "the twenty best of the task here"),
        ("autoresearch top --task grammar -n 5", "the five best of one task"),
        (
            "autoresearch top --task corridor --component policy/q_table",
            "the agents with this policy",
        ),
        see="best, run lineage, show",
    ),
)
def top(
    *,
    task: Task = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=200, help="How many.")] = 20,
    component: Annotated[
        str, typer.Option("--component", metavar="TYPE/NAME", help="Only agents that use it; the places stay.")
    ] = "",
    json: Json = False,
) -> None:
    """The leaderboard: confirmed runs ranked by the values that verifiers measured, then reported ones.

    Marks stand beside participants, copy and re-test before a run's title. They are explained below the table.
    """
    with open_notebook(task) as notebook:
        found, archived = notebook.task(), notebook.archived
        if component:
            answer = _with_component(notebook, found, component, limit)
        else:
            answer = top_answer(notebook.log, found, limit=limit, author=notebook.me, archived=archived)
        answer = with_headlines(notebook.log, notebook.blobs, answer, me=notebook.me)
    if json:
        print_json(answer)
        return
    used = f", agents that use {component}" if component else ""
    say(f"the task {answer.task.name}: {answer.task.metric}, {answer.task.direction}{used}")
    with paged():
        print_top(answer, now_ms=here.now_ms())
    for line in explained(answer.programs):
        say(line)
    if answer.note and answer.programs:
        say(answer.note)
    if others := other_tasks(answer.other_tasks):
        say(others)
    if answer.programs:
        say("→ autoresearch show ID, autoresearch diff ID")
    else:
        say(f"→ no agent here uses {component}" if component else "→ nothing is measured yet: autoresearch up --work")


def _with_component(notebook: NotebookReader, task: FoundTask, component: str, limit: int) -> TopAnswer:
    """The leaderboard of the agents that use a component; each keeps its place."""
    from autoresearch.project.exchange.fetching import MOST_ROWS, component_key, rows_with_component, unknown_programs

    key = component_key(component)
    answer = top_answer(notebook.log, task, limit=MOST_ROWS, author=notebook.me, archived=notebook.archived)
    rows = rows_with_component(notebook.log, notebook.blobs, answer.programs, key)
    if unknown := unknown_programs(notebook.log, notebook.blobs, answer.programs):
        say(f"{counted(unknown, 'program')} of this leaderboard are not on this machine yet, and left out")
    return msgspec.structs.replace(answer, programs=rows[:limit])


@app.command(
    "task effects",
    epilog=examples(
        ("autoresearch task effects", "on the task worked on last"),
        ("autoresearch task effects --task grammar", "on one task"),
        ("autoresearch task effects --json", "the same for a program"),
        see="top, run lineage, note ask",
    ),
)
def effects(*, task: Task = "", json: Json = False) -> None:
    """What each setting of a task did to the metric, in pairs of a run and its parent."""
    with open_notebook(task) as notebook:
        found = notebook.task()
        answer = effects_answer(notebook.log, found, me=notebook.me)
    if json:
        print_json(answer)
        return
    if not answer.effects:
        say(f"no run on {found.name} differs from its parent in few settings yet → autoresearch work")
        return
    with paged():
        print_effects(answer, found.metric)
    say(f"what adding a part (+) or raising a setting did on {found.name}, the surest improvement first")
    say("→ autoresearch diff ID shows what a run changed")


@app.command(
    "network credit",
    epilog=examples(
        ("autoresearch network credit", "all participants, the most verified compute first"),
        ("autoresearch network credit me", "this participant, each fact with its records"),
        ("autoresearch network credit 3fa9 --json", "one participant for a program, with all record ids"),
        see="top, show, run evidence, node id",
    ),
)
def credit(
    participant: Annotated[
        str | None,
        typer.Argument(
            metavar="[PARTICIPANT]", help="me, the beginning of a key, or a name. Left out: all participants."
        ),
    ] = None,
    *,
    task: Annotated[
        str,
        typer.Option("--task", metavar="NAME", help="Only what was done on this task.", autocompletion=complete_task),
    ] = "",
    json: Json = False,
) -> None:
    """What participants have done: each fact with the records that show it. There are no points."""
    with open_notebook() as notebook:
        found = notebook.task(task) if task else None
        answer = credit_answer(notebook.log, participant, author=notebook.me, task=found)
    if json:
        print_json(answer)
        return
    if participant is not None:
        print_participant(answer)
        check = how_to_check(mark for row in answer.participants for mark in row.marks)
        say(f"→ {check or 'autoresearch show ID shows each record'}")
    else:
        print_credit(answer)
        say(
            "→ autoresearch network credit PARTICIPANT lists the records"
            if answer.participants
            else "→ nobody has published a run yet: autoresearch up --work"
        )
