"""What records prove against who signed them, checked step by step; and what participants have done."""

from __future__ import annotations

from functools import partial

from autoresearch.ask.lookup import FoundTask, named, task_of
from autoresearch.ask.people.participants import EvidenceAnswer, EvidenceListAnswer, EvidenceStep, EvidenceView
from autoresearch.errors import AutoresearchError, NotFound, Refused, UsageError
from autoresearch.judging import proof
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing import credit
from autoresearch.log.standing.answers import CreditAnswer, TaskCredit
from autoresearch.log.standing.cache import cached_answer, in_snapshot, roster_of
from autoresearch.log.standing.context import participant_of
from autoresearch.log.standing.verification import allowed_difference, bears_out
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Run, Verification
from autoresearch.record.record import Record
from autoresearch.task.loading import MAX_FILE_BYTES
from autoresearch.text import one_line
from autoresearch.words import CONSEQUENCE_SENTENCES, EVIDENCE_SENTENCES, EvidenceKind, with_article


@in_snapshot
def evidence_list_answer(
    log: Log, participant: str | None = None, *, kind: EvidenceKind | None = None, author: bytes | None = None
) -> EvidenceListAnswer:
    """What records prove, of one kind, against one participant: ``me``, the beginning of a key, or a name.

    Raises:
        NotFound: there is no such participant, or ``me`` has no key.
        AmbiguousId: several are called so.
        UsageError: that is no key, and nobody's name.
    """
    voter = roster_of(log).voter
    roots = None if participant is None else named(log, participant, author=author)
    return EvidenceListAnswer(
        evidence=[
            evidence_view(log, item)
            for item in credit.all_evidence(log)
            if kind in (None, item.kind) and (roots is None or voter(item.device, item.time_ms).root in roots)
        ]
    )


def evidence_view(log: Log, item: credit.EvidenceItem) -> EvidenceView:
    """Evidence, ready for JSON."""
    return EvidenceView(
        kind=item.kind.value,
        id=format_id(item.records[0]),
        participant=participant_of(log, item.device, item.time_ms),
        device=item.device.hex(),
        records=[format_id(record) for record in item.records],
        time_ms=item.time_ms,
        follows=item.follows.value,
        reason=f"{EVIDENCE_SENTENCES[item.kind]}: {CONSEQUENCE_SENTENCES[item.follows]}",
        until_ms=item.until_ms,
    )


def evidence_answer(log: Log, blobs: BlobStore, record_id: bytes, kind: EvidenceKind | None = None) -> EvidenceAnswer:
    """Check what a record proves from the bytes of the records alone; of a ``kind``, where it may prove several things.

    Raises:
        NotFound: the record, or another that it takes, is not here.
        UsageError: a record of its kind proves nothing of that kind.
    """
    signed = _signed(log, record_id)
    steps, record = proof.opened(signed, log.network, "the record")
    if record is None:
        return _answer(log, record_id, kind or EvidenceKind.FORK, proof.failed(steps, proof.NOT_ITS_RECORD), device=b"")
    chosen = kind or _natural(log, record)
    match chosen:
        case EvidenceKind.FORK:
            outcome = _fork(log, record, signed, steps)
        case EvidenceKind.SEED:
            outcome = _seed(log, blobs, record, signed)
        case EvidenceKind.LINEAGE:
            outcome = _lineage(log, record, signed, steps)
        case EvidenceKind.VALUE:
            statement = stated(log, record_id)
            record, outcome = statement, _statement(log, statement)
    return _answer(log, record.id, chosen, outcome, device=record.author)


def stated(log: Log, record_id: bytes) -> Record:
    """The verification that is to be measured once more: the one that is named, or the first against a run.

    Raises:
        NotFound: nobody evaluated the run.
        UsageError: it is neither run nor verification.
    """
    record = log.records.get(record_id)
    if isinstance(record.body, Run):
        evaluated = credit.evaluations(log, record)
        if not evaluated:
            raise NotFound(f"no attested participant evaluated {short_id(record_id)}", hint="autoresearch verify ID")
        return log.records.get(evaluated[0])
    if not isinstance(record.body, Verification):
        raise UsageError(f"{with_article(record.kind)} states no value.", hint="the id of a run or of a verification")
    return record


def measured_evidence(log: Log, verification: bytes, measured: Verification) -> EvidenceAnswer:
    """The same for a verification that was measured once more here: ``measured`` is what came out.

    Raises:
        AutoresearchError: what came out says nothing of what the verifier stated.
    """
    record = log.records.get(verification)
    assert isinstance(record.body, Verification), "only what states a value is measured"
    run = log.records.get(record.body.run).body_as(Run)
    if measured.verdict not in ("pass", "fail"):
        raise AutoresearchError(f"it could not be measured here: {measured.reason}", hint="autoresearch node logs")
    rules = log.tasks.rules(run.task)
    is_asked = not measured.metrics.keys().isdisjoint(("challenges", "evaluated"))
    if rules and rules.clocked and not is_asked and measured.device != record.body.device:
        hint = f"measure it where it was measured: {one_line(record.body.device, 80)}"
        raise Refused("the same time on other hardware is another experiment", hint=hint)
    outcome = proof.compared(
        record.body,
        measured,
        claim=run.value or 0.0,
        within=allowed_difference(log, run, measured),
        stated_passes=bears_out(log, run, record.body),
        measured_passes=bears_out(log, run, measured),
    )
    before = _statement(log, record)
    whole = proof.ProofResult((*before.steps, *outcome.steps), outcome.holds, outcome.sentence)
    return _answer(log, record.id, EvidenceKind.VALUE, whole, device=record.author)


def _natural(log: Log, record: Record) -> EvidenceKind:
    """What one wants to know of a record first: what it proves, else what could be proved."""
    if log.evidence.has_chosen_seed(record.id):
        return EvidenceKind.SEED
    if credit.made_up_parent(log, record) is not None:
        return EvidenceKind.LINEAGE
    if credit.fork_at(log, record.author, record.seq) is not None:
        return EvidenceKind.FORK
    if isinstance(record.body, Verification):
        return EvidenceKind.VALUE
    if isinstance(record.body, Run):
        return EvidenceKind.VALUE if credit.evidence_with(log, EvidenceKind.VALUE, record.id) else EvidenceKind.SEED
    return EvidenceKind.FORK


def _fork(log: Log, record: Record, signed: proof.StoredRecord, steps: list[proof.ProofStep]) -> proof.ProofResult:
    fork = credit.fork_at(log, record.author, record.seq)
    if fork is None:
        return proof.nothing_found(steps, "the device signed one record with this number")
    other = next(record_id for record_id in fork.ids if record_id != record.id)
    merge = credit.merge_of(log, fork)
    return proof.check_fork(signed, _signed(log, other), log.network, merge=_signed(log, merge) if merge else None)


def _seed(log: Log, blobs: BlobStore, record: Record, signed: proof.StoredRecord) -> proof.ProofResult:
    if isinstance(record.body, Verification):
        return proof.check_verifier_seeds(signed, log.network)
    if not isinstance(record.body, Run):
        raise UsageError(f"{with_article(record.kind)} has no seed.", hint="the id of a run or of a verification")
    blob = blobs.find(record.body.source.sha256)
    # No node records a larger program, and reading one would take minutes.
    source = blobs.get(blob.sha256) if blob is not None and blob.size <= MAX_FILE_BYTES else None
    return proof.check_run_seed(signed, log.network, source=source)


def _lineage(log: Log, record: Record, signed: proof.StoredRecord, steps: list[proof.ProofStep]) -> proof.ProofResult:
    body = record.body
    if not isinstance(body, Run):
        raise UsageError(f"{with_article(record.kind)} has no parent.", hint="the id of a run")
    if body.parent is None:
        return proof.nothing_found(steps, "the run names no parent")
    return proof.check_lineage(signed, _signed(log, body.parent), log.network)


def _statement(log: Log, record: Record) -> proof.ProofResult:
    body = record.body_as(Verification)
    linked = [
        row.id
        for row in log.verifications.commitments(body.run)
        if row.id in record.links and row.author == record.author
    ]
    return proof.check_statement(
        _signed(log, record.id),
        _signed(log, body.run),
        log.network,
        commitment=_signed(log, linked[0]) if linked else None,
    )


def _signed(log: Log, record_id: bytes) -> proof.StoredRecord:
    raw = log.records.raw([record_id])
    if not raw:
        raise NotFound(f"The evidence needs {format_id(record_id)}, which is not here.", hint="autoresearch up")
    return proof.StoredRecord(record_id, *raw[0])


def _answer(
    log: Log, record_id: bytes, kind: EvidenceKind, outcome: proof.ProofResult, *, device: bytes
) -> EvidenceAnswer:
    listed = credit.evidence_with(log, kind, record_id) if device else None
    return EvidenceAnswer(
        id=format_id(record_id),
        kind=kind.value,
        device=device.hex(),
        steps=[
            EvidenceStep(what=step.what, stated=step.stated, actual=step.computed, agrees=step.agrees)
            for step in outcome.steps
        ],
        holds=outcome.holds,
        nothing_found=outcome.nothing_found,
        reason=outcome.sentence,
        evidence=evidence_view(log, listed) if listed else None,
    )


@in_snapshot
def credit_answer(
    log: Log, participant: str | None = None, *, author: bytes | None = None, task: FoundTask | None = None
) -> CreditAnswer:
    """Everybody's facts, or those of one participant: ``me``, the beginning of a key, or a name that only one has.

    With a ``task`` those on that task; marks are of all tasks.

    Raises:
        NotFound: there is no such participant, or ``me`` has no key.
        AmbiguousId: several begin so.
        UsageError: that is no key, and nobody's name.
    """
    roots = None if participant is None else named(log, participant, author=author)
    digest = task.digest if task else None
    every = cached_answer(log, "credit", (digest, roots), partial(credit.credit, log, digest, roots=roots))
    keys = [bytes.fromhex(key) for row in every for key in row.keys] if roots is None else []
    hidden = {key.hex() for key in log.hidden.of_keys(keys)}
    if participant is not None and not every:
        whose = "This participant" if participant == "me" else one_line(participant, 80)
        raise NotFound(f"{whose} has no run and no verification yet.", hint="autoresearch network credit")
    visible = [row for row in every if hidden.isdisjoint(row.keys)]
    return CreditAnswer(
        participants=visible,
        hidden=len(every) - len(visible),
        tasks=[
            TaskCredit(digest=digest, name=improved.name, metric=improved.metric, direction=improved.direction)
            for digest in sorted({gain.task for row in visible for gain in row.improvements})
            if (improved := task_of(log, bytes.fromhex(digest))) is not None
        ],
        trust=log.trust.names_anybody,
    )
