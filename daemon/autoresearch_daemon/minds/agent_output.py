"""What a coding agent printed: its last words as clean text, and what it says that it cost. Pure.

Of Claude Code (``--output-format json`` and ``stream-json``), Codex (``exec --json``) and Gemini CLI (``--output-format
json`` and ``stream-json``) the JSON is read. Of others the text is, without what only a terminal shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x0c\x0e-\x1a]"
)
# What stays of a line that a program wrote over itself, where it shows how far it is.
_PROGRESS = re.compile(r"\d ?%|\d/\d|[█▏▎▍▌▋▊▉━]|[#=>.-]{5,}")
_BEGIN = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
# Places where a text looks like JSON and is none, until it is read as text.
_TRIES = 60
_DECODER = json.JSONDecoder(strict=False)
_WORDS = ("result", "response", "summary", "message", "text", "content", "output")


class AgentOutput(NamedTuple):
    """``cost`` is None where it states none, in the unit of its own prices; ``error`` is why it says that it failed."""

    text: str
    tokens: int = 0
    cost: float | None = None
    error: str = ""


def read_output(output: str) -> AgentOutput:
    """What an agent printed."""
    events = list(_events(output))
    made = _claude(events) or _codex(events) or _gemini(events)
    if made is None and events:
        made = AgentOutput(next((words for event in reversed(events) if (words := _words(event))), ""))
    return AgentOutput(clean(output)) if made is None else made._replace(text=clean(made.text), error=clean(made.error))


def clean(text: str) -> str:
    """A text without escape sequences; of a line that was written over itself what stayed, if that is no progress."""
    lines = []
    for line in _ESCAPE.sub("", text).replace("\r\n", "\n").split("\n"):
        written = [part for part in line.split("\r") if part.strip()]
        if not line.strip("\r"):
            lines.append("")
        elif len(written) > 1 or line.startswith("\r"):
            lines += [part for part in written[-1:] if not _PROGRESS.search(part)]
        else:
            lines += written
    return "\n".join(lines)


def _events(output: str) -> Iterator[Mapping[str, object]]:
    """The JSON objects that lines begin with."""
    at = tries = 0
    while tries < _TRIES and (begin := _BEGIN.search(output, at)):
        try:
            value, at = _DECODER.raw_decode(output, begin.end() - 1)
        except (ValueError, RecursionError):
            at, tries = begin.end(), tries + 1
            continue
        yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict))


def _claude(events: list[Mapping[str, object]]) -> AgentOutput | None:
    last = next((event for event in reversed(events) if event.get("type") == "result" and "is_error" in event), None)
    if last is None:
        return None
    usage, cost = _map(last.get("usage")), last.get("total_cost_usd")
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    text = _text(last.get("result"))
    error = text or _text(last.get("subtype")).replace("_", " ") if last["is_error"] else ""
    stated = float(cost) if isinstance(cost, int | float) and cost >= 0 else None
    return AgentOutput(text, sum(_count(usage.get(name)) for name in names), stated, error)


def _codex(events: list[Mapping[str, object]]) -> AgentOutput | None:
    if not any(event.get("type") in ("thread.started", "turn.started", "turn.completed") for event in events):
        return None
    text, tokens, error = "", 0, ""
    for event in events:
        item = _map(event.get("item"))
        if event.get("type") == "item.completed" and (item.get("type") or item.get("item_type")) in (
            "agent_message",
            "assistant_message",
        ):
            text = _text(item.get("text"))
        elif event.get("type") == "turn.completed":  # cached tokens are among those of the input
            usage = _map(event.get("usage"))
            tokens += _count(usage.get("input_tokens")) + _count(usage.get("output_tokens"))
        elif event.get("type") in ("turn.failed", "error"):
            error = _text(_map(event.get("error")).get("message")) or _text(event.get("message")) or "the turn failed"
    return AgentOutput(text, tokens, None, error)


def _gemini(events: list[Mapping[str, object]]) -> AgentOutput | None:
    whole = next((event for event in reversed(events) if "response" in event or "stats" in event), None)
    if whole is None:
        return None
    stats, failure = _map(whole.get("stats")), whole.get("error")
    models = [_map(_map(model).get("tokens")) for model in _map(stats.get("models")).values()]
    tokens = _count(stats.get("total_tokens")) or sum(_count(model.get("total")) for model in models)
    messages = [event for event in events if event.get("type") == "message" and event.get("role") == "assistant"]
    text = _text(whole.get("response")) or "".join(_text(event.get("content")) for event in messages)
    return AgentOutput(text, tokens, None, _text(_map(failure).get("message")) or _text(failure))


def _words(event: Mapping[str, object]) -> str:
    """What an event of an agent that is not known says, or an empty text."""
    inner = [event, *(value for value in event.values() if isinstance(value, dict))]
    return next((_text(each.get(name)) for name in _WORDS for each in inner if _text(each.get(name))), "")


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
