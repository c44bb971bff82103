"""A question about the log, and what the log has to say to it."""

from __future__ import annotations

from autoresearch.api.base import Answer
from autoresearch.api.notes import NoteView


class TriedValue(Answer, frozen=True, kw_only=True):
    """A value of a parameter: how many runs had it, how many of them failed, their mean and the best with its run."""

    value: int | float | str | bool
    runs: int
    failed: int = 0
    mean: float | None = None
    best: float | None = None
    id: str


class TriedParameter(Answer, frozen=True, kw_only=True):
    """A parameter that the question names; ``values`` begin with the best, ``tried`` is how many there are in all."""

    name: str
    tried: int
    values: list[TriedValue]


class RunFound(Answer, frozen=True, kw_only=True):
    """A run whose text has words of the question."""

    id: str
    title: str
    status: str
    value: float | None = None
    hypothesis: str = ""
    reason: str = ""


class AskAnswer(Answer, frozen=True, kw_only=True):
    """What the log says to a question.

    ``text`` is what a language model made of it, with the records that it cites in ``cited``; ``reason`` says why there
    is no such text.
    """

    schema: str = "autoresearch.ask/1"
    task: str
    question: str
    parameters: list[TriedParameter]
    notes: list[NoteView]
    runs: list[RunFound]
    failures: list[RunFound]
    text: str = ""
    cited: list[str] = []
    model: str = ""
    reason: str = ""
