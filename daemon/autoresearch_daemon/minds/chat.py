"""One question to a language model over HTTP, whole or streamed: OpenAI-compatible, Anthropic's and Ollama's APIs.

Ollama has an OpenAI-compatible address too, which cuts long prompts without a word; its own takes the length of the
context.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import aiohttp

from autoresearch.link import backoff
from autoresearch.log.local import ModelFailure
from autoresearch.text import one_line, read_json
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.minds.chat_formats import FORMATS, BadAnswer, Completion, Json, Message, Tool

# What is answered beyond this is not read; prompts are smaller.
ANSWER_BYTES_MAX = 4 << 20
RETRIES = 2
RETRY_SECONDS, RETRY_SECONDS_MAX = 2.0, 30.0
TOLD_CHARACTERS = 200
# Servers that are busy or broken for a moment (RFC 9110, RFC 6585; 529: Anthropic is overloaded).
_TOOLS_NAMED = re.compile(r"(?i)\b(?:tools?|functions?|--jinja)\b|tool[-_]")
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model answers, and its bounds. ``key`` is in no representation."""

    api: str
    url: str
    model: str
    key: str = field(repr=False)
    answer_tokens: int
    seconds: float
    context_tokens: int
    fields: Json = field(default_factory=dict)
    """Further fields of each request."""


def user(text: str) -> Message:
    """A message to a model."""
    return {"role": "user", "content": text}


class ToolsRefused(ModelFailure):
    """A server refuses requests that offer tools."""


async def ask(endpoint: Endpoint, messages: list[Message], tools: Sequence[Tool] = ()) -> Completion:
    """The model's answer. Busy servers are asked again within the time that there is.

    Raises:
        ToolsRefused: it takes no tools.
        ModelFailure: no answer that can be used, and why.
    """
    try:
        async with asyncio.timeout(endpoint.seconds), aiohttp.ClientSession(trust_env=True) as session:
            for attempt in range(RETRIES + 1):
                try:
                    return await _ask_once(session, endpoint, messages, tools)
                except _Passing as busy:
                    pause = busy.retry_seconds or backoff(attempt, RETRY_SECONDS, RETRY_SECONDS_MAX)
                    if attempt == RETRIES or pause > RETRY_SECONDS_MAX:
                        raise ModelFailure(str(busy), retry_seconds=busy.retry_seconds) from busy
                    await asyncio.sleep(pause)
    except TimeoutError as error:
        raise ModelFailure(f"{endpoint.model} gave no answer within {endpoint.seconds:g} s") from error
    except aiohttp.ClientError as error:
        reason = _told(str(error) or type(error).__name__, endpoint)
        raise ModelFailure(f"{endpoint.url} can't be reached: {reason}") from error
    raise AssertionError("unreachable")


class _Passing(Exception):
    """The server is busy, or broken for a moment."""

    def __init__(self, sentence: str, retry_seconds: float) -> None:
        super().__init__(sentence)
        self.retry_seconds = retry_seconds


async def _ask_once(
    session: aiohttp.ClientSession, endpoint: Endpoint, messages: list[Message], tools: Sequence[Tool]
) -> Completion:
    form = FORMATS[endpoint.api]
    body = form.body(endpoint.model, messages, endpoint.answer_tokens, endpoint.context_tokens)
    for name, value in endpoint.fields.items():
        usual = body.get(name)
        body[name] = usual | value if isinstance(usual, dict) and isinstance(value, dict) else value
    if tools:
        body["tools"] = [form.tool(tool) for tool in tools]
    address = endpoint.url.rstrip("/") + form.path
    # A redirect could carry the key, and what it was asked, elsewhere.
    async with session.post(address, json=body, headers=form.headers(endpoint.key), allow_redirects=False) as response:
        if response.status != 200:
            message_text = _told((await response.content.read(4096)).decode(errors="replace"), endpoint)
            sentence = f"{endpoint.model} answered with HTTP {response.status}: {message_text or response.reason}"
            if tools and _TOOLS_NAMED.search(message_text):
                raise ToolsRefused(sentence)
            if response.status in PASSING:
                raise _Passing(sentence, _retry_after(response.headers.get("Retry-After", "")))
            checked = "llm.url, llm.model and llm.fields" if endpoint.fields else "llm.url and llm.model"
            hint = "check the key" if response.status in (401, 403) else f"check {checked}"
            raise ModelFailure(sentence, hint=hint)
        try:
            if response.content_type in ("text/event-stream", "application/x-ndjson"):
                return form.read_stream([part async for part in _parts(response)])
            if response.content_type == "application/json":
                content = b"".join([line async for line in _bounded(response)])
                return form.read_whole(read_json(content))
        except BadAnswer as error:
            raise ModelFailure(f"{endpoint.model}: {_told(str(error), endpoint)}", tokens=error.tokens) from error
        except (ValueError, RecursionError, UnicodeDecodeError) as error:
            raise ModelFailure(f"{endpoint.model} answered with broken JSON") from error
        raise ModelFailure(
            f"{address} answers with {one_line(response.content_type, 60)}, not with JSON or events",
            hint="check llm.url",
        )


async def _bounded(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body in pieces. Raises BadAnswer when there is too much of it."""
    read = 0
    async for piece in response.content.iter_any():
        read += len(piece)
        if read > ANSWER_BYTES_MAX:
            raise BadAnswer(f"the answer has more than {ANSWER_BYTES_MAX >> 20} MiB")
        yield piece


async def _parts(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, object]]:
    """The JSON objects of a stream: of ``data:`` lines (server-sent events), or one a line (NDJSON)."""
    rest = b""
    async for piece in _bounded(response):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if (event := _object(line)) is not None:
                yield event
    if (event := _object(rest)) is not None:
        yield event


def _object(line: bytes) -> dict[str, object] | None:
    text = line.strip().removeprefix(b"data:").strip()
    if not text.startswith(b"{"):
        return {"done": True} if text == b"[DONE]" else None  # names of events, comments, empty lines
    event: dict[str, object] = read_json(text)
    return event


def _retry_after(header: str) -> float:
    """Seconds of a Retry-After header: a number, or a date (RFC 9110, section 10.2.3). 0: it says nothing."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now_ms() / 1000)
    except (ValueError, TypeError):
        return 0.0


def _told(text: str, endpoint: Endpoint) -> str:
    """What a server said, for a person: short, and without the key, which some repeat."""
    return one_line(text.replace(endpoint.key, "…") if endpoint.key else text, TOLD_CHARACTERS)
