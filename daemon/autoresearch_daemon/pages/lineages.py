"""The way from the baseline to a run, and the child runs beside it as a part that is loaded on demand."""

from __future__ import annotations

from aiohttp import web

from autoresearch.api import OfTask, OneRecord, operations
from autoresearch.api.parameters import Reference
from autoresearch.errors import NotFound
from autoresearch.pages import lineage_content
from autoresearch.records import parse_id, short_id
from autoresearch_daemon.pages.asking import Asking

BEST = "@"


class LineageOf(OfTask, frozen=True, kw_only=True):
    """Of which run."""

    of: Reference = BEST


class BranchesOf(OfTask, frozen=True, kw_only=True):
    """The child runs of which run, without the one that its lineage goes on with."""

    of: Reference
    but: str = ""


async def lineage(asking: Asking) -> web.Response:
    """The steps from the baseline to a run; without a name to the best one."""
    asked = asking.parameters(LineageOf)
    try:
        path = await asking.ask(operations.PATH, OneRecord(id=asked.of, task=asked.task))
    except NotFound:
        if asked.of != BEST:
            raise
        return await asking.render("lineage.html", "lineage", of="")
    asking.about_task(path.task.digest)
    return await asking.render("lineage.html", "lineage", **lineage_content(path))


async def branches(asking: Asking) -> web.Response:
    """The other child runs of a step, the best first."""
    asked = asking.parameters(BranchesOf)
    context = await asking.ask(operations.RUN_CONTEXT, OneRecord(id=asked.of, task=asked.task))
    children = [child for child in context.children if not asked.but or short_id(parse_id(child.id)) != asked.but]
    total = context.all_children.total - (len(context.children) - len(children))
    return await asking.render_part("branches.html", "lineage", of=context.row.id, children=children, total=total)
