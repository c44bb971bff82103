"""The addresses of the pages, what stands around each answer, and the pages of a task.

The board, a run with its diff and its log as parts that come after it, the way from the baseline to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
import structlog
from aiohttp import web

from autoresearch.ask import questions, requests
from autoresearch.ask.node_acts import Node
from autoresearch.ask.runs.answers import RunRow, TopAnswer
from autoresearch.errors import AutoresearchError, NotFound
from autoresearch.face.pages import run as run_pages
from autoresearch.face.pages.boards import programs_of
from autoresearch.face.pages.rendering import asset, compile_templates
from autoresearch.log.standing.answers import RunView
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.text import MAXIMIZE, QUESTION_CHARACTERS
from autoresearch.words import SECTION_MARKS
from autoresearch_daemon.api.events import stream_events
from autoresearch_daemon.api.port import THREADS, status_of
from autoresearch_daemon.pages import components, effects, node, progress
from autoresearch_daemon.pages.node import HEADERS, Asking

# The value by which the address asks for what the network compares, whatever this machine has.
COMPARED = "compared"
BOARD_ROWS = 100


class BoardOf(requests.OfTask, frozen=True, kw_only=True):
    """Which task, and on which hardware: left out, that of this machine where wall-clock numbers are compared."""

    hardware: requests.Hardware = ""


async def board_page(asking: Asking) -> web.Response:
    """The leaderboard of a task, and who brought it there."""
    query = asking.parameters(BoardOf)
    try:
        top = await asking.ask(questions.top, requests.TopOf(task=query.task, limit=BOARD_ROWS))
    except NotFound:
        if query.task:
            raise
        return await asking.render("board.html", "board", top=None)
    hardware = query.hardware or await _own_hardware(asking, top)
    chosen = "" if hardware in (COMPARED, top.hardware) else hardware
    board, rows = await _on_hardware(asking, top, chosen) if chosen else (top, await _rows(asking, top))
    credit = await asking.ask(questions.credit, requests.OfTaskAndParticipant(task=top.task.digest))
    voters, me = await asking.ask(Node.voters), asking.status().participant.key
    devices = await _devices(asking, top)
    values = run_pages.board_content(board, rows, credit, voters, me=me, devices=devices, hardware=chosen)
    return await asking.render("board.html", "board", **values)


async def _own_hardware(asking: Asking, top: TopAnswer) -> str:
    """The hardware of this participant's newest run, where numbers of one kind alone are compared."""
    if not top.hardware:
        return ""
    newest = await asking.ask(questions.runs, requests.RunsOf(task=top.task.digest, by="me", size=1))
    return newest.runs[0].device if newest.runs else ""


async def _devices(asking: Asking, top: TopAnswer) -> list[str]:
    """The kinds of hardware that runs of the task state."""
    runners = (await asking.ask(questions.runners, requests.OfTask(task=top.task.digest))).runners
    return sorted({device for runner in runners for device in runner.devices if device})


async def _on_hardware(asking: Asking, top: TopAnswer, hardware: str) -> tuple[TopAnswer, dict[str, RunRow]]:
    """The same of the runs on one kind of hardware."""
    rows: dict[str, RunRow] = {}
    programs = []
    for section, marks in SECTION_MARKS.items():
        section_rows = await _rows(asking, top, hardware=hardware, state=",".join(marks))
        programs += programs_of(section_rows.values(), section, maximize=top.task.direction == MAXIMIZE)
        rows |= section_rows
    return msgspec.structs.replace(top, programs=programs), rows


async def _rows(asking: Asking, top: TopAnswer, *, hardware: str = "", state: str = "") -> dict[str, RunRow]:
    """The best runs of a board by id, with what they changed."""
    sort = "-value" if top.task.direction == MAXIMIZE else "value"
    request = requests.RunsOf(task=top.task.digest, hardware=hardware, state=state, sort=sort, size=BOARD_ROWS)
    return {row.id: row for row in (await asking.ask(questions.runs, request)).runs}


async def run_page(asking: Asking) -> web.Response:
    """The page of a run. What has to come from other nodes is loaded by the page itself."""
    answer = await asking.ask(questions.run, asking.parameters(requests.OneRecord))
    assert answer.run is not None  # else the operation refuses it
    run = answer.run.run
    asking.about_task(run.task)
    context = await asking.ask_or_none(
        questions.run_context, requests.OneRecord(id=answer.record.id)
    )  # None: it was withdrawn
    compared = await asking.ask_or_none(questions.effects, requests.OfTask(task=run.task))
    parent = await asking.ask_or_none(questions.run, requests.OneRecord(id=run.parent)) if run.parent else None
    task = await asking.task_status()
    values = run_pages.run_content(
        answer, context=context, effects=compared, parent=parent, task=task, me=asking.status().participant.key
    )
    made_of = await components.components_of(asking, answer)
    return await asking.render("run.html", "run", components=made_of, **values)


async def run_diff_page(asking: Asking) -> web.Response:
    """What a run changed against its parent. The two programs may have to come from other nodes."""
    view = await asking.ask(questions.run, asking.parameters(requests.OneRecord))
    assert view.run is not None
    asking.about_task(view.run.run.task)
    try:
        parent = view.run.run.parent
        if parent is None:
            raise NotFound("It has no parent: its program is the task’s baseline.")
        answer = await asking.ask(questions.diff, requests.Difference(old=parent, new=view.run.id))
        program = await asking.in_thread(lambda: run_pages.changed_program(answer.diff))
    except AutoresearchError as error:
        return await _part(asking, "run_diff.html", view.run, sentence=str(error), hint=error.hint)
    return await _part(asking, "run_diff.html", view.run, program=program, sentence="", hint="")


async def run_log_page(asking: Asking) -> web.Response:
    """The end of what a run printed. It may have to come from another node."""
    answer = await asking.ask(questions.run, asking.parameters(requests.OneRecord))
    assert answer.run is not None
    asking.about_task(answer.run.run.task)
    try:
        text = await asking.ask(questions.training_log, requests.OneRecord(id=answer.run.id))
        tail = await asking.in_thread(lambda: run_pages.log_tail(text))
    except AutoresearchError as error:
        return await _part(asking, "run_log.html", answer.run, sentence=str(error), hint=error.hint)
    return await _part(asking, "run_log.html", answer.run, tail=tail, sentence="", hint="")


async def _part(asking: Asking, template: str, of: RunView, **values: object) -> web.Response:
    return await asking.render_part(template, "run", of=of.id, **values)


class Comparison(requests.OfTask, frozen=True, kw_only=True):
    """Which runs, by their ids with commas between them."""

    runs: Annotated[str, msgspec.Meta(max_length=1024)] = ""


async def compare_page(asking: Asking) -> web.Response:
    """Runs beside each other; the first is what the others are held against.

    The address has their whole ids: it means the same on another node.
    """
    named = list(dict.fromkeys(filter(None, asking.parameters(Comparison).runs.split(","))))[: run_pages.MOST_COMPARED]
    compared: list[run_pages.Compared] = []
    whole: dict[str, None] = {}
    missing: list[str] = []
    unit = ""
    for name in named:
        answer = await asking.ask_or_none(questions.run, requests.OneRecord(id=name))
        context = answer and await asking.ask_or_none(questions.run_context, requests.OneRecord(id=answer.record.id))
        whole[answer.record.id if answer else name] = None
        if not answer or not context:  # it is not here, or was withdrawn
            missing.append(answer.record.id if answer else name)
            continue
        assert answer.run is not None
        asking.about_task(answer.run.run.task)
        unit = answer.budget_unit
        run = run_pages.Compared(context.row, answer.run.run)
        if compared:
            try:
                difference = requests.Difference(old=compared[0].row.id, new=context.row.id)
                run = run._replace(diff=await asking.ask(questions.diff, difference))
            except AutoresearchError as error:
                run = run._replace(sentence=str(error))
        compared.append(run)
    if list(whole) != named:
        raise web.HTTPFound(asking.request.rel_url.update_query(runs=",".join(whole)))
    content: dict[str, object] = {"compared": []}
    if compared:
        content = run_pages.comparison_content(compared, await asking.task_status(), unit=unit)
    return await asking.render("compare.html", "compare", most=run_pages.MOST_COMPARED, missing=missing, **content)


BEST = "@"


class LineageOf(requests.OfTask, frozen=True, kw_only=True):
    """Of which run."""

    of: requests.Reference = BEST


class BranchesOf(requests.OfTask, frozen=True, kw_only=True):
    """The child runs of which run, without the one that its lineage goes on with."""

    of: requests.Reference
    but: str = ""


async def lineage_page(asking: Asking) -> web.Response:
    """The steps from the baseline to a run; without a name to the best one."""
    query = asking.parameters(LineageOf)
    try:
        path = await asking.ask(questions.path, requests.PathOf(id=query.of, task=query.task))
    except NotFound:
        if query.of != BEST:
            raise
        return await asking.render("lineage.html", "lineage", of="")
    asking.about_task(path.task.digest)
    return await asking.render("lineage.html", "lineage", **run_pages.lineage_content(path))


async def branches_page(asking: Asking) -> web.Response:
    """The other child runs of a step, the best first."""
    query = asking.parameters(BranchesOf)
    context = await asking.ask(questions.run_context, requests.OneRecord(id=query.of, task=query.task))
    children = [child for child in context.children if not query.but or short_id(parse_id(child.id)) != query.but]
    total = context.all_children.total - (len(context.children) - len(children))
    return await asking.render_part("branches.html", "lineage", of=context.row.id, children=children, total=total)


class QuestionTo(requests.OfTask, frozen=True, kw_only=True):
    """What the notes and runs of a task are asked."""

    ask: Annotated[str, msgspec.Meta(max_length=QUESTION_CHARACTERS)] = ""


# So many hypotheses and so many other notes are on their page, the newest.
NOTES_SHOWN = 100


async def notes_page(asking: Asking) -> web.Response:
    """The hypotheses of a task by what became of them, the other notes, and what the log says to a question."""
    query = asking.parameters(QuestionTo)
    hypotheses = await asking.ask_or_none(
        questions.notes, requests.NotesOf(task=query.task, topic="hypothesis", limit=NOTES_SHOWN)
    )
    insights = await asking.ask_or_none(
        questions.notes, requests.NotesOf(task=query.task, topic="insight", limit=NOTES_SHOWN)
    )
    reply, sentence = None, ""
    if query.ask.strip() and hypotheses:
        try:
            # A page that anybody may open asks no model.
            question = requests.AskRequest(question=query.ask, task=query.task or "", model=False)
            reply = await asking.ask(Node.ask, question)
        except AutoresearchError as error:
            sentence = str(error)
    return await asking.render(
        "notes.html",
        "notes",
        since=await asking.ask_or_none(questions.since, requests.SinceOf(task=query.task)),
        hypotheses=hypotheses.notes if hypotheses else [],
        insights=insights.notes if insights else [],
        question=query.ask,
        reply=reply,
        sentence=sentence,
    )


Page = Callable[[Asking], Awaitable[web.StreamResponse]]
# By these names the guard knows what is answered without a token.
PREFIX = "page."
PAGES: dict[str, Page] = {
    "/": progress.progress_page,
    "/chart.json": progress.chart_page,
    "/chart.svg": progress.picture_page,
    "/curves.json": progress.curves_page,
    "/runs.csv": progress.runs_csv,
    "/runs.json": progress.runs_json,
    "/card/{id}": progress.card_page,
    "/node": node.node_page,
    "/queue": node.queue_page,
    "/board": board_page,
    "/compare": compare_page,
    "/lineage": lineage_page,
    "/notes": notes_page,
    "/parts/branches": branches_page,
    "/tree": effects.tree_page,
    "/effects": effects.effects_page,
    "/parts/timeline": progress.timeline_page,
    "/parts/contour": effects.contour_page,
    "/columns.bin": effects.columns_page,
    "/verifications": node.verifications_page,
    "/participants": node.participants_page,
    "/participants/{key}": node.participant_page,
    "/find": node.find_page,
    "/peers": node.peers_page,
    "/tasks": node.tasks_page,
    "/components": components.components_page,
    "/component": components.component_page,
    "/run/{id}": run_page,
    "/run/{id}/diff": run_diff_page,
    "/run/{id}/log": run_log_page,
}
# Whatever is no page and not of the API: somebody typed an address, or followed a link of another version.
ELSEWHERE = "/{path:(?!v1/).*}"
FOR_EVER = "public, max-age=31536000, immutable"
log = structlog.get_logger("pages")


def add_pages(app: web.Application) -> None:
    """Add the pages to the application of the API."""
    for path, page in PAGES.items():
        app.router.add_get(path, _answering(page), name=_name(path))
    app.router.add_get("/assets/{name}", _asset, name=f"{PREFIX}assets")
    app.router.add_get("/events", stream_events, name=f"{PREFIX}events")
    app.router.add_get(ELSEWHERE, _answering(_nothing), name=f"{PREFIX}nothing")
    app.on_startup.append(_prepare)


async def _prepare(app: web.Application) -> None:
    app[THREADS].submit(compile_templates)


def _name(path: str) -> str:
    return PREFIX + (path.strip("/").replace("/", ".").translate(str.maketrans("", "", "{}")) or "progress")


def _answering(page: Page) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        asking = Asking(request)
        try:
            response = await page(asking)
        except AutoresearchError as error:
            response = await _failed(asking, error)
        if not response.prepared:
            response.headers.update({**HEADERS, **response.headers})
        return response

    return handle


async def _nothing(asking: Asking) -> web.Response:
    raise NotFound(f"nothing is at {asking.request.path}")


async def _failed(asking: Asking, error: AutoresearchError) -> web.Response:
    """An error in words, on a page of its own."""
    status = status_of(error)
    heading = "There is no such page" if status == 404 else "This page cannot be shown"
    asking.forget_task()
    response = await asking.render("error.html", "", heading=heading, sentence=str(error), hint=error.hint)
    response.set_status(status)
    return response


async def _asset(request: web.Request) -> web.StreamResponse:
    content = asset(request.match_info["name"])
    if content is None:
        raise web.HTTPNotFound
    tag = f'"{content.tag}"'
    headers = {"ETag": tag, "Cache-Control": FOR_EVER, "Content-Type": content.media, **HEADERS}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    response = web.Response(body=content.content, headers=headers)
    response.enable_compression()
    return response
