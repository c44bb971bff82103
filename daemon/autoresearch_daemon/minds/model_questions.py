"""What a model may ask of the log before it answers: questions that coding agents have too, as tools, within bounds.

Text of participants comes in the same fences as in the prompt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from autoresearch.ask import questions, requests
from autoresearch.ask.acts.suggesting import suggest
from autoresearch.ask.desk import Desk
from autoresearch.ask.requests import SUGGESTIONS_MOST
from autoresearch.errors import AutoresearchError
from autoresearch.propose.mind.brief import fenced
from autoresearch.propose.mind.recall import curve_row
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import Run
from autoresearch.task.model import Task
from autoresearch.text import read_json
from autoresearch_daemon.minds.chat_formats import FunctionCall, Tool

# One answer has no more; a page of a text says where the next one begins.
ANSWER_BYTES = 8 << 10
ROWS_MAX, RUNS_MAX, TEXT_CHARACTERS = 30, 8, 400
_RUN = {"type": "string", "description": "the id of a run, or @ for the best"}


def _schema(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


_READ_RUN = Tool(
    "read_run",
    "One run: its values, settings, parent and why it was tried; or a page of its program, or of what it printed.",
    _schema(
        run=_RUN,
        part={"type": "string", "enum": ["facts", "source", "log"]},
        offset={"type": "integer", "description": "from which character on a page of source or log begins"},
    ),
)
_DIFF = Tool(
    "diff",
    "What changed from one run's program to another's. Without old: from its parent.",
    _schema(old=_RUN, new=_RUN),
)
_EFFECTS = Tool(
    "effects", "What each setting did, over all pairs of a run and its parent, the surest help first.", _schema()
)
_SUGGESTIONS = Tool(
    "suggestions",
    "Changes of settings that the built-in search would try next, with the value that it expects.",
    _schema(count={"type": "integer"}),
)
_CURVES = Tool(
    "curves",
    "How the value fell or rose during some runs, as up to 12 numbers each.",
    _schema(runs={"type": "array", "items": _RUN}),
)


@dataclass(slots=True)
class ModelQuestions:
    """The tools of one change, and what may still be asked: so many calls, so many bytes of answers."""

    answers: Sequence[tuple[Tool, Callable[[dict[str, Any]], str]]] = ()
    calls_left: int = 0
    bytes_left: int = 0
    _refused: int = 0

    @property
    def tools(self) -> list[Tool]:
        """What the model is offered."""
        return [tool for tool, _ in self.answers]

    @property
    def is_exhausted(self) -> bool:
        """Whether it goes on asking though it was told that it may not."""
        return self._refused > 1

    def is_one(self, call: FunctionCall) -> bool:
        """Whether a call is a question, and no edit."""
        return any(tool.name == call.name for tool in self.tools)

    def answer(self, call: FunctionCall) -> str:
        """The answer to a call, or why there is none."""
        question = next((ask for tool, ask in self.answers if tool.name == call.name), None)
        if self.calls_left < 1 or self.bytes_left < 1:
            self._refused += 1
            return "There are no more questions. Answer now, in the form that was asked for."
        self.calls_left -= 1
        try:
            arguments = read_json(call.arguments or "{}")
            if question is None or not isinstance(arguments, dict):
                raise ValueError
            text = question(arguments)
        except AutoresearchError as error:
            text = error.with_hint
        except (ValueError, TypeError, msgspec.ValidationError):
            text = f"{call.name} can't be called with {call.arguments[:200]}."
        content = text.encode()[: min(ANSWER_BYTES, self.bytes_left)].decode(errors="ignore")
        self.bytes_left -= len(content)
        return f"{content}\n({self.calls_left} more questions)"


NO_QUESTIONS = ModelQuestions()


def questions_about(desk: Desk, task: Task, calls: int, most_bytes: int) -> ModelQuestions:
    """What a model may ask about a task; nothing where it has no calls."""
    if calls < 1:
        return NO_QUESTIONS
    name = task.digest.hex()

    def read_run(arguments: dict[str, Any]) -> str:
        record = requests.OneRecord(id=str(arguments.get("run") or "@"), task=name)
        if arguments.get("part") in ("source", "log"):
            operation = questions.source if arguments["part"] == "source" else questions.training_log
            text, offset = operation(desk, record), max(0, int(arguments.get("offset") or 0))
            page = text[offset : offset + ANSWER_BYTES - 500]
            more = f"\n{len(text) - offset - len(page)} more characters." if len(text) > offset + len(page) else ""
            return f"{fenced(page)}{more}"
        view = questions.run(desk, record).run
        return _short({"run": view.run, "standing": view.standing} if view else {})

    def diff(arguments: dict[str, Any]) -> str:
        old = str(arguments["old"]) if arguments.get("old") else None
        answer = questions.diff(desk, requests.Difference(old=old, new=str(arguments.get("new") or "@"), task=name))
        numbers = {"old": answer.old_numbers, "new": answer.new_numbers, "change": answer.change}
        return f"{_short(numbers)}\n{fenced(answer.diff, 'diff')}"

    def effects(_: dict[str, Any]) -> str:
        return _short(questions.effects(desk, requests.OfTask(task=name)).effects[:ROWS_MAX])

    def suggestions(arguments: dict[str, Any]) -> str:
        count = max(1, min(int(arguments.get("count") or 3), SUGGESTIONS_MOST))
        return _short(suggest(desk.log, desk.blobs, task, count, {}, me=desk.me, now_ms=desk.now_ms()).suggestions)

    def curves(arguments: dict[str, Any]) -> str:
        runs = arguments.get("runs") or ["@"]
        ids = [desk.record(str(run), name) for run in (runs if isinstance(runs, list) else [runs])[:RUNS_MAX]]
        bodies = [(run, desk.log.records.get(run).body) for run in ids]
        rows = [curve_row(short_id(run), body) for run, body in bodies if isinstance(body, Run)]
        return fenced("\n".join(filter(None, rows)) or "none of these runs has a curve")

    answers = (_READ_RUN, read_run), (_DIFF, diff), (_EFFECTS, effects), (_SUGGESTIONS, suggestions), (_CURVES, curves)
    return ModelQuestions(answers, calls, most_bytes)


def _short(answer: object) -> str:
    """An answer as JSON without what says nothing, in a fence."""
    return fenced(json.dumps(_filled(msgspec.to_builtins(answer)), ensure_ascii=False))


def _filled(value: object) -> object:
    match value:
        case dict():
            filled = {name: _filled(inner) for name, inner in value.items() if inner not in (None, "", [], {}, False)}
            return {name: inner for name, inner in filled.items() if name != "schema"}
        case list():
            return [_filled(inner) for inner in value]
        case float():
            return float(f"{value:.6g}")
        case str():
            return value[:TEXT_CHARACTERS]
    return value
