"""Participants as people read them: as much of the key as is needed to type it again, and the name beside it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.api import MarkView, ParticipantView
from autoresearch.words import RunState


def person(participant: ParticipantView) -> str:
    """One participant: ``88224d45 “ann”``. The name proves nothing, so the key comes first."""
    return f"{participant.short} “{participant.name}”" if participant.name else participant.short


def persons(known_as: Sequence[ParticipantView]) -> str:
    """One participant with all its root keys."""
    return ", ".join(person(who) for who in known_as)


def reproach(marks: Sequence[MarkView], banned_until_ms: int | None, now_ms: int) -> str:
    """What the log holds against a participant, in words for a table: its marks, and whether it is banned now."""
    banned = banned_until_ms is not None and banned_until_ms > now_ms
    return ", ".join(filter(None, (mark_words(marks), str(RunState.BANNED) if banned else "")))


def mark_words(marks: Sequence[MarkView]) -> str:
    """Marks in words, each once with how often."""
    words = [mark.mark for mark in marks]
    return ", ".join(
        word if words.count(word) == 1 else f"{word} ×{words.count(word)}" for word in dict.fromkeys(words)
    )
