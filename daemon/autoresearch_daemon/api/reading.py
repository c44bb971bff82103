"""The addresses that read the log. What they answer is built in `autoresearch.answers`, as for the command line."""

from __future__ import annotations

from autoresearch.answers import (
    FoundTask,
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
from autoresearch.api import (
    BestAnswer,
    CreditAnswer,
    DiffAnswer,
    LineageAnswer,
    LogAnswer,
    ProofAnswer,
    ProofsAnswer,
    ShowAnswer,
    TopAnswer,
)
from autoresearch.errors import UsageError
from autoresearch.records import KINDS
from autoresearch.words import with_article
from autoresearch_daemon.api.readers import Readers
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

KEY_BYTES = 32


def get_best(readers: Readers, asked: OfTask) -> BestAnswer:
    """The best confirmed program of a task, and the best reported one beside it."""
    return best_answer(readers.log, _task(readers, asked), author=readers.author)


def get_top(readers: Readers, asked: TopOf) -> TopAnswer:
    """The leaderboard of a task."""
    return top_answer(readers.log, _task(readers, asked), limit=asked.limit, author=readers.author)


def get_credit(readers: Readers, asked: OfParticipant) -> CreditAnswer:
    """What participants have done that others can count."""
    return credit_answer(readers.log, asked.participant, author=readers.author)


def get_proofs(readers: Readers, asked: Proofs) -> ProofsAnswer:
    """What records prove against who signed them, the newest first."""
    return proofs_answer(readers.log, asked.participant, kind=asked.kind, author=readers.author)


def get_proof(readers: Readers, asked: OneProof) -> ProofAnswer:
    """One proof, checked step by step from the bytes of the records; what takes a measurement is left open."""
    return proof_answer(readers.log, readers.blobs, _id(readers, asked, asked.id), asked.kind)


def get_records(readers: Readers, asked: Records) -> LogAnswer:
    """Records, newest first."""
    if asked.kind is not None and asked.kind not in KINDS:
        raise UsageError(f"there is no kind of record “{asked.kind}”", hint=f"kinds: {', '.join(KINDS)}")
    return log_answer(
        readers.log,
        kind=asked.kind,
        author=_author(readers, asked.author),
        task=_task(readers, asked) if asked.task else None,
        limit=asked.limit,
        before=readers.log.resolve(asked.before) if asked.before else None,
    )


def get_record(readers: Readers, asked: OneRecord) -> ShowAnswer:
    """One record of any kind, whole."""
    return show_answer(readers.log, _id(readers, asked, asked.id))


def get_run(readers: Readers, asked: OneRecord) -> ShowAnswer:
    """One run, whole."""
    shown = get_record(readers, asked)
    if shown.run is None:
        raise UsageError(
            f"{shown.record.id} is {with_article(shown.record.kind)}, not a run.", hint="GET /v1/records/{id}"
        )
    return shown


def get_source(readers: Readers, asked: OneRecord) -> Text:
    """The train.py of a run."""
    return Text(run_source(readers.log, readers.blobs, _id(readers, asked, asked.id)))


def get_log(readers: Readers, asked: OneRecord) -> Text:
    """What a run printed."""
    return Text(run_log(readers.log, readers.blobs, _id(readers, asked, asked.id)))


def get_lineage(readers: Readers, asked: OneRecord) -> LineageAnswer:
    """The path from the baseline to a run."""
    return lineage_answer(readers.log, _id(readers, asked, asked.id))


def get_diff(readers: Readers, asked: Difference) -> DiffAnswer:
    """The change from one run's source to another's."""
    return diff_answer(readers.log, readers.blobs, _id(readers, asked, asked.old), _id(readers, asked, asked.new))


def _task(readers: Readers, asked: OfTask) -> FoundTask:
    return find_task(readers.log, asked.task, author=readers.author)


def _id(readers: Readers, asked: OfTask, reference: str) -> bytes:
    task = _task(readers, asked) if asked.task else None
    return resolve_reference(readers.log, reference, task=task, author=readers.author)


def _author(readers: Readers, text: str | None) -> bytes | None:
    if text is None or text == "me":
        return readers.author if text else None
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise UsageError("an author is a key of 64 hexadecimal digits, or me")
    return key
