"""From an operation to what aiohttp calls: decode strictly, ask the log or the node, encode."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from autoresearch.api import Answer, Health, Nothing, Operation, Text
from autoresearch.errors import NotFound, UsageError
from autoresearch.log import MissingBlob
from autoresearch_daemon.api.failures import answer
from autoresearch_daemon.api.port import NodePort
from autoresearch_daemon.api.readers import NODE, THREADS, readers
from autoresearch_daemon.api.reading import READERS, Reading

P = TypeVar("P", bound=msgspec.Struct)
NOT_READY = "not ready"
_TOO_LONG = re.compile(r"Expected `str` of length <= (\d+) - at `\$\.(\w+)`")
# A diff needs two sources; no answer needs more blobs.
MISSING_BLOBS = 2
# A page waits so long for a source.
FETCH_SECONDS = 20.0


def handler(name: str, operation: Operation[Any]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The operation as aiohttp wants it: the log answers what it reads, a method of the node everything else."""
    reading = READERS.get(operation)

    async def handle(request: web.Request) -> web.StreamResponse:
        asked = await taken(operation, request)
        if reading:
            given = await read(request, reading, asked)
        else:
            given = await ask(request.app[NODE], name, asked)
        if isinstance(given, Text):
            return text_response(given, operation.media)
        return answer(given, status=503 if isinstance(given, Health) and given.status == NOT_READY else 200)

    return handle


async def taken(operation: Operation[Any], request: web.Request) -> msgspec.Struct:
    """What a request says, as the model that the operation takes. Raises UsageError."""
    return decode(operation.takes, await request.read()) if operation.has_body else parameters(operation.takes, request)


async def ask(node: NodePort, name: str, asked: msgspec.Struct) -> Answer | Text:
    """What the node's method of an operation's name answers."""
    method = getattr(node, name)
    given = method() if isinstance(asked, Nothing) else method(asked)
    return await given if inspect.isawaitable(given) else given  # type: ignore[no-any-return]  # a test compares the types


async def read(request: web.Request, function: Reading, asked: msgspec.Struct) -> Answer | Text:
    """Ask the log, in a thread. A blob that is not here is fetched from other nodes first."""
    loop = asyncio.get_running_loop()
    for _ in range(MISSING_BLOBS):
        try:
            return await loop.run_in_executor(request.app[THREADS], function, readers(request.app), asked)
        except MissingBlob as error:
            try:
                await request.app[NODE].fetch_blob(error.blob, FETCH_SECONDS)
            except NotFound as nowhere:
                raise error.nowhere(nowhere) from nowhere
    return await loop.run_in_executor(request.app[THREADS], function, readers(request.app), asked)


def text_response(text: str, media: str) -> web.Response:
    """Text as a response."""
    return web.Response(body=text.encode("utf-8", "replace"), headers={"Content-Type": f"{media}; charset=utf-8"})


def decode(model: type[msgspec.Struct], body: bytes) -> msgspec.Struct:
    """The body as its model; an empty one has all defaults.

    Raises:
        UsageError: it is not JSON, or not what the model says.
    """
    try:
        return msgspec.json.decode(body or b"{}", type=model)
    # RecursionError: thousands of nested brackets; UnicodeDecodeError: bytes that are no text.
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _wrong("the body is not what this address takes", error) from error


def parameters(model: type[P], request: web.Request) -> P:
    """The path's parts and the query string as their model.

    Raises:
        UsageError: one is unknown, given twice, or out of range.
    """
    found = dict(request.match_info)
    for name, value in request.query.items():
        if name in found:
            raise UsageError(f"the parameter {name} is given twice")
        found[name] = value
    try:
        return msgspec.convert(found, model, strict=False)
    except msgspec.ValidationError as error:
        raise _wrong("a parameter is wrong", error) from error


def _wrong(what: str, error: Exception) -> UsageError:
    """What a person may have typed too long is said in words; the rest concerns who wrote the program."""
    if found := _TOO_LONG.fullmatch(str(error)):
        return UsageError(f"{found[2]} is too long", hint=f"{found[1]} characters at most")
    return UsageError(f"{what}: {error}", hint="GET /openapi.json")
