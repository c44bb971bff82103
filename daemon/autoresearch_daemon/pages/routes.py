"""The addresses of the pages, and what stands around each answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web

from autoresearch.errors import AutoresearchError, NotFound
from autoresearch.pages import asset
from autoresearch_daemon.api.events import stream_events
from autoresearch_daemon.api.failures import status_of
from autoresearch_daemon.pages import boards, lineages, node, participants, progress, runs, tables, verifications
from autoresearch_daemon.pages.asking import Asking

Page = Callable[[Asking], Awaitable[web.StreamResponse]]
# By these names the guard knows what is answered without a token.
PREFIX = "page."
PAGES: dict[str, Page] = {
    "/": progress.progress,
    "/chart.json": progress.chart,
    "/card/{id}": progress.card,
    "/node": node.node,
    "/parts/pill": node.pill,
    "/parts/node": node.node_part,
    "/queue": tables.queue,
    "/board": boards.board,
    "/lineage": lineages.lineage,
    "/parts/branches": lineages.branches,
    "/verifications": verifications.verifications,
    "/participants": participants.participants,
    "/participants/{key}": participants.participant,
    "/peers": tables.peers,
    "/tasks": tables.tasks,
    "/run/{id}": runs.run,
    "/run/{id}/diff": runs.run_diff,
    "/run/{id}/log": runs.run_log,
}
# Whatever is no page and not of the API: somebody typed an address, or followed a link of another version.
ELSEWHERE = "/{path:(?!v1/).*}"
# Only what the pages ship with runs or is loaded; nothing frames them.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FOR_EVER = "public, max-age=31536000, immutable"
log = structlog.get_logger("pages")


def add_pages(app: web.Application) -> None:
    """Add the pages to the application of the API."""
    for path, page in PAGES.items():
        app.router.add_get(path, _answering(page), name=_name(path))
    app.router.add_get("/assets/{name}", _asset, name=f"{PREFIX}assets")
    app.router.add_get("/events", stream_events, name=f"{PREFIX}events")
    app.router.add_get(ELSEWHERE, _answering(_nothing), name=f"{PREFIX}nothing")


def is_page(request: web.Request) -> bool:
    """Whether a request is for a page, which anybody on this machine may read."""
    route = request.match_info.route
    return request.method in {"GET", "HEAD"} and (route.name or "").startswith(PREFIX)


def _name(path: str) -> str:
    return PREFIX + (path.strip("/").replace("/", ".").translate(str.maketrans("", "", "{}")) or "progress")


def _answering(page: Page) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        asking = Asking(request)
        try:
            response = await page(asking)
        except AutoresearchError as error:
            response = await _failed(asking, error)
        response.headers.update(HEADERS)
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
    found = asset(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound
    tag = f'"{found.tag}"'
    headers = {"ETag": tag, "Cache-Control": FOR_EVER, "Content-Type": found.media, **HEADERS}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    response = web.Response(body=found.content, headers=headers)
    response.enable_compression()
    return response
