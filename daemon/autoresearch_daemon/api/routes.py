"""The rows of the route table: one function for each address, and its annotations are the contract.

The first parameter's annotation says what an address asks: the node, at once, or the shelf, in a thread. The last
one's says what it takes: a model of the path and the query string, or of the body. The return annotation says what it
answers, the docstring what it is for. Decoding, encoding and the OpenAPI document follow, so that none of them can
drift from the code.
"""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from autoresearch.api import Answer, Health
from autoresearch.errors import NotFound, UsageError
from autoresearch.log import MissingBlob
from autoresearch_daemon.api.failures import answer
from autoresearch_daemon.api.port import NodePort
from autoresearch_daemon.api.readers import NODE, THREADS, Readers, readers
from autoresearch_daemon.api.requests import Parameters

TEXT = "text/plain"
NOT_READY = "not ready"
# A diff needs two sources; no answer needs more blobs.
MISSING_BLOBS = 2
# A page waits so long for a source.
FETCH_SECONDS = 20.0


class Text(str):
    """An answer that is plain text, as somebody wrote it."""

    __slots__ = ()


Asking = Callable[[NodePort, Any], Answer | Text | Awaitable[Answer]]
Reading = Callable[[Readers, Any], Answer | Text]
Writing = Callable[[NodePort, web.Request, Any], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """One address. ``handle`` returns the answer, or writes it to the connection itself; ``media`` names text."""

    method: str
    path: str
    handle: Asking | Reading | Writing
    media: str = TEXT

    @property
    def summary(self) -> str:
        """What it is for, in a sentence."""
        return inspect.getdoc(self.handle).partition("\n")[0]  # type: ignore[union-attr]  # a test sees that all have one

    @property
    def reads(self) -> bool:
        """Whether it asks the shelf."""
        first = next(iter(inspect.signature(self.handle).parameters))
        return typing.get_type_hints(self.handle)[first] is Readers

    @property
    def takes(self) -> type[msgspec.Struct]:
        """The model of what it takes."""
        last = list(inspect.signature(self.handle).parameters)[-1]
        return typing.cast("type[msgspec.Struct]", typing.get_type_hints(self.handle)[last])

    @property
    def has_body(self) -> bool:
        """Whether it takes a body; else it takes parameters."""
        return not issubclass(self.takes, Parameters)

    @property
    def answers(self) -> type[Answer] | None:
        """The model of its answer, or None when it answers ``media``."""
        kind = typing.get_type_hints(self.handle)["return"]
        return kind if issubclass(kind, Answer) else None


def handler(route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The route as aiohttp wants it: decode strictly, call, encode."""
    takes, has_body = route.takes, route.has_body
    decoder = msgspec.json.Decoder(takes)

    async def handle(request: web.Request) -> web.StreamResponse:
        asked = decode(decoder, await request.read()) if has_body else parameters(takes, request)
        node, function = request.app[NODE], typing.cast("Any", route.handle)
        if inspect.iscoroutinefunction(function) and not route.answers:
            return typing.cast("web.StreamResponse", await function(node, request, asked))
        if route.reads:
            given = await read(request, function, asked)
        else:
            given = function(node, asked)
            given = await given if inspect.isawaitable(given) else given
        if isinstance(given, Text):
            headers = {"Content-Type": f"{route.media}; charset=utf-8"}
            return web.Response(body=given.encode("utf-8", "replace"), headers=headers)
        return answer(given, status=503 if isinstance(given, Health) and given.status == NOT_READY else 200)

    return handle


async def read(request: web.Request, function: Reading, asked: msgspec.Struct) -> Answer | Text:
    """Ask the shelf, in a thread. A blob that is not here is fetched from other nodes first."""
    loop = asyncio.get_running_loop()
    for _ in range(MISSING_BLOBS):
        try:
            return await loop.run_in_executor(request.app[THREADS], function, readers(request.app), asked)
        except MissingBlob as error:
            try:
                await request.app[NODE].fetch(error.blob, FETCH_SECONDS)
            except NotFound as nowhere:
                raise error.nowhere(nowhere) from nowhere
    return await loop.run_in_executor(request.app[THREADS], function, readers(request.app), asked)


def decode(decoder: msgspec.json.Decoder[msgspec.Struct], body: bytes) -> msgspec.Struct:
    """The body as its model; an empty one has all defaults.

    Raises:
        UsageError: it is not JSON, or not what the model says.
    """
    try:
        return decoder.decode(body or b"{}")
    # RecursionError: thousands of nested brackets; UnicodeDecodeError: bytes that are no text.
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"the body is not what this address takes: {error}", hint="GET /openapi.json") from error


def parameters(model: type[msgspec.Struct], request: web.Request) -> msgspec.Struct:
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
        raise UsageError(f"a parameter is wrong: {error}", hint="GET /openapi.json") from error
