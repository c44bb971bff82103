"""The addresses that read the log. What they answer is built in `autoresearch.answers`, as for the command line."""

from __future__ import annotations

from autoresearch.answers import (
    BestAnswer,
    CreditAnswer,
    DiffAnswer,
    FoundTask,
    LineageAnswer,
    LogAnswer,
    ProofAnswer,
    ProofsAnswer,
    ShowAnswer,
    TopAnswer,
    best_answer,
    credit_answer,
    diff_answer,
    find_task,
    lineage_answer,
    log_answer,
    proof_answer,
    proofs_answer,
    resolve_reference,
    run_log,
    run_source,
    show_answer,
    top_answer,
)
from autoresearch.errors import UsageError
from autoresearch.plain import with_article
from autoresearch.records import KINDS
from autoresearch_daemon.api.requests import (
    Difference,
    OfParticipant,
    OfTask,
    OneProof,
    OneRecord,
    Proofs,
    Records,
    TopOf,
)
from autoresearch_daemon.api.routes import Text
from autoresearch_daemon.api.shelf import Shelf

KEY_BYTES = 32


def get_best(shelf: Shelf, asked: OfTask) -> BestAnswer:
    """The best confirmed subject of a task, and the best reported one beside it."""
    return best_answer(shelf.log, _task(shelf, asked), author=shelf.author)


def get_top(shelf: Shelf, asked: TopOf) -> TopAnswer:
    """The leaderboard of a task."""
    return top_answer(shelf.log, _task(shelf, asked), limit=asked.limit, author=shelf.author)


def get_credit(shelf: Shelf, asked: OfParticipant) -> CreditAnswer:
    """What participants have done that others can count."""
    return credit_answer(shelf.log, asked.participant, author=shelf.author)


def get_proofs(shelf: Shelf, asked: Proofs) -> ProofsAnswer:
    """What records prove against who signed them, the newest first."""
    return proofs_answer(shelf.log, asked.participant, kind=asked.kind, author=shelf.author)


def get_proof(shelf: Shelf, asked: OneProof) -> ProofAnswer:
    """One proof, checked step by step from the bytes of the records; what takes a measurement is left open."""
    return proof_answer(shelf.log, shelf.blobs, _id(shelf, asked, asked.id), asked.kind)


def get_records(shelf: Shelf, asked: Records) -> LogAnswer:
    """Records, newest first."""
    if asked.kind is not None and asked.kind not in KINDS:
        raise UsageError(f"there is no kind of record “{asked.kind}”", hint=f"kinds: {', '.join(KINDS)}")
    return log_answer(
        shelf.log,
        kind=asked.kind,
        author=_author(shelf, asked.author),
        task=_task(shelf, asked) if asked.task else None,
        limit=asked.limit,
        before=shelf.log.resolve(asked.before) if asked.before else None,
    )


def get_record(shelf: Shelf, asked: OneRecord) -> ShowAnswer:
    """One record of any kind, whole."""
    return show_answer(shelf.log, _id(shelf, asked, asked.id))


def get_run(shelf: Shelf, asked: OneRecord) -> ShowAnswer:
    """One run, whole."""
    shown = get_record(shelf, asked)
    if shown.run is None:
        raise UsageError(
            f"{shown.record.id} is {with_article(shown.record.kind)}, not a run.", hint="GET /v1/records/{id}"
        )
    return shown


def get_source(shelf: Shelf, asked: OneRecord) -> Text:
    """The train.py of a run."""
    return Text(run_source(shelf.log, shelf.blobs, _id(shelf, asked, asked.id)))


def get_log(shelf: Shelf, asked: OneRecord) -> Text:
    """What a run printed."""
    return Text(run_log(shelf.log, shelf.blobs, _id(shelf, asked, asked.id)))


def get_lineage(shelf: Shelf, asked: OneRecord) -> LineageAnswer:
    """The path from the baseline to a run."""
    return lineage_answer(shelf.log, _id(shelf, asked, asked.id))


def get_diff(shelf: Shelf, asked: Difference) -> DiffAnswer:
    """The change from one run's source to another's."""
    return diff_answer(shelf.log, shelf.blobs, _id(shelf, asked, asked.old), _id(shelf, asked, asked.new))


def _task(shelf: Shelf, asked: OfTask) -> FoundTask:
    return find_task(shelf.log, asked.task, author=shelf.author)


def _id(shelf: Shelf, asked: OfTask, reference: str) -> bytes:
    task = _task(shelf, asked) if asked.task else None
    return resolve_reference(shelf.log, reference, task=task, author=shelf.author)


def _author(shelf: Shelf, text: str | None) -> bytes | None:
    if text is None or text == "me":
        return shelf.author if text else None
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise UsageError("an author is a key of 64 hexadecimal digits, or me")
    return key
