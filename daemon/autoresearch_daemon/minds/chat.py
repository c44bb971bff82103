"""One question to a language model over HTTP: OpenAI-compatible, Anthropic's and Ollama's chat APIs, streamed.

Sources: the chat completions reference of OpenAI, the messages reference of Anthropic, ``/api/chat`` of Ollama. Ollama
has an OpenAI-compatible address too, which cuts long prompts without a word; its own takes the length of the context.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import aiohttp

from autoresearch.sanitise import one_line
from autoresearch_daemon.clock import now_ms
from autoresearch_daemon.minds.chat_formats import FORMATS, Answer, BadAnswer
from autoresearch_daemon.minds.ledger import ModelFailed

# What is answered beyond this is not read; prompts are smaller.
ANSWER_BYTES_MAX = 4 << 20
RETRIES = 2
RETRY_SECONDS, RETRY_SECONDS_MAX = 2.0, 30.0
TOLD_CHARACTERS = 200
# Servers that are busy or broken for a moment (RFC 9110, RFC 6585; 529: Anthropic is overloaded).
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


@dataclass(frozen=True, slots=True)
class Message:
    """One turn; ``role`` is user or assistant."""

    role: str
    text: str


async def ask(endpoint: Endpoint, messages: list[Message]) -> Answer:
    """The model's answer. Busy servers are asked again within the time that there is.

    Raises:
        ModelFailed: no answer that can be used, and why.
    """
    try:
        async with asyncio.timeout(endpoint.seconds), aiohttp.ClientSession(trust_env=True) as session:
            for attempt in range(RETRIES + 1):
                try:
                    return await _ask_once(session, endpoint, messages)
                except _Passing as busy:
                    pause = busy.retry_seconds or RETRY_SECONDS * 2**attempt
                    if attempt == RETRIES or pause > RETRY_SECONDS_MAX:
                        raise ModelFailed(str(busy), retry_seconds=busy.retry_seconds) from busy
                    await asyncio.sleep(pause)
    except TimeoutError as error:
        raise ModelFailed(f"{endpoint.model} gave no answer within {endpoint.seconds:g} s") from error
    except aiohttp.ClientError as error:
        said = _told(str(error) or type(error).__name__, endpoint)
        raise ModelFailed(f"{endpoint.url} can't be reached: {said}") from error
    raise AssertionError("unreachable")


class _Passing(Exception):
    """The server is busy, or broken for a moment."""

    def __init__(self, sentence: str, retry_seconds: float) -> None:
        super().__init__(sentence)
        self.retry_seconds = retry_seconds


async def _ask_once(session: aiohttp.ClientSession, endpoint: Endpoint, messages: list[Message]) -> Answer:
    form = FORMATS[endpoint.api]
    turns = [{"role": message.role, "content": message.text} for message in messages]
    body = form.body(endpoint.model, turns, endpoint.answer_tokens, endpoint.context_tokens)
    address = endpoint.url.rstrip("/") + form.path
    # A redirect could carry the key, and what it was asked, elsewhere.
    async with session.post(address, json=body, headers=form.headers(endpoint.key), allow_redirects=False) as response:
        if response.status != 200:
            said = _told((await response.content.read(4096)).decode(errors="replace"), endpoint)
            sentence = f"{endpoint.model} answered with HTTP {response.status}: {said or response.reason}"
            if response.status in PASSING:
                raise _Passing(sentence, _retry_after(response.headers.get("Retry-After", "")))
            hint = "check the key" if response.status in (401, 403) else "check llm.url and llm.model"
            raise ModelFailed(sentence, hint=hint)
        try:
            if response.content_type in ("text/event-stream", "application/x-ndjson"):
                return form.read_stream([part async for part in _parts(response)])
            if response.content_type == "application/json":
                content = b"".join([line async for line in _bounded(response)])
                return form.read_whole(json.loads(content))
        except BadAnswer as error:
            raise ModelFailed(f"{endpoint.model}: {_told(str(error), endpoint)}", tokens=error.tokens) from error
        except (ValueError, RecursionError, UnicodeDecodeError) as error:
            raise ModelFailed(f"{endpoint.model} answered with broken JSON") from error
        raise ModelFailed(
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
            if (found := _object(line)) is not None:
                yield found
    if (found := _object(rest)) is not None:
        yield found


def _object(line: bytes) -> dict[str, object] | None:
    text = line.strip().removeprefix(b"data:").strip()
    if not text.startswith(b"{"):
        return {"done": True} if text == b"[DONE]" else None  # names of events, comments, empty lines
    found: dict[str, object] = json.loads(text)
    return found


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
