"""One run: what changed, who measured it, what came of it; its diff and its log as parts that come after it."""

from __future__ import annotations

from aiohttp import web

from autoresearch.api import Difference, OfTask, OneRecord, RunView, operations
from autoresearch.errors import AutoresearchError, NotFound
from autoresearch.pages import changed_program, log_tail, run_content
from autoresearch_daemon.pages.asking import Asking


async def run(asking: Asking) -> web.Response:
    """The page of a run. What has to come from other nodes is loaded by the page itself."""
    shown = await asking.ask(operations.RUN, asking.parameters(OneRecord))
    found = shown.run
    assert found is not None  # else the operation refuses it
    asking.about_task(found.task)
    context = await asking.found(operations.RUN_CONTEXT, OneRecord(id=found.id))  # None where it was withdrawn
    effects = await asking.found(operations.EFFECTS, OfTask(task=found.task))
    parent = await asking.found(operations.RUN, OneRecord(id=found.parent)) if found.parent else None
    task = await asking.task_status()
    values = run_content(
        shown, context=context, effects=effects, parent=parent, task=task, me=asking.status().participant.key
    )
    return await asking.render("run.html", "run", **values)


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
