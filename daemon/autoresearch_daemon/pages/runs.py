"""One run: what changed, who measured it, what came of it; its diff and its log as parts that come after it."""

from __future__ import annotations

from aiohttp import web

from autoresearch.api import Difference, OfTask, OneRecord, RunView, TaskStatus, operations
from autoresearch.errors import AutoresearchError, NotFound
from autoresearch.pages import bare_row, changed_program, curve_data, forest, log_tail, refuting
from autoresearch_daemon.pages.asking import Asking


async def run(asking: Asking) -> web.Response:
    """The page of a run. What has to come from other nodes is loaded by the page itself."""
    shown = await asking.ask(operations.RUN, asking.parameters(OneRecord))
    found, verification = shown.run, shown.verification
    assert found is not None  # else the operation refuses it
    assert verification is not None
    asking.about_task(found.task)
    context = await asking.found(operations.RUN_CONTEXT, OneRecord(id=found.id))  # None where it was withdrawn
    effects = await asking.found(operations.EFFECTS, OfTask(task=found.task))
    parent = await asking.found(operations.RUN, OneRecord(id=found.parent)) if found.parent else None
    task = await asking.task_status()
    value = found.value if verification.value is None else verification.value
    return await asking.render(
        "run.html",
        "run",
        shown=shown,
        row=context.row if context else bare_row(found, own=found.participant.key == asking.status().participant.key),
        parent=context.parent if context else None,
        context=context,
        picture=forest(found, verification, noise=task.noise if task else 0.0),
        refuting=refuting(found, verification),
        effects={one.name: one for one in effects.effects} if effects else None,
        program=None,
        curve=curve_data(found.curve, parent.run.curve if parent and parent.run else ()),
        closed=_closed(task, value),
    )


async def run_diff(asking: Asking) -> web.Response:
    """What a run changed against its parent. The two programs may have to come from other nodes."""
    shown = await asking.ask(operations.RUN, asking.parameters(OneRecord))
    assert shown.run is not None
    asking.about_task(shown.run.task)
    try:
        if shown.run.parent is None:
            raise NotFound("It has no parent: its program is the task’s baseline.")
        answer = await asking.ask(operations.DIFF, Difference(old=shown.run.parent, new=shown.run.id))
        program = await asking.in_thread(lambda: changed_program(answer.diff))
    except AutoresearchError as error:
        return await _part(asking, "run_diff.html", shown.run, sentence=str(error), hint=error.hint)
    return await _part(asking, "run_diff.html", shown.run, program=program, sentence="", hint="")


async def run_log(asking: Asking) -> web.Response:
    """The end of what a run printed. It may have to come from another node."""
    shown = await asking.ask(operations.RUN, asking.parameters(OneRecord))
    assert shown.run is not None
    asking.about_task(shown.run.task)
    try:
        text = await asking.ask(operations.TRAINING_LOG, OneRecord(id=shown.run.id))
        tail = await asking.in_thread(lambda: log_tail(text))
    except AutoresearchError as error:
        return await _part(asking, "run_log.html", shown.run, sentence=str(error), hint=error.hint)
    return await _part(asking, "run_log.html", shown.run, tail=tail, sentence="", hint="")


async def _part(asking: Asking, template: str, of: RunView, **values: object) -> web.Response:
    return await asking.render_part(template, "run", of=of.id, **values)


def _closed(task: TaskStatus | None, value: float | None) -> float | None:
    """The share of the way from the baseline to the floor; None where the task states no floor."""
    if task is None or task.baseline is None or task.floor is None or value is None or task.baseline == task.floor:
        return None
    return (task.baseline - value) / (task.baseline - task.floor)
