"""Notes: what participants found out or suppose, with the records that are their evidence."""

from __future__ import annotations

from autoresearch.api.base import Answer
from autoresearch.api.participants import NOBODY, ParticipantView


class NoteView(Answer, frozen=True, kw_only=True):
    """One note: ``topic`` is "insight", "hypothesis" or "history" (past work). ``evidence`` are record ids.

    ``better`` and ``worse`` count the runs that cite it: better than their parent run, or failed or not better.
    """

    id: str
    time_ms: int
    topic: str
    text: str
    task: str = ""
    evidence: list[str] = []
    status: str = ""
    metrics: dict[str, int | float] = {}
    author: str
    participant: ParticipantView = NOBODY
    better: int = 0
    worse: int = 0


class NotesAnswer(Answer, frozen=True, kw_only=True):
    """Notes: without ``query`` newest first, else those that fit its words best. ``task`` is the name of their task."""

    schema: str = "autoresearch.notes/1"
    task: str
    query: str = ""
    notes: list[NoteView]


class NoteAnswer(Answer, frozen=True, kw_only=True):
    """A note was published."""

    schema: str = "autoresearch.note/1"
    note: NoteView
