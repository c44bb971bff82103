"""The node as the HTTP API has it, where the API reads the log, and errors as answers.

The log and the blobs are opened a second time, read only, for threads of their own. A question about many thousand runs
takes tens of milliseconds. The event loop must not wait for it, and the daemon's own connection must not be held by it:
in write-ahead mode a second connection reads while the first one writes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor

import structlog
from aiohttp import web

from autoresearch.ask.desk import Desk
from autoresearch.errors import (
    AmbiguousId,
    AutoresearchError,
    DaemonNotRunning,
    NotFound,
    Refused,
    TimedOut,
    UsageError,
)
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import Answer, Failure
from autoresearch.text import json_text
from autoresearch_daemon.handlers import ApiHandlers

# Questions about the log take turns. What reads blobs (the difference of two sources) leaves a thread for the others.
READERS = 2


NODE: web.AppKey[ApiHandlers] = web.AppKey("node")
DESK = web.AppKey("desk", Desk)
THREADS = web.AppKey("threads", Executor)


def desk(app: web.Application) -> Desk:
    """Where questions are answered now: whom the node trusts may have changed."""
    app[DESK].log.trust = app[NODE].log.trust
    return app[DESK]


async def open_desk(app: web.Application) -> AsyncIterator[None]:
    """Open the log and the blobs when the application starts, close them when it ends."""
    node = app[NODE]
    device = node.device()
    with (
        Log.open(node.log.path, node.log.network, read_only=True, trust=node.log.trust) as log,
        BlobStore(node.blobs.root, read_only=True) as blobs,
        ThreadPoolExecutor(READERS, thread_name_prefix="api-reader") as threads,
    ):
        app[DESK] = Desk(log, blobs, device.public, bytes(device.key), node.choices, node.now_ms)
        app[THREADS] = threads
        yield
        threads.shutdown(cancel_futures=True)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
JSON = "application/json"
# The first class that fits decides; subclasses of Refused are refusals too.
HTTP_STATUS: tuple[tuple[type[AutoresearchError], int], ...] = (
    (UsageError, 400),
    (NotFound, 404),
    (AmbiguousId, 409),
    (Refused, 409),
    (DaemonNotRunning, 503),
    (TimedOut, 504),
    (AutoresearchError, 500),
)
HTTP_SENTENCES = {
    404: "there is no such address in this API",
    405: "this address does not answer this method",
    413: "the request is larger than this API reads",
}
log = structlog.get_logger("api")


def answer(model: Answer, *, status: int = 200) -> web.Response:
    """A model as a JSON response."""
    return web.Response(text=json_text(model), status=status, content_type=JSON, charset="utf-8")


def failure(error: AutoresearchError) -> web.Response:
    """An expected error as a response: the sentence, the hint and the exit status of the command line."""
    return answer(Failure(error=str(error), hint=error.hint, exit_status=error.exit_status), status=status_of(error))


def status_of(error: AutoresearchError) -> int:
    """The HTTP status of an expected error."""
    return next(code for kind, code in HTTP_STATUS if isinstance(error, kind))


def http_failure(error: web.HTTPException) -> web.Response:
    """One of aiohttp's own refusals as a response of our shape."""
    kind = NotFound if error.status == 404 else UsageError if error.status < 500 else AutoresearchError
    sentence = HTTP_SENTENCES.get(error.status, error.reason)
    response = answer(
        Failure(error=sentence, hint="GET /openapi.json lists all addresses", exit_status=kind.exit_status),
        status=error.status,
    )
    if "Allow" in error.headers:
        response.headers["Allow"] = error.headers["Allow"]
    return response


@web.middleware
async def answer_failures(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every error of a handler into a ``Failure``; an unexpected one goes to the daemon's log, not out."""
    try:
        return await handler(request)
    except AutoresearchError as error:
        return failure(error)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return http_failure(error)
    except Exception:
        # The last net above all handlers: a defect here must neither end the daemon nor show its insides.
        log.exception("request failed", method=request.method, path=request.path)
        sentence = "the daemon made a mistake; its log says which one"
        return answer(Failure(error=sentence, hint="autoresearch node logs"), status=500)
