"""Notes on a task: found by their words, or by the run that is their evidence; and the body of a new one."""

from __future__ import annotations

from autoresearch.answers.references import resolve_reference
from autoresearch.answers.task_lookup import FoundTask, task_of
from autoresearch.api import NoteRequest, NotesAnswer, NoteView
from autoresearch.bounds import NOTE_CHARACTERS
from autoresearch.errors import UsageError
from autoresearch.log import Log
from autoresearch.records import Note, Record, Run, format_id, short_id
from autoresearch.views import in_snapshot, participant_of
from autoresearch.words import with_article

DEFAULT_NOTES = 20
# So many notes of a task are looked through at most, the newest first.
SEARCHED_MOST = 10_000
# A run's own notes are looked for among fewer: its page is opened often.
SEARCHED_OF_RUN = 500


@in_snapshot
def notes_answer(log: Log, task: FoundTask, *, query: str = "", limit: int = DEFAULT_NOTES) -> NotesAnswer:
    """The newest notes of a task, of those that hold all words of ``query``, in any case."""
    words = query.casefold().split()
    found = [
        record
        for record in log.records.newest(kind="note", task=task.digest, limit=SEARCHED_MOST)
        if _holds(record, words) and not log.records.is_withdrawn(record)
    ]
    views = [note_view(log, record) for record in found[:limit]]
    return NotesAnswer(task=task.name, query=query, notes=views)


def notes_of(log: Log, run: Record) -> list[NoteView]:
    """The newest notes whose evidence is a run."""
    assert isinstance(run.body, Run)
    near = log.records.newest(kind="note", task=run.body.task, limit=SEARCHED_OF_RUN)
    linked = [record for record in near if run.id in record.links]
    return [note_view(log, record) for record in linked if not log.records.is_withdrawn(record)]


def note_view(log: Log, record: Record) -> NoteView:
    """One note as people see it."""
    body = record.body
    assert isinstance(body, Note)
    task = task_of(log, body.task) if body.task else None
    return NoteView(
        id=format_id(record.id),
        time_ms=record.time,
        topic=body.topic,
        text=body.text,
        task=task.name if task else "",
        evidence=[format_id(link) for link in record.links],
        status=body.status,
        metrics=dict(body.metrics),
        author=record.author.hex(),
        participant=participant_of(log, record.author, record.time),
    )


def note_on(
    log: Log, request: NoteRequest, *, author: bytes | None, archived: frozenset[bytes] = frozenset()
) -> tuple[Note, bytes]:
    """The body of a note, and the run that is its evidence.

    Raises:
        NotFound: there is no such run.
        UsageError: it is no run, or the note has no text, or too much.
    """
    record = log.records.get(resolve_reference(log, request.run, author=author, archived=archived))
    if not isinstance(record.body, Run):
        hint = "autoresearch top lists runs"
        raise UsageError(f"{short_id(record.id)} is {with_article(record.kind)}, not a run", hint=hint)
    text = request.text.strip()
    if not text:
        raise UsageError("the note has no text", hint='autoresearch note RUN "what the run shows"')
    if len(text) > NOTE_CHARACTERS:
        raise UsageError(f"the note has {len(text)} characters, of {NOTE_CHARACTERS} at most", hint="write less")
    return Note(topic=request.topic, text=text, task=record.body.task), record.id


def _holds(record: Record, words: list[str]) -> bool:
    if not isinstance(record.body, Note):
        return False
    text = f"{record.body.topic} {record.body.text}".casefold()
    return all(word in text for word in words)
