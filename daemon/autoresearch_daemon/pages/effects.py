"""The pages that show all runs of a task at once: the effects of its settings, the family tree.

Their data are arrays at an address of their own.
"""

from __future__ import annotations

from aiohttp import web

from autoresearch.ask import questions
from autoresearch.ask.requests import ColumnsOf, OfTask, PathOf, Reference, SettingName
from autoresearch.errors import NotFound
from autoresearch.face.pages.effects import effects_content, packed
from autoresearch.text import MAXIMIZE
from autoresearch_daemon.pages.node import Asking


class EffectsOf(OfTask, frozen=True, kw_only=True):
    """Of which task, and which setting is shown against the value: left out, the most important one."""

    setting: SettingName = ""


async def effects_page(asking: Asking) -> web.Response:
    """What each setting of a task did, and one of them against the value of all runs."""
    asked = asking.parameters(EffectsOf)
    try:
        answer = await asking.ask(questions.effects, OfTask(task=asked.task))
    except NotFound:
        if asked.task:
            raise
        return await asking.render("effects.html", "effects", ranking=None)
    task = await asking.task_status()
    maximize = task is not None and task.direction == MAXIMIZE
    values = effects_content(answer, maximize=maximize, chosen=asked.setting)
    return await asking.render("effects.html", "effects", **values)


# The table below the tree has so many steps of the way that is marked in it.
STEPS_SHOWN = 16
BEST = "@"


class TreeOf(OfTask, frozen=True, kw_only=True):
    """The way to which run is marked: left out, to the best one."""

    of: Reference = BEST


async def tree_page(asking: Asking) -> web.Response:
    """All runs of a task, each joined to its parent."""
    asked = asking.parameters(TreeOf)
    try:
        path = await asking.ask(questions.path, PathOf(id=asked.of, task=asked.task, steps=STEPS_SHOWN, branches=False))
    except NotFound:
        if asked.of != BEST:
            raise
        return await asking.render("tree.html", "tree", path=None)
    asking.about_task(path.task.digest)
    return await asking.render("tree.html", "tree", path=path)


async def columns_page(asking: Asking) -> web.Response:
    """All runs of a task as arrays."""
    answer = await asking.ask(questions.columns, asking.parameters(ColumnsOf))
    body = await asking.in_thread(lambda: packed(answer))
    return web.Response(body=body, content_type="application/octet-stream")
