"""Notes as lines."""

from __future__ import annotations

from autoresearch.api import ClaimsAnswer, NotesAnswer, NoteView
from autoresearch.figures import duration, lately, moment
from autoresearch.sanitise import one_line
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.names import person
from autoresearch_cli.rendering.output import is_rich, print_rows, print_table

# The rest of a note stands in `show`.
TEXT_CHARACTERS = 240


def print_notes(answer: NotesAnswer, *, now_ms: int) -> None:
    """Notes, newest first; whole for a program."""
    if not is_rich():
        print_rows(_cells(note) for note in answer.notes)
        return
    rows = [
        (
            short(note.id),
            note.topic,
            lately(note.time_ms, now_ms),
            person(note.participant),
            " ".join(map(short, note.evidence)),
            cited(note),
            one_line(note.text, TEXT_CHARACTERS),
        )
        for note in answer.notes
    ]
    print_table(("id", "topic", "when", "by", "evidence", "cited", "text"), rows, optional=("by", "cited"))


def print_claims(answer: ClaimsAnswer, *, now_ms: int) -> None:
    """Claims, those that end first at the top; whole for a program."""
    if not is_rich():
        print_rows(
            (one.id, one.title, moment(one.until_ms), one.author, one.replicate, one.source_digest, one.participant.key)
            for one in answer.claims
        )
        return
    rows = [
        (
            short(one.id),
            f"{duration(one.until_ms - now_ms)} left",
            "this node" if one.is_own else person(one.participant),
            one_line(one.title, TEXT_CHARACTERS) or "a change without a title",
        )
        for one in answer.claims
    ]
    print_table(("id", "until", "by", "title"), rows)


def note_line(note: NoteView, now_ms: int) -> str:
    """One note in a line, below the run that is its evidence."""
    text = one_line(note.text, TEXT_CHARACTERS)
    return f"{short(note.id)} {note.topic}: {text}, by {person(note.participant)}, {lately(note.time_ms, now_ms)}"


def cited(note: NoteView) -> str:
    """What became of the runs that cite a note; empty where none does."""
    return f"{note.better} better, {note.worse} not" if note.better or note.worse else ""


def _cells(note: NoteView) -> tuple[object, ...]:
    said = (note.id, note.topic, moment(note.time_ms), note.author, " ".join(note.evidence), note.text)
    return (*said, note.status, note.participant.key, note.participant.name, note.better, note.worse)
