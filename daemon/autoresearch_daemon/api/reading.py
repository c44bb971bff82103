"""From an operation to what aiohttp calls: decode strictly, ask the log or the node, encode."""

from __future__ import annotations

import asyncio
import inspect
import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import msgspec
from aiohttp import web

from autoresearch.ask.node import Health
from autoresearch.ask.operation import Operation, Text, operation_of
from autoresearch.ask.requests import Nothing
from autoresearch.errors import NotFound, UsageError
from autoresearch.log.blobs import MissingBlob
from autoresearch.log.standing.answers import Answer
from autoresearch_daemon.api.port import NODE, THREADS, answer, desk

Question = Callable[..., Answer | Text]


P = TypeVar("P", bound=msgspec.Struct)
NOT_READY = "not ready"
_TOO_LONG = re.compile(r"Expected `str` of length <= (\d+) - at `\$\.(\w+)`")
# A diff needs two sources; no answer needs more blobs.
MISSING_BLOBS = 2
# A page waits so long for a source.
FETCH_SECONDS = 20.0


def handler(question: Question) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """An operation as aiohttp wants it."""
    operation = operation_of(question)

    async def handle(request: web.Request) -> web.StreamResponse:
        response = await ask(request, question, await taken(operation, request))
        if isinstance(response, Text):
            return text_response(response, operation.media)
        return answer(response, status=503 if isinstance(response, Health) and response.status == NOT_READY else 200)

    return handle


async def taken(operation: Operation, request: web.Request) -> msgspec.Struct:
    """What a request says, as the model that the operation takes. Raises UsageError."""
    return decode(operation.takes, await request.read()) if operation.has_body else parameters(operation.takes, request)


async def ask(request: web.Request, question: Question, model: msgspec.Struct, named: str = "") -> Answer | Text:
    """What the log answers to a question, or what comes of an act of the node.

    ``named`` is the task that is meant where the question names none; without it the one that ran last.
    """
    if operation_of(question).reads:
        return await _read(request, question, model, named)
    if operation_of(question).writes:
        return await request.app[NODE].publish(lambda notebook: question(notebook, model))
    act = getattr(request.app[NODE], question.__name__)
    answered = act() if isinstance(model, Nothing) else act(model)
    return await answered if inspect.isawaitable(answered) else answered  # type: ignore[no-any-return]  # a test compares the types


async def _read(request: web.Request, question: Question, model: msgspec.Struct, named: str) -> Answer | Text:
    """Ask the log, in a thread. A blob that is not here is fetched from other nodes first."""
    loop = asyncio.get_running_loop()
    read = partial(question, replace(desk(request.app), named=named), model)
    for _ in range(MISSING_BLOBS):
        try:
            return await loop.run_in_executor(request.app[THREADS], read)
        except MissingBlob as error:
            try:
                await request.app[NODE].fetch_blob(error.blob, FETCH_SECONDS)
            except NotFound as nowhere:
                raise error.nowhere(nowhere) from nowhere
    return await loop.run_in_executor(request.app[THREADS], read)


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
    lists = {field.name for field in msgspec.structs.fields(model) if field.default_factory is list}
    values_by_name: dict[str, object] = dict(request.match_info)
    for name in dict.fromkeys(request.query):
        values = request.query.getall(name)
        if name in values_by_name or (len(values) > 1 and name not in lists):
            raise UsageError(f"the parameter {name} is given twice")
        values_by_name[name] = values if name in lists else values[0]
    try:
        converted = msgspec.convert(values_by_name, model, strict=False)
    except msgspec.ValidationError as error:
        raise _wrong("a parameter is wrong", error) from error
    for name in values_by_name:
        value = getattr(converted, name)
        if isinstance(value, float) and math.isnan(value):  # it is within all bounds
            raise UsageError(f"the parameter {name} is no number")
    return converted


def _wrong(what: str, error: Exception) -> UsageError:
    """What a person may have typed too long is said in words; the rest concerns who wrote the program."""
    if match := _TOO_LONG.fullmatch(str(error)):
        return UsageError(f"{match[2]} is too long", hint=f"{match[1]} characters at most")
    return UsageError(f"{what}: {error}", hint="GET /openapi.json")
