"""``best``: the best program of a task; ``top``: its leaderboard; ``effects``: what each setting did to the metric.

``credit``: what participants have done.
"""

from __future__ import annotations

import math
from typing import Annotated

import msgspec
import typer

from autoresearch.ask import questions
from autoresearch.ask.requests import OfTask, OfTaskAndParticipant, OneRecord, TopOf
from autoresearch.ask.runs.answers import BestAnswer, ComponentTopAnswer
from autoresearch.errors import NoTaskYet, NotFound
from autoresearch.face.columns.runs import effect_columns, line_words
from autoresearch.text import counted
from autoresearch_cli import home
from autoresearch_cli.catalogue import Answered, CommandApp, Hidden, Json, Task, complete_task
from autoresearch_cli.models import TextAnswer
from autoresearch_cli.rendering.boards import explained, other_tasks, print_best, print_top
from autoresearch_cli.rendering.credit import how_to_check, print_credit, print_participant
from autoresearch_cli.rendering.output import is_attended, paged, print_exactly, print_json, print_list, say, say_hidden

app = CommandApp()


@app.command(
    "best",
    ("autoresearch best", "the best run, and how far the floor is"),
    ("autoresearch best --code > train.py", "its source"),
    ("autoresearch best moons --json", "of one task, for a program"),
    see="top, show, run lineage, diff",
)
def best(
    *,
    task: Task = "",
    code: Annotated[bool, typer.Option("--code", help="Print its program, and nothing else.")] = False,
) -> Answered:
    """The best program of a task so far: the best confirmed run, and the best provisional and reported ones."""
    if home.is_new() and not task:
        raise NoTaskYet
    answer = home.ask(questions.best, OfTask(task=home.task_meant(task)))
    if not code:
        yield from _report(answer, named=bool(task))
        return
    if answer.task.best is None:
        raise NotFound("nothing is measured yet", hint=home.next_run())
    program = home.ask(questions.source, OneRecord(id=answer.task.best.id))
    yield TextAnswer(id=answer.task.best.id, what="code", text=str(program))
    with paged():
        print_exactly(program)


def _report(answer: BestAnswer, *, named: bool) -> Answered:
    yield answer
    print_best(answer, now_ms=home.now_ms())
    programs = (answer.confirmed, answer.provisional, answer.reported, answer.task.best)
    for line in explained([program for program in programs if program]):
        say(line)
    if others := other_tasks(answer.other_tasks):
        say(others)
    if answer.task.best is None:
        say(f"→ {home.next_run()}")
        return
    at = f" --task {answer.task.name}" if named else ""
    say(f"→ autoresearch best --code{at}, autoresearch run lineage @{at}, autoresearch diff @{at}")


@app.command(
    "top",
    ("autoresearch top moons -n 5", "the five best of one task"),
    (
        "autoresearch top --component policy/q_table",
        "the agents with this policy, in all environments",
    ),
    ("autoresearch top --task corridor --budget 300", "agents that were trained for at most 300 episodes"),
    see="best, run lineage, show",
)
def top(
    *,
    task: Task = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=200, help="How many.")] = 20,
    component: Annotated[
        str, typer.Option("--component", metavar="TYPE/NAME", help="Only agents that use it; the places stay.")
    ] = "",
    budget: Annotated[
        float | None, typer.Option("--budget", min=0, max=1e18, metavar="N", help="Only what had at most this budget.")
    ] = None,
    hidden: Hidden = False,
    json: Json = False,
) -> None:
    """The leaderboard: confirmed runs ranked by the values that verifiers measured, then reported ones.

    On a terminal it is a screen that follows the node: arrows choose a run, Enter shows it, d its diff, p pauses, q
    ends. `--no-pager` prints the text that a pipe gets. Marks stand beside participants, copy and re-test before a
    run's title. They are explained below the table.
    """
    if component:
        _component_top(task, component, limit, budget, json=json)
        return
    question = TopOf(task=home.task_meant(task), limit=limit, budget=budget, hidden=hidden)
    if is_attended() and not json:
        from autoresearch_cli.acts.live_top import show_live
        from autoresearch_cli.commands.show import diff, show

        show_live(question, {"\n": show, "\r": show, "d": diff})
        return
    answer = home.ask(questions.top, question)
    if json:
        print_json(answer)
        return
    say(f"the task {answer.task.name}: {answer.task.metric}, {answer.task.direction}")
    with paged():
        print_top(answer, now_ms=home.now_ms())
    say_hidden(answer.hidden, "run")
    if compared := line_words(answer.lines) or answer.lines_note:
        say(compared)
    for line in explained(answer.programs):
        say(line)
    if answer.note and answer.programs:
        say(answer.note)
    if others := other_tasks(answer.other_tasks):
        say(others)
    if answer.programs:
        say("→ autoresearch show ID, autoresearch diff ID")
    else:
        say(f"nothing is measured yet → {home.next_run()}")


def _component_top(task: str, component: str, limit: int, budget: float | None, *, json: bool) -> None:
    """The agents that use a component, of each environment's leaderboard; of a ``task`` that is named its own."""
    from autoresearch.project.exchange.fetching import boards_with, component_key
    from autoresearch_cli.local_log import open_desk

    key, most = component_key(component), math.inf if budget is None else budget
    with open_desk() as desk:
        digest = desk.task(task).digest.hex() if task else ""
        boards, unknown = boards_with(desk, lambda used: key in used)
    boards = [
        msgspec.structs.replace(board, programs=[row for row in board.programs if row.budget <= most][:limit])
        for board in boards
        if digest in ("", board.task.digest)
    ]
    if json:
        print_json(ComponentTopAnswer(component=component, boards=boards, unknown=unknown))
        return
    with paged():
        for board in boards:
            say(f"the task {board.task.name}: {board.task.metric}, {board.task.direction}")
            print_top(board, now_ms=home.now_ms())
    if unknown:
        say(f"{counted(unknown, 'program')} of agents are not on this machine yet, and left out")
    say("→ autoresearch show ID, autoresearch get ID" if boards else f"→ no agent here uses {component}")


@app.command(
    "task effects",
    ("autoresearch task effects", "on the task of this folder, or worked on last"),
    ("autoresearch task effects moons", "on one task"),
    ("autoresearch task effects --json", "the same for a program"),
    see="top, run lineage, note ask",
)
def effects(*, task: Task = "") -> Answered:
    """What each setting of a task did to the metric, in pairs of a run and its parent."""
    answer = home.ask(questions.effects, OfTask(task=home.task_meant(task)))
    yield answer
    for line in (*answer.notes, *(f"dead end: {end.sentence}" for end in answer.dead_ends)):
        say(line)
    if not answer.effects:
        say(f"no run on {answer.task} differs from its parent in few settings yet → autoresearch work")
        return
    with paged():
        print_list(effect_columns(answer.metric), answer.effects)
    say(f"what adding a part (+) or raising a setting did on {answer.task}, the surest improvement first")
    say("→ autoresearch diff ID shows what a run changed")


@app.command(
    "network credit",
    ("autoresearch network credit", "all participants, the most verified compute first"),
    ("autoresearch network credit me", "this participant, each fact with its records"),
    ("autoresearch network credit 3fa9 --json", "one participant for a program, with the newest record ids"),
    see="top, show, run evidence, node id",
)
def credit(
    participant: Annotated[
        str | None,
        typer.Argument(
            metavar="PARTICIPANT", help="me, the beginning of a key, or a name. Left out: all participants."
        ),
    ] = None,
    *,
    task: Annotated[
        str,
        typer.Option("--task", metavar="NAME", help="Only what was done on this task.", autocompletion=complete_task),
    ] = "",
    hidden: Hidden = False,
) -> Answered:
    """What participants have done: each fact with the records that show it. There are no points."""
    answer = home.ask(questions.credit, OfTaskAndParticipant(participant=participant, task=task or None, hidden=hidden))
    yield answer
    if participant is not None:
        print_participant(answer)
        check = how_to_check(mark for row in answer.participants for mark in row.marks)
        say(f"→ {check or 'autoresearch show ID shows each record'}")
    else:
        print_credit(answer)
        say_hidden(answer.hidden, "participant")
        say(
            "→ autoresearch network credit PARTICIPANT lists the records"
            if answer.participants
            else f"nobody has published a run yet → {home.next_run()}"
        )
