"""The report of attacks beside a task: published as a record, read from one, held against an own one."""

from __future__ import annotations

import shlex

import msgspec

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.attacks import counts_of
from autoresearch.ask.discussion import AttackView
from autoresearch.ask.runs.diffs import blob_text
from autoresearch.errors import NotFound, Refused
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import Note
from autoresearch.record.record import Record
from autoresearch.run.attack.report import MOST_BYTES, AttackReport, ComparedReport, holes_of, read_report
from autoresearch.run.attack.target import HOLE_SENTENCES
from autoresearch.task.model import Task


def publish_report(notebook: Notebook, task: Task, now_ms: int) -> Record:
    """Publish the report beside a task; the record of before where the newest own one is the same.

    Raises:
        NotFound: there is no report on this task in its folder.
        Refused: it states what can't be.
    """
    report = read_report(task.folder, task.digest.hex())
    if report is None:
        hint = f"autoresearch task attack {shlex.quote(str(task.folder))}"
        raise NotFound(f"{task.folder} holds no report of attacks on this task", hint=hint)
    body = Note(
        topic="insight",
        task=task.digest,
        text="; ".join([report.sentence, *(hole.sentence for hole in report.holes)])[:1000],
        metrics=dict(report.counts),
        attack=notebook.blobs.put(report.published),
    )
    if counts_of(body) is None:
        sentence = f"the report in {task.folder} states what can't be"
        raise Refused(sentence, hint=f"autoresearch task attack {shlex.quote(str(task.folder))} writes it anew")
    for before in notebook.log.texts.attack_reports(task.digest, limit=1, authors=[notebook.author]):
        record = notebook.log.records.get(before.id)
        if record.body_as(Note).attack == body.attack:
            return record
    return notebook.publish_note(body, now_ms)


def published_report(log: Log, blobs: BlobStore, record: Record) -> AttackReport:
    """The whole of a report that a record names; what is wrong and how to mend it is told in this program's words.

    Raises:
        NotFound: its file is not here (MissingBlob).
        Refused: the record is no report, or the file is too large or says something else than its record.
    """
    name, body = short_id(record.id), record.body
    if not isinstance(body, Note) or body.attack is None or body.task is None:
        raise Refused(f"{name} is no report of attacks", hint="autoresearch task reports")
    if body.attack.size > MOST_BYTES:
        raise Refused(f"the report {name} is larger than {MOST_BYTES >> 20} MiB", hint="trust none of it")
    try:
        text = blob_text(log, blobs, record.id, body.attack, f"the report {name}")
        report = msgspec.json.decode(text, type=AttackReport)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Refused(f"the report {name} can't be read: {error}", hint="trust none of it") from error
    if report.digest != body.task.hex() or report.counts != dict(body.metrics):
        raise Refused(f"the report {name} says something else than its record", hint="trust none of it")
    rows = [msgspec.structs.replace(row, folder="") for row in report.rows]
    holes = holes_of([row for row in rows if row.hole in HOLE_SENTENCES], {})
    return msgspec.structs.replace(report, rows=rows, holes=holes, others=())


def compared_with(own: AttackReport, view: AttackView, other: AttackReport) -> ComparedReport:
    """Another's report beside an own one: which attacks that both tried ended otherwise."""
    results = {row.name: row.result for row in other.rows if row.result != "not tried"}
    both = [row for row in own.rows if row.result != "not tried" and row.name in results]
    differing = [
        f"{row.name}: {results[row.name]} there, {row.result} here" for row in both if results[row.name] != row.result
    ]
    return ComparedReport(id=view.id, participant=view.participant, both=len(both), differing=differing)
