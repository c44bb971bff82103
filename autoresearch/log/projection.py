"""What each kind of record adds to the tables of the views. Pure: a record in, rows out."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import msgspec

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question, seeds
from autoresearch.judging.statistics import task_rules
from autoresearch.record import kinds
from autoresearch.record.encoding import encode
from autoresearch.record.record import Record
from autoresearch.task.model import has_chosen_seed
from autoresearch.task.release import component_of, content_digest, version_key
from autoresearch.words import RunStatus

# Tables with one row for a record, which a withdrawal by its author takes away, and the author's place in the row.
WITHDRAWABLE = {
    "run": 11,
    "task": 4,
    "claim": 5,
    "note": 4,
    "text_index": 2,
    "component_release": 2,
    "release_index": 2,
    "yank": 2,
}
# Tables that a withdrawal leaves alone. Who verified wrongly, or made up a lineage, can't make it unsaid.
EVIDENCE = ("withdrawal", "rules", "delegation", "merge", "verification", "commitment", "fraud", "lineage", "mention")
# The topic of a note's row where it is the report of attacks on its task.
ATTACK = "attack"
# So many links of a run, besides its parent, say what its author had seen.
MENTIONS_MOST = 8
# So many verified proofs are kept in memory.
_PROOFS_MAX = 16_384
COLUMNS = {
    "run": 20,
    "task": 9,
    "claim": 9,
    "note": 6,
    "verification": 10,
    "withdrawal": 3,
    "rules": 7,
    "delegation": 3,
    "merge": 4,
    "commitment": 10,
    "fraud": 5,
    "lineage": 2,
    "mention": 2,
    "component_release": 9,
    "yank": 5,
}
INSERTS = {table: f"INSERT INTO {table} VALUES({', '.join('?' * columns)})" for table, columns in COLUMNS.items()}
# Id and author of its rows stand with the record.
INSERTS["text_index"] = "INSERT INTO text_index(rowid, marks, text) VALUES(?1, ?4, ?5)"
INSERTS["release_index"] = (
    "INSERT INTO release_index(rowid, type, name, description, author) VALUES(?1, ?4, ?5, ?6, ?7)"
)

Row = tuple[object, ...]
_json = msgspec.json.Encoder()


def rows(n: int, record: Record) -> list[tuple[str, Row]]:
    """The rows of a record, each with its table. ``n`` is the record's row number."""
    body = record.body
    if isinstance(body, kinds.Run):
        named: list[tuple[str, Row]] = [("lineage", (n, body.parent))] if body.parent else []
        seen = dict.fromkeys(link for link in record.links if link != body.parent)
        named += [("mention", (run, n)) for run in list(seen)[:MENTIONS_MOST]]
        of_run = [("run", _run(n, record, body)), ("text_index", _words_of_run(n, record, body))]
        return [*of_run, *_fraud(n, record, holds=has_chosen_seed(body)), *named]
    if isinstance(body, kinds.Claim):
        own = (body.task, body.source_digest, body.replicate, record.author, record.time, body.until, body.title)
        return [("claim", (n, record.id, *own))]
    if isinstance(body, kinds.Note):
        about = (record.author, record.time)
        if body.attack is not None:  # no words of it are searched, or told to a model
            return [("note", (n, record.id, body.task, ATTACK, *about))]
        return [
            ("note", (n, record.id, body.task, body.topic, *about)),
            ("text_index", _words_of_note(n, record, body)),
        ]
    if isinstance(body, kinds.Verification):
        return _verification(n, record, body)
    if isinstance(body, kinds.Commitment):
        return [("commitment", _commitment(n, record, body))]
    if isinstance(body, kinds.Task):
        return _task(n, record, body)
    if isinstance(body, kinds.Release):
        return _release(n, record, body)
    if isinstance(body, kinds.Yank):
        return [("yank", (n, record.id, record.author, record.time, body.release))]
    if isinstance(body, kinds.Withdrawal):
        return [("withdrawal", (n, target, record.author)) for target in sorted(set(record.links))]
    if isinstance(body, kinds.Identity) and body.action == "delegate" and body.root == record.author and body.device:
        return [("delegation", (n, body.root, body.device))]
    if isinstance(body, kinds.Merge):
        return [("merge", (n, record.author, body.device, head)) for head in sorted(set(body.heads))]
    return []


def _run(n: int, record: Record, body: kinds.Run) -> Row:
    return (
        n,
        record.id,
        body.task,
        body.mode,
        body.status,
        body.value,
        body.budget,
        body.source_digest,
        body.replicate,
        body.parent,
        body.base,
        record.author,
        record.seq,
        record.time,
        body.title,
        _json.encode(body.genome),
        body.checkpoint.sha256 if body.checkpoint else None,
        body.device,
        body.cpu_ms,
        body.idea,
    )


def task_mark(task: bytes) -> str:
    """A task as a word of the text index: 8 bytes of its digest, because each text has that word twice on the disk."""
    return task[:8].hex()


def _words_of_run(n: int, record: Record, body: kinds.Run) -> Row:
    """What a run's author wrote of it, and why it failed."""
    worked = body.status == RunStatus.OK
    text = "\n".join(part for part in (body.title, body.hypothesis, "" if worked else body.reason) if part)
    kind = "worked" if worked else "failed"
    return (n, record.id, record.author, f"{kind} {task_mark(body.task)}", text)


def _words_of_note(n: int, record: Record, body: kinds.Note) -> Row:
    return (n, record.id, record.author, f"note {task_mark(body.task) if body.task else ''}".strip(), body.text)


def _verification(n: int, record: Record, body: kinds.Verification) -> list[tuple[str, Row]]:
    output = _output(record, body)
    measured = (body.run, body.stage, body.verdict, body.value)
    row = ("verification", (n, record.id, *measured, record.author, record.time, body.round, output))
    # Seeds that do not follow from its own proof: the verifier chose them.
    chosen = output is not None and list(body.seeds) != seeds(output, len(body.seeds))
    return [row, *_fraud(n, record, holds=chosen)]


def _commitment(n: int, record: Record, body: kinds.Commitment) -> Row:
    subject = (body.run, body.stage, body.round)
    return (n, record.id, *subject, body.digest, record.author, record.seq, record.time, _output(record, body))


def _fraud(n: int, record: Record, *, holds: bool) -> list[tuple[str, Row]]:
    """The row of a record that proves by itself that its author cheated."""
    return [("fraud", (n, record.id, record.author, record.seq, record.time))] if holds else []


def _output(record: Record, body: kinds.Verification | kinds.Commitment) -> bytes | None:
    """What the proof stands for, None when it proves nothing. Kept because computing it takes most of a millisecond."""
    return _proven(record.author, question(body.run, body.stage, body.round), body.proof)


@lru_cache(_PROOFS_MAX)
def _proven(author: bytes, subject: bytes, proof: bytes) -> bytes | None:
    """A verification has the proof of its commitment: it is verified once."""
    return ecvrf.verify(author, subject, proof)


def _release(n: int, record: Record, body: kinds.Release) -> list[tuple[str, Row]]:
    """Nothing when it is no component: it can't be installed, and so it is not found."""
    component = component_of(body)
    if component is None:
        return []
    named = (component.metadata.type, component.name)
    details = (*named, component.version, version_key(component.version), content_digest(component))
    words = f"{component.summary}\n{component.metadata.description}"
    return [
        ("component_release", (n, record.id, record.author, record.time, *details)),
        ("release_index", (n, record.id, record.author, *named, words, record.author.hex())),
    ]


def _task(n: int, record: Record, body: kinds.Task) -> list[tuple[str, Row]]:
    """Nothing when the digest is not that of the definition: nobody may set the rules of another's task.

    The rules stay when the record is withdrawn, so that its publisher can't take a task away from those who work on it.
    """
    if hashlib.sha256(encode(body.definition)).digest() != body.digest:
        return []
    rules = task_rules(body.definition)
    row: Row = (
        n,
        record.id,
        body.digest,
        body.name,
        record.author,
        record.time,
        *(rules[:3] if rules else (None, None, None)),
    )
    return [("task", row), *([("rules", (n, body.digest, *rules))] if rules else [])]
