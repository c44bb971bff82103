"""Progress: how far the task has come, every run in a chart and in a table."""

from __future__ import annotations

import msgspec
from aiohttp import web

from autoresearch.api import OfTask, OneRecord, operations
from autoresearch.errors import NotFound
from autoresearch.pages import ProgressContent, Query, best_program, chart_data, no_progress
from autoresearch_daemon.pages.asking import Asking


async def progress(asking: Asking) -> web.Response:
    """The page, or the part with its table where htmx asks for that."""
    query = Query.read(asking.request.query.items())
    if asking.is_part:
        # The address that a form makes says what is usual anyway.
        asking.headers["HX-Push-Url"] = query.address()
        answer = await asking.ask(operations.RUNS, query.runs())
        return await asking.render("progress_rows.html", "progress", query=query, answer=answer)
    try:
        values = (await _content(asking, query)).values()
    except NotFound:
        if asking.task:
            raise
        values = no_progress(query)
    return await asking.render("progress.html", "progress", **values)


async def chart(asking: Asking) -> web.Response:
    """The chart's data, with the filters of the page and for a part of its axis."""
    query = Query.read(asking.request.query.items())
    answer = await asking.ask(operations.PROGRESS, query.found_progress())
    body = await asking.in_thread(lambda: msgspec.json.encode(chart_data(answer, query)))
    response = web.Response(body=body, content_type="application/json")
    response.enable_compression()
    return response


async def card(asking: Asking) -> web.Response:
    """What the chart shows of a run beside the mark."""
    run = OneRecord(id=asking.request.match_info["id"], task=asking.task)
    row = (await asking.ask(operations.RUN_CONTEXT, run)).row
    return await asking.render("card.html", "progress", row=row)


async def _content(asking: Asking, query: Query) -> ProgressContent:
    of_task = OfTask(task=asking.task)
    best = await asking.ask(operations.BEST, of_task)
    program = best_program(best)
    runners = await asking.ask(operations.RUNNERS, of_task)
    return ProgressContent(
        query=query,
        runs=await asking.ask(operations.RUNS, query.runs()),
        progress=await asking.ask(operations.PROGRESS, query.all_progress()),
        newest=(await asking.ask(operations.RUNS, query.newest())).runs,
        best=best,
        best_row=(await asking.ask(operations.RUN_CONTEXT, OneRecord(id=program.id))).row if program else None,
        runners=runners.runners,
        settings=runners.settings,
    )
