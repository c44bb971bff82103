"""Notes: what participants found out or suppose, with the records that are their evidence."""

from __future__ import annotations

from autoresearch.api.base import Answer
from autoresearch.api.participants import NOBODY, ParticipantView


class NoteView(Answer, frozen=True, kw_only=True):
    """One note: ``topic`` is "insight", "hypothesis" or "history" (past work). ``evidence`` are record ids."""

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


class NotesAnswer(Answer, frozen=True, kw_only=True):
    """Notes, newest first. ``task`` is the name of the task that they are on, ``query`` the words that they hold."""

    schema: str = "autoresearch.notes/1"
    task: str
    query: str = ""
    notes: list[NoteView]


class NoteAnswer(Answer, frozen=True, kw_only=True):
    """A note was published."""

    schema: str = "autoresearch.note/1"
    note: NoteView
