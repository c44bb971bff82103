"""The pages that show all runs of a task at once: the effects of its settings, the family tree.

Their data are arrays at an address of their own.
"""

from __future__ import annotations

import gzip
import hashlib
from typing import Literal

from aiohttp import web

from autoresearch.ask import questions
from autoresearch.ask.requests import ColumnsOf, GroupsOf, OfTask, PathOf, Reference, RunsOf, SettingName, Where
from autoresearch.ask.runs.answers import RunsAnswer
from autoresearch.errors import NotFound
from autoresearch.face.pages.effects import effects_content, packed
from autoresearch.face.pages.groups import contour
from autoresearch.text import MAXIMIZE
from autoresearch_daemon.api.port import desk
from autoresearch_daemon.pages.node import Asking

RUNS_SHOWN = 20


class EffectsOf(OfTask, frozen=True, kw_only=True):
    """Of which task, which setting is shown against the value (left out: the most important one), which runs below.

    ``y`` is the axis of the value: all on a logarithm, or cut where the bulk of the runs ends. ``second`` is the
    setting that the first is shown with.
    """

    setting: SettingName = ""
    second: SettingName = ""
    where: Where = ""
    y: Literal["", "value", "log", "symlog"] = ""


async def effects_page(asking: Asking) -> web.Response:
    """What each setting of a task did, one of them against the value, and the runs that a choice of settings finds."""
    query = asking.parameters(EffectsOf)
    if asking.is_part:
        runs = await _best_runs(asking, query.where)
        return await asking.render("effects_runs.html", "effects", runs=runs, where=query.where)
    try:
        answer = await asking.ask(questions.effects, OfTask(task=query.task))
    except NotFound:
        if query.task:
            raise
        return await asking.render("effects.html", "effects", ranking=None, notes=[], dead_ends=[])
    task = await asking.task_status()
    maximize = task is not None and task.direction == MAXIMIZE
    others = (await asking.ask(questions.runners, OfTask(task=query.task))).settings
    values = effects_content(answer, maximize=maximize, chosen=query.setting, second=query.second, others=others)
    runs = await _best_runs(asking, query.where)
    return await asking.render("effects.html", "effects", runs=runs, where=query.where, y=query.y, **values)


async def _best_runs(asking: Asking, where: str) -> RunsAnswer:
    task = await asking.task_status()
    sort = "-value" if task is not None and task.direction == MAXIMIZE else "value"
    return await asking.ask(questions.runs, RunsOf(task=asking.task, where=where, sort=sort, size=RUNS_SHOWN))


class TwoSettings(OfTask, frozen=True, kw_only=True):
    """Which two settings of a task."""

    setting: SettingName
    second: SettingName


async def contour_page(asking: Asking) -> web.Response:
    """Two settings against each other: the median of the runs where both are so."""
    query = asking.parameters(TwoSettings)
    answer = await asking.ask(questions.groups, GroupsOf(task=query.task, setting=[query.setting, query.second]))
    return await asking.render_part("contour.html", "effects", contour=contour(answer))


# The table below the tree has so many steps of the way that is marked in it.
STEPS_SHOWN = 16
BEST = "@"


class TreeOf(OfTask, frozen=True, kw_only=True):
    """The way to which run is marked: left out, to the best one."""

    of: Reference = BEST


async def tree_page(asking: Asking) -> web.Response:
    """All runs of a task, each joined to its parent."""
    query = asking.parameters(TreeOf)
    try:
        path = await asking.ask(questions.path, PathOf(id=query.of, task=query.task, steps=STEPS_SHOWN, branches=False))
    except NotFound:
        if query.of != BEST:
            raise
        return await asking.render("tree.html", "tree", path=None)
    asking.about_task(path.task.digest)
    return await asking.render("tree.html", "tree", path=path)


async def columns_page(asking: Asking) -> web.Response:
    """All runs of a task as arrays, compressed quickly: another level gains a tenth and takes three times as long.

    A browser that has them already gets them again only after the log has changed.
    """
    log = desk(asking.request.app).log
    revision = await asking.in_thread(log.reader.revision)
    state = revision, log.trust, await asking.digest(), asking.request.query_string, asking.status().started_ms
    tag = f'"{hashlib.sha256(repr(state).encode()).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if asking.request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    answer = await asking.ask(questions.columns, asking.parameters(ColumnsOf))
    is_zipped = "gzip" in asking.request.headers.get("Accept-Encoding", "")

    def body() -> bytes:
        return gzip.compress(packed(answer), compresslevel=1, mtime=0) if is_zipped else packed(answer)

    headers |= {"Content-Encoding": "gzip"} if is_zipped else {}
    return web.Response(body=await asking.in_thread(body), content_type="application/octet-stream", headers=headers)
