"""What three chat APIs take and answer, whole and as a stream. Pure: JSON values in, an answer out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Json = Mapping[str, object]


class BadAnswer(Exception):
    """An answer that can't be used. ``tokens`` is what was counted all the same."""

    def __init__(self, sentence: str, tokens: int = 0) -> None:
        super().__init__(sentence)
        self.tokens = tokens


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said, and how many tokens were counted for question and answer."""

    text: str
    tokens_in: int
    tokens_out: int


class Format(Protocol):
    """One API."""

    path: str

    def headers(self, key: str) -> dict[str, str]:
        """The headers of a request."""

    def body(self, model: str, turns: list[dict[str, str]], answer_tokens: int, context: int) -> dict[str, object]:
        """The JSON of a request."""

    def read_whole(self, answer: object) -> Answer:
        """The answer, of a server that does not stream."""

    def read_stream(self, parts: Sequence[Json]) -> Answer:
        """The answer, from the parts of a stream. Raises BadAnswer where it breaks off."""


class _OpenAi:
    """Chat completions, of OpenAI and of the many servers that speak like it."""

    path = "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, model: str, turns: list[dict[str, str]], answer_tokens: int, context: int) -> dict[str, object]:
        # Newer models refuse a temperature and the old name of the bound, older servers the new one: neither is sent.
        del answer_tokens, context
        return {"model": model, "messages": turns, "stream": True, "stream_options": {"include_usage": True}}

    def read_whole(self, answer: object) -> Answer:
        choice = _first(_map(answer).get("choices"))
        return self._finished(_map(choice.get("message")), choice.get("finish_reason") or "stop", _map(answer))

    def read_stream(self, parts: Sequence[Json]) -> Answer:
        texts, refusals, end, usage = list[str](), list[str](), "", dict[str, object]()
        for part in parts:
            _raise_error(part)
            usage = {"usage": part["usage"]} if part.get("usage") else usage
            choice = _first(part.get("choices"))
            delta = _map(choice.get("delta"))
            texts.append(_text(delta.get("content")))
            refusals.append(_text(delta.get("refusal")))
            end = _text(choice.get("finish_reason")) or end
        return self._finished({"content": "".join(texts), "refusal": "".join(refusals)}, end, usage)

    def _finished(self, message: Json, end: object, answer: Json) -> Answer:
        _raise_error(answer)
        usage = _map(answer.get("usage"))
        counted = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        if refusal := _text(message.get("refusal")):
            raise BadAnswer(f"it refused: {refusal}", sum(counted))
        return _answer(_text(message.get("content")), end, {"content_filter"}, {"length"}, counted)


class _Anthropic:
    """Messages of Anthropic."""

    path = "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def body(self, model: str, turns: list[dict[str, str]], answer_tokens: int, context: int) -> dict[str, object]:
        del context
        return {"model": model, "messages": turns, "max_tokens": answer_tokens, "stream": True}

    def read_whole(self, answer: object) -> Answer:
        whole = _map(answer)
        _raise_error(whole)
        blocks = whole.get("content")
        texts = [_text(_map(block).get("text")) for block in blocks] if isinstance(blocks, list) else []
        return self._finished("".join(texts), whole.get("stop_reason"), _map(whole.get("usage")))

    def read_stream(self, parts: Sequence[Json]) -> Answer:
        texts, end, usage = list[str](), "", dict[str, object]()
        for part in parts:
            _raise_error(part)
            usage |= _map(_map(part.get("message")).get("usage")) | _map(part.get("usage"))
            delta = _map(part.get("delta"))
            texts.append(_text(delta.get("text")))
            end = _text(delta.get("stop_reason")) or end
        return self._finished("".join(texts), end, usage)

    def _finished(self, text: str, end: object, usage: Json) -> Answer:
        asked = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        counted = sum(_count(usage.get(name)) for name in asked), _count(usage.get("output_tokens"))
        return _answer(text, end, {"refusal"}, {"max_tokens", "model_context_window_exceeded"}, counted)


class _Ollama:
    """Ollama's own chat API, which takes the length of the context."""

    path = "/api/chat"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, model: str, turns: list[dict[str, str]], answer_tokens: int, context: int) -> dict[str, object]:
        options = {"num_ctx": context, "num_predict": answer_tokens}
        return {"model": model, "messages": turns, "stream": True, "options": options}

    def read_whole(self, answer: object) -> Answer:
        return self.read_stream([_map(answer)])

    def read_stream(self, parts: Sequence[Json]) -> Answer:
        texts, last = list[str](), dict[str, object]()
        for part in parts:
            _raise_error(part)
            texts.append(_text(_map(part.get("message")).get("content")))
            last = dict(part)
        counted = _count(last.get("prompt_eval_count")), _count(last.get("eval_count"))
        end = (_text(last.get("done_reason")) or "stop") if last.get("done") is True else ""
        return _answer("".join(texts), end, set(), {"length"}, counted)


FORMATS: dict[str, Format] = {"openai": _OpenAi(), "anthropic": _Anthropic(), "ollama": _Ollama()}
USUAL_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "ollama": "http://127.0.0.1:11434",
}
USUAL_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "ollama": ""}


def _answer(text: str, end: object, refused: set[str], cut: set[str], counted: tuple[int, int]) -> Answer:
    """The answer. Raises BadAnswer when it is none: refused, cut off, empty."""
    if end in refused:
        raise BadAnswer("it refused", sum(counted))
    if end in cut:
        raise BadAnswer("the answer was cut off: it is longer than allowed", sum(counted))
    if not end:
        raise BadAnswer("the answer broke off", sum(counted))
    if not text.strip():
        raise BadAnswer("the answer is empty", sum(counted))
    return Answer(text, *counted)


def _raise_error(part: Json) -> None:
    if error := part.get("error"):
        said = _text(_map(error).get("message")) or _text(error)
        raise BadAnswer(f"it says: {said or 'something failed'}")


def _map(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _first(value: object) -> dict[str, object]:
    return _map(value[0]) if isinstance(value, list) and value else {}


def _text(value: object) -> str:
    if isinstance(value, list):  # parts of a content
        return "".join(_text(_map(part).get("text")) for part in value)
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
