"""Progress: the page, its chart, what the chart shows of a run, and the runs of its table as files to take along."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import msgspec
from aiohttp import web

from autoresearch.ask import questions
from autoresearch.ask.requests import MAXIMUM_ROWS, OfTask, OneRecord, SinceOf, TimelineOf
from autoresearch.ask.runs.answers import GroupsAnswer, RunRow
from autoresearch.errors import NotFound, UsageError
from autoresearch.face.columns.column import Face, lines, short
from autoresearch.face.columns.runs import chosen_columns
from autoresearch.face.exports.tables import text_cell
from autoresearch.face.pages.boards import ProgressContent
from autoresearch.face.pages.chart import CurveData, Query, chart_data, curve_data, curve_of
from autoresearch.face.pages.chart_picture import chart_picture
from autoresearch.face.pages.groups import group_picture
from autoresearch.face.pages.run import has_rewards
from autoresearch.record.record import DAY_MS
from autoresearch.text import one_line
from autoresearch.words import LEADING_MARKS
from autoresearch_daemon.pages.node import Asking

# It has styles of its own, and nothing that runs or is loaded.
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


LABEL_CHARACTERS = 80


async def progress_page(asking: Asking) -> web.Response:
    """The page, or the part with its table where htmx asks for that."""
    query = Query.read(asking.request.query.items())
    if asking.is_part:
        # The address that a form makes says what is usual anyway.
        asking.headers["HX-Push-Url"] = query.address()
        try:
            answer = await asking.ask(questions.runs, query.runs())
            groups = await _groups(asking, query)
        except UsageError as error:  # a condition that is none, perhaps half typed
            return await asking.render("progress_refused.html", "progress", query=query, error=error)
        values = {"query": query, "answer": answer, "groups": group_picture(groups) if groups else None}
        return await asking.render("progress_rows.html", "progress", **values)
    try:
        values = (await _content(asking, query)).values()
    except NotFound:
        if asking.task:
            raise
        values = {"query": query, "answer": None}
    except UsageError as error:  # the form stays, with what was typed into it
        values = (await _content(asking, query.cleared().with_(group=""))).values() | {"query": query, "error": error}
    response = await asking.render("progress.html", "progress", **values)
    if "error" in values:
        response.set_status(web.HTTPBadRequest.status_code)
    return response


async def chart_page(asking: Asking) -> web.Response:
    """The chart's data, with the filters of the page and for a part of its axis."""
    query = Query.read(asking.request.query.items())
    answer = await asking.ask(questions.progress, query.found_progress())
    body = await asking.in_thread(lambda: msgspec.json.encode(chart_data(answer, query)))
    response = web.Response(body=body, content_type="application/json")
    response.enable_compression()
    return response


async def picture_page(asking: Asking) -> web.Response:
    """The chart as a picture, for a browser without scripts."""
    query = Query.read(asking.request.query.items())
    answer = await asking.ask(questions.progress, query.found_progress())
    text = await asking.in_thread(lambda: chart_picture(answer, query))
    response = web.Response(
        text=text, content_type="image/svg+xml", headers={"Content-Security-Policy": PICTURE_POLICY}
    )
    response.enable_compression()
    return response


async def curves_page(asking: Asking) -> web.Response:
    """The training curves of the runs in the table, the best marks on top."""
    rows = (await asking.ask(questions.runs, Query.read(asking.request.query.items()).curves())).runs
    task, curves, rewards, unit = await asking.task_status(), [], False, ""
    for row in sorted(rows, key=lambda row: row.mark in LEADING_MARKS):
        answer = await asking.ask(questions.run, OneRecord(id=row.id))
        assert answer.run is not None
        run, name = answer.run.run, short(row.id)
        look = "blue" if row.mark in LEADING_MARKS else "dot"
        curves.append(curve_of(run, look, label=one_line(f"{name} {row.headline}", LABEL_CHARACTERS), run_id=name))
        rewards, unit = rewards or has_rewards(run, task), answer.budget_unit
    data = curve_data(curves, rewards=rewards, unit=unit) or CurveData(curves=[])
    return web.Response(body=msgspec.json.encode(data), content_type="application/json")


# Of how much time the timeline is, by its name in the address; empty: of all.
SPANS = {"": 0, "day": DAY_MS, "week": 7 * DAY_MS}


class Span(OfTask, frozen=True, kw_only=True):
    """Of which task and how much time."""

    span: Literal["", "day", "week"] = ""


async def timeline_page(asking: Asking) -> web.Response:
    """Who worked on the task when."""
    query = asking.parameters(Span)
    answer = await asking.ask(questions.timeline, TimelineOf(task=query.task, last_ms=SPANS[query.span]))
    return await asking.render_part("timeline.html", "progress", answer=answer, span=query.span, spans=list(SPANS))


async def card_page(asking: Asking) -> web.Response:
    """What the chart shows of a run beside the mark."""
    run = OneRecord(id=asking.request.match_info["id"], task=asking.task)
    row = (await asking.ask(questions.run_context, run)).row
    return await asking.render("card.html", "progress", row=row)


async def _groups(asking: Asking, query: Query) -> GroupsAnswer | None:
    return await asking.ask(questions.groups, query.groups()) if query.group else None


async def _content(asking: Asking, query: Query) -> ProgressContent:
    of_task = OfTask(task=asking.task)
    best = await asking.ask(questions.best, of_task)
    program = best.task.best
    runners = await asking.ask(questions.runners, of_task)
    return ProgressContent(
        query=query,
        runs=await asking.ask(questions.runs, query.runs()),
        newest=(await asking.ask(questions.runs, query.newest())).runs,
        best=best,
        since=await asking.ask(questions.since, SinceOf(task=asking.task)),
        best_row=(await asking.ask(questions.run_context, OneRecord(id=program.id))).row if program else None,
        runners=runners.runners,
        settings=runners.settings,
        groups=await _groups(asking, query),
    )


async def runs_csv(asking: Asking) -> web.StreamResponse:
    """The runs that the page's filter finds, in its order and with its columns; times are absolute."""
    query = Query.read(asking.request.query.items())
    columns = chosen_columns(query.cols, Face.PIPE)

    def line(cells: Iterable[str]) -> str:
        file = io.StringIO()
        csv.writer(file, lineterminator="\r\n").writerow(map(text_cell, cells))
        return file.getvalue()

    def text(rows: Sequence[RunRow]) -> list[str]:
        return [line(cells) for cells in lines(columns, rows)]

    head = line(column.name for column in columns)
    return await _download(asking, query, _TableFormat("text/csv", text, head))


async def runs_json(asking: Asking) -> web.StreamResponse:
    """The same as a list of what `GET /v1/runs` answers of each."""

    def text(rows: Sequence[RunRow]) -> list[str]:
        return [msgspec.json.encode(row).decode() for row in rows]

    query = Query.read(asking.request.query.items())
    return await _download(asking, query, _TableFormat("application/json", text, "[", ",\n", "]\n"))


class _TableFormat(NamedTuple):
    """How rows are written into a file; ``text`` is that of each row."""

    media: str
    text: Callable[[Sequence[RunRow]], list[str]]
    head: str
    between: str = ""
    end: str = ""


async def _download(asking: Asking, query: Query, table_format: _TableFormat) -> web.StreamResponse:
    """All pages of the table, one after the other, as a file."""
    media, text, head, between, end = table_format
    request = msgspec.structs.replace(query.runs(), page=1, size=MAXIMUM_ROWS)
    answer = await asking.ask(questions.runs, request)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", answer.task.name) + "-runs." + media.partition("/")[2]
    response = web.StreamResponse(headers={"Content-Disposition": f'attachment; filename="{name}"'})
    response.content_type, response.charset = media, "utf-8"
    response.enable_compression()
    await asking.begin(response)
    for page in range(1, answer.pages + 1):
        if page > 1:
            request = msgspec.structs.replace(request, page=page, until=answer.until)
            answer = msgspec.structs.replace(await asking.ask(questions.runs, request), until=answer.until)
        written = between.join(await asking.in_thread(partial(text, answer.runs)))
        await response.write(((between if page > 1 else head) + written).encode())
    await response.write(end.encode())
    await response.write_eof()
    return response
