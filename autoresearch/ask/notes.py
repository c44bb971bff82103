"""Notes on a task: found by words or by the run that is their evidence, the best first; and the body of a new one."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from autoresearch.ask.discussion import CitingRun, NotesAnswer, NoteView
from autoresearch.ask.lookup import FoundTask, find_task, task_of
from autoresearch.ask.people.claims import own_record
from autoresearch.ask.requests import NoteRequest
from autoresearch.ask.runs.boards import resolve_reference
from autoresearch.errors import Refused, UsageError
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import in_snapshot
from autoresearch.log.standing.context import TrustContext, participant_of, trust_context, trusted_authors
from autoresearch.log.standing.credit import Citations, citations, is_heard
from autoresearch.log.tables.texts import FoundText
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Note, Run
from autoresearch.record.record import Record
from autoresearch.text import NOTE_CHARACTERS
from autoresearch.words import with_article

DEFAULT_NOTES = 20
# A run's own notes are looked for among so many: its page is opened often.
SEARCHED_OF_RUN = 500
# Of so many that fit the words best, what became of the runs that cite them is asked.
WEIGHED = 200
# So many of the runs that cite a note are named.
SHOWN_CITING = 5
NOT_CITED = Citations()


@in_snapshot
def notes_answer(
    log: Log, task: FoundTask, *, query: str = "", topic: str = "", limit: int = DEFAULT_NOTES, me: bytes | None = None
) -> NotesAnswer:
    """Notes of a task, of a topic or of all.

    Without ``query`` the newest, else those with all of its words, or if none has all, with some. The best fit comes
    first, and whose citing runs were better than their parents; strangers' come last, where trust names anybody. Any
    text may be asked for.
    """
    trust = trust_context(log, me)
    if not query.strip():
        notes = _newest(log, task, trust, me, limit, topic)
    else:
        notes = search_notes(log, task, query, trust, me=me, limit=limit)
        notes = notes or search_notes(log, task, query, trust, me=me, limit=limit, every=False)
    cited = citations(log, task.digest, [note.id for note in notes], trust, me=me)
    views = [note_view(log, log.records.get(note.id), cited.get(note.id, NOT_CITED)) for note in notes]
    if query.strip() and topic:
        views = [view for view in views if view.topic == topic]
    hidden = log.texts.count_hidden_notes(task.digest)
    return NotesAnswer(task=task.name, query=query, notes=views, hidden=hidden)


def search_notes(
    log: Log,
    task: FoundTask,
    words: str,
    trust: TrustContext,
    *,
    me: bytes | None,
    limit: int,
    every: bool = True,
    strangers: bool = True,
) -> list[FoundText]:
    """The notes with these words, the most useful first; ``every``: with all of them."""
    most = max(limit, WEIGHED)

    def read(authors: Collection[bytes] | None) -> list[FoundText]:
        return log.texts.search(task.digest, "note", words, limit=most, authors=authors, every=every)

    notes = read(trusted_authors(trust, me))
    if not strangers:
        notes = [note for note in notes if is_heard(note.author, note.time, trust, me)]
    elif len(notes) < most:
        notes += _others(read(None), notes)
    cited = citations(log, task.digest, [note.id for note in notes], trust, me=me)

    def order(note: FoundText) -> tuple[bool, float, int, bytes]:
        runs = cited.get(note.id, NOT_CITED)
        useful = (1 + runs.better) / (1 + runs.worse)
        return not is_heard(note.author, note.time, trust, me), note.distance * useful, -note.time, note.id

    return sorted(notes, key=order)[:limit]


def _newest(
    log: Log, task: FoundTask, trust: TrustContext, me: bytes | None, limit: int, topic: str
) -> list[FoundText]:
    notes = log.texts.newest_notes(task.digest, limit=limit, authors=trusted_authors(trust, me), topic=topic)
    if len(notes) >= limit:
        return notes
    others = log.texts.newest_notes(task.digest, limit=limit + len(notes), topic=topic)
    return [*notes, *_others(others, notes)][:limit]


def _others(notes: Collection[FoundText], excluded: Collection[FoundText]) -> list[FoundText]:
    ids = {note.id for note in excluded}
    return [note for note in notes if note.id not in ids]


def notes_of(log: Log, run: Record) -> list[NoteView]:
    """The newest notes whose evidence is a run."""
    assert isinstance(run.body, Run)
    near = log.records.newest(kind="note", task=run.body.task, limit=SEARCHED_OF_RUN, visible=True)
    linked = [record for record in near if run.id in record.links and record.body_as(Note).attack is None]
    return [note_view(log, record) for record in linked if not log.records.is_withdrawn(record)]


def note_view(log: Log, record: Record, cited: Citations = NOT_CITED) -> NoteView:
    """One note as people see it, with what became of the runs that cite it."""
    body = record.body_as(Note)
    task = task_of(log, body.task) if body.task else None
    hidden = log.hidden.of([citation.run for citation in cited.runs])
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
        better=cited.better,
        worse=cited.worse,
        cited_by=[
            CitingRun(id=format_id(citation.run), title=run.title, better=citation.better)
            for citation in cited.runs
            if citation.run not in hidden and isinstance(run := log.records.get(citation.run).body, Run)
        ][:SHOWN_CITING],
        state=cited.state if body.topic == "hypothesis" else "",
    )


def note_on(
    log: Log, request: NoteRequest, *, author: bytes | None, archived: frozenset[bytes] = frozenset()
) -> tuple[Note, tuple[bytes, ...], Record | None]:
    """The body of a note, the runs that are its evidence, and the note that it takes the place of.

    It is on the task of the evidence, or else on the one that is named.

    Raises:
        NotFound: there is no such run, task or note.
        UsageError: the evidence is no run, or of several tasks; or the note has no text, or too much.
        Refused: the note to be replaced is not one of this device, is withdrawn, or runs cite it.
    """
    text = request.text.strip()
    if not text:
        raise UsageError("the note has no text", hint='autoresearch note add RUN "what the run shows"')
    if len(text) > NOTE_CHARACTERS:
        raise UsageError(f"the note has {len(text)} characters, of {NOTE_CHARACTERS} at most", hint="write less")
    if request.instead_of:
        before = own_record(log, request.instead_of, author, archived=archived)
        name, body = short_id(before.id), before.body
        if not isinstance(body, Note) or body.hides is not None or body.attack is not None:
            kind = with_article(before.kind) if not isinstance(body, Note) else "a list or a report"
            raise UsageError(f"{name} is {kind}, no note to read", hint="autoresearch note list")
        if request.evidence or request.task:
            raise UsageError("a note in place of another has its evidence and its task", hint="leave both out")
        if next(iter(log.mentions.runs_that_link(before.id)), None) is not None:
            raise Refused(f"runs cite {name}: without it nobody could read what they tried", hint="write a new note")
        return msgspec.structs.replace(body, topic=request.topic or body.topic, text=text), tuple(before.links), before
    named = find_task(log, request.task, author=author, archived=archived) if request.task else None
    evidence = tuple(
        dict.fromkeys(
            resolve_reference(log, run, task=named, author=author, archived=archived) for run in request.evidence
        )
    )
    tasks = {_task_of_run(log, run) for run in evidence} | ({named.digest} if named else set())
    if len(tasks) > 1:
        raise UsageError("the evidence is on several tasks", hint="a note is on one task: leave --task or a run out")
    task = next(iter(tasks), None) or find_task(log, author=author, archived=archived).digest
    return Note(topic=request.topic or "insight", text=text, task=task), evidence, None


def _task_of_run(log: Log, run: bytes) -> bytes:
    record = log.records.get(run)
    if not isinstance(record.body, Run):
        hint = "autoresearch top lists runs"
        raise UsageError(f"{short_id(record.id)} is {with_article(record.kind)}, not a run", hint=hint)
    return record.body.task
