"""How each chat API has a request, an answer and a call of a tool: OpenAI-compatible, Anthropic's and Ollama's. Pure.

Sources: the chat completions reference of OpenAI, the messages reference of Anthropic, ``/api/chat`` of Ollama.

A conversation is a list of messages as the API has them. What a model said goes back as it came, its thoughts too:
Anthropic refuses the answer to a call of a tool without them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from autoresearch.text import read_json

Json = Mapping[str, object]
Message = dict[str, object]


class BadAnswer(Exception):
    """An answer that can't be used. ``tokens`` is what was counted all the same."""

    def __init__(self, sentence: str, tokens: int = 0) -> None:
        super().__init__(sentence)
        self.tokens = tokens


class Tool(NamedTuple):
    """What a model may call. ``parameters`` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Json


class FunctionCall(NamedTuple):
    """A call of a tool; ``arguments`` is JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model said, and how many tokens were counted for question and answer.

    ``message`` is the same as the API has it, to go on with.
    """

    text: str
    tokens_in: int
    tokens_out: int
    calls: tuple[FunctionCall, ...] = ()
    message: Message = field(default_factory=dict, compare=False)


class Format(Protocol):
    """One API."""

    path: str

    def headers(self, key: str) -> dict[str, str]:
        """The headers of a request."""

    def body(self, model: str, messages: list[Message], answer_tokens: int, context: int) -> Message:
        """The JSON of a request."""

    def tool(self, tool: Tool) -> Json:
        """A tool, as a request offers it."""

    def results(self, calls: Sequence[FunctionCall], texts: Sequence[str]) -> list[Message]:
        """The messages that answer calls."""

    def read_whole(self, answer: object) -> Completion:
        """The answer, of a server that does not stream."""

    def read_stream(self, parts: Sequence[Json]) -> Completion:
        """The answer, from the parts of a stream. Raises BadAnswer where it breaks off."""


class _OpenAi:
    """Chat completions, of OpenAI and of the many servers that speak like it."""

    path = "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, model: str, messages: list[Message], answer_tokens: int, context: int) -> Message:
        # Newer models refuse a temperature and the old name of the bound, older servers the new one: neither is sent.
        del answer_tokens, context
        return {"model": model, "messages": messages, "stream": True, "stream_options": {"include_usage": True}}

    def tool(self, tool: Tool) -> Json:
        return {"type": "function", "function": tool._asdict()}

    def results(self, calls: Sequence[FunctionCall], texts: Sequence[str]) -> list[Message]:
        return [
            {"role": "tool", "tool_call_id": call.id, "content": text} for call, text in zip(calls, texts, strict=True)
        ]

    def read_whole(self, answer: object) -> Completion:
        choice = _first(_map(answer).get("choices"))
        return self._finished(_map(choice.get("message")), choice.get("finish_reason") or "stop", _map(answer))

    def read_stream(self, parts: Sequence[Json]) -> Completion:
        texts: defaultdict[str, str] = defaultdict(str)
        calls: defaultdict[object, Message] = defaultdict(lambda: {"id": "", "name": "", "arguments": ""})
        end, usage = "", dict[str, object]()
        for part in parts:
            _raise_error(part)
            usage = {"usage": part["usage"]} if part.get("usage") else usage
            choice = _first(part.get("choices"))
            delta = _map(choice.get("delta"))
            for name in ("content", "refusal", "reasoning_content"):
                texts[name] += _text(delta.get(name))
            for piece in _maps(delta.get("tool_calls")):
                function, index, call_id = _map(piece.get("function")), piece.get("index"), _text(piece.get("id"))
                # Some servers give all calls the same index.
                is_another = bool(call_id) and calls[index]["id"] not in ("", call_id)
                call = calls[(index, call_id) if is_another else index]
                call["id"] = call_id or call["id"]
                call["name"] = _text(function.get("name")) or call["name"]
                call["arguments"] = f"{call['arguments']}{_text(function.get('arguments'))}"
            # Some servers end with [DONE] alone.
            end = _text(choice.get("finish_reason")) or end or ("stop" if part.get("done") is True else "")
        made = [{"id": call["id"], "function": call} for call in calls.values()]
        return self._finished({**texts, "tool_calls": made}, end, usage)

    def _finished(self, answer: Json, end: object, whole: Json) -> Completion:
        _raise_error(whole)
        usage = _map(whole.get("usage"))
        counted = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        if refusal := _text(answer.get("refusal")):
            raise BadAnswer(f"it refused: {refusal}", sum(counted))
        calls = _function_calls(answer)
        text = _text(answer.get("content"))
        message: Message = {"role": "assistant", "content": text}
        if calls:
            functions = [{"name": call.name, "arguments": call.arguments} for call in calls]
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": function}
                for call, function in zip(calls, functions, strict=True)
            ]
            if thoughts := _text(answer.get("reasoning_content")):
                message["reasoning_content"] = thoughts
        return _answer(text, calls, message, end, {"content_filter"}, {"length"}, counted)


# What a piece of a stream adds to, and in which kind of block.
_DELTAS = {"text": "text", "thinking": "thinking", "signature": "thinking", "partial_json": "tool_use"}


class _Anthropic:
    """Messages of Anthropic."""

    path = "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def body(self, model: str, messages: list[Message], answer_tokens: int, context: int) -> Message:
        del context
        return {"model": model, "messages": messages, "max_tokens": answer_tokens, "stream": True}

    def tool(self, tool: Tool) -> Json:
        return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}

    def results(self, calls: Sequence[FunctionCall], texts: Sequence[str]) -> list[Message]:
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": text}
            for call, text in zip(calls, texts, strict=True)
        ]
        return [{"role": "user", "content": results}]

    def read_whole(self, answer: object) -> Completion:
        whole = _map(answer)
        _raise_error(whole)
        return self._finished(_maps(whole.get("content")), whole.get("stop_reason"), _map(whole.get("usage")))

    def read_stream(self, parts: Sequence[Json]) -> Completion:
        blocks, end, usage = list[Message](), "", dict[str, object]()
        for part in parts:
            _raise_error(part)
            usage |= _map(_map(part.get("message")).get("usage")) | _map(part.get("usage"))
            if block := _map(part.get("content_block")):
                blocks.append(dict(block))
            delta = _map(part.get("delta"))
            for kind, name in (
                ("text", "text"),
                ("thinking", "thinking"),
                ("thinking", "signature"),
                ("tool_use", "partial_json"),
            ):
                if piece := _text(delta.get(name)):
                    if not blocks or blocks[-1].get("type") != kind:
                        blocks.append({"type": kind})
                    blocks[-1][name] = f"{_text(blocks[-1].get(name))}{piece}"
            end = _text(delta.get("stop_reason")) or end or ("end_turn" if part.get("type") == "message_stop" else "")
        return self._finished(blocks, end, usage)

    def _finished(self, blocks: Sequence[Message], end: object, usage: Json) -> Completion:
        input_names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        counted = sum(_count(usage.get(name)) for name in input_names), _count(usage.get("output_tokens"))
        calls, content = list[FunctionCall](), list[Message]()
        for block in blocks:
            if block.get("type") == "tool_use":
                arguments = _text(block.get("partial_json")) or json.dumps(block.get("input") or {})
                calls.append(FunctionCall(_text(block.get("id")), _text(block.get("name")), arguments))
                content.append(
                    {key: block.get(key) for key in ("type", "id", "name")} | {"input": _arguments(arguments)}
                )
            elif block.get("type") != "text" or _text(block.get("text")):
                content.append(block)
        text = "".join(_text(block.get("text")) for block in blocks)
        message: Message = {"role": "assistant", "content": content}
        refused, cut = {"refusal"}, {"max_tokens", "model_context_window_exceeded"}
        return _answer(text, calls, message, end, refused, cut, counted)


class _Ollama:
    """Ollama's own chat API, which takes the length of the context."""

    path = "/api/chat"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, model: str, messages: list[Message], answer_tokens: int, context: int) -> Message:
        options = {"num_ctx": context, "num_predict": answer_tokens}
        return {"model": model, "messages": messages, "stream": True, "options": options}

    def tool(self, tool: Tool) -> Json:
        return FORMATS["openai"].tool(tool)

    def results(self, calls: Sequence[FunctionCall], texts: Sequence[str]) -> list[Message]:
        return [
            {"role": "tool", "tool_name": call.name, "content": text} for call, text in zip(calls, texts, strict=True)
        ]

    def read_whole(self, answer: object) -> Completion:
        return self.read_stream([_map(answer)])

    def read_stream(self, parts: Sequence[Json]) -> Completion:
        texts, made, last = list[str](), list[Message](), dict[str, object]()
        for part in parts:
            _raise_error(part)
            message = _map(part.get("message"))
            texts.append(_text(message.get("content")))
            made += _maps(message.get("tool_calls"))
            last = dict(part)
        counted = _count(last.get("prompt_eval_count")), _count(last.get("eval_count"))
        end = (_text(last.get("done_reason")) or "stop") if last.get("done") is True else ""
        text = "".join(texts)
        whole: Message = {"role": "assistant", "content": text} | ({"tool_calls": made} if made else {})
        return _answer(text, _function_calls(whole), whole, end, set(), {"length"}, counted)


FORMATS: dict[str, Format] = {"openai": _OpenAi(), "anthropic": _Anthropic(), "ollama": _Ollama()}
USUAL_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "ollama": "http://127.0.0.1:11434",
}
USUAL_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "ollama": ""}


def _answer(
    text: str,
    calls: Sequence[FunctionCall],
    message: Message,
    end: object,
    refused: set[str],
    cut: set[str],
    counted: tuple[int, int],
) -> Completion:
    """The answer. Raises BadAnswer when it is none: refused, cut off, empty."""
    if end in refused:
        raise BadAnswer("it refused", sum(counted))
    if end in cut:
        raise BadAnswer("the answer was cut off: it is longer than allowed", sum(counted))
    if not end:
        raise BadAnswer("the answer broke off", sum(counted))
    if not text.strip() and not calls:
        raise BadAnswer("the answer is empty", sum(counted))
    return Completion(text, *counted, tuple(calls), message)


def _function_calls(message: Json) -> list[FunctionCall]:
    """The calls in a message of OpenAI, whose arguments are text, or of Ollama, where they are an object."""
    calls = list[FunctionCall]()
    for number, each in enumerate(_maps(message.get("tool_calls"))):
        function = _map(each.get("function"))
        arguments = function.get("arguments")
        written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        calls.append(FunctionCall(_text(each.get("id")) or f"call_{number}", _text(function.get("name")), written))
    return calls


def _arguments(text: str) -> Json:
    """The arguments of a call; none where they are no JSON object."""
    try:
        return _map(read_json(text))
    except ValueError:
        return {}


def _raise_error(part: Json) -> None:
    if error := part.get("error"):
        sentence = _text(_map(error).get("message")) or _text(error)
        raise BadAnswer(f"it says: {sentence or 'something failed'}")


def _map(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _first(value: object) -> dict[str, object]:
    return _map(value[0]) if isinstance(value, list) and value else {}


def _maps(value: object) -> list[Message]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    if isinstance(value, list):  # parts of a content
        return "".join(_text(_map(part).get("text")) for part in value)
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
