"""What records prove against who signed them: all of it, or what they prove against one participant."""

from __future__ import annotations

from autoresearch.answers.models import Answer
from autoresearch.answers.participants import named
from autoresearch.log import Log
from autoresearch.records import format_id
from autoresearch.views import Proof, Who, in_snapshot, proofs, roster_of, who
from autoresearch.words import CONSEQUENCE_SENTENCES, PROOF_SENTENCES, ProofKind


class ProofView(Answer, frozen=True, kw_only=True):
    """What records prove against ``who``, whose ``device`` signed the first of them: ``id``.

    ``kind`` is fork, seed, lineage or value. What ``follows`` is banned, uncounted (the device's later runs), disputed
    or refuted (the run), or merged: nothing any more. ``until_ms``: how long it lasts.
    """

    kind: str
    id: str
    who: Who
    device: str
    records: list[str]
    time_ms: int
    follows: str
    reason: str
    until_ms: int | None = None


class ProofsAnswer(Answer, frozen=True, kw_only=True):
    """What records prove against who signed them, the newest first."""

    schema: str = "autoresearch.proofs/1"
    proofs: list[ProofView]


class ProofStep(Answer, frozen=True, kw_only=True):
    """One thing that was looked at: what the record states, what was found here.

    ``agrees`` is null where there is nothing to compare.
    """

    what: str
    stated: str
    found: str
    agrees: bool | None = None


class ProofAnswer(Answer, frozen=True, kw_only=True):
    """One proof, checked here and now: the record ``id``, each step, and whether it ``holds`` and why.

    ``holds`` is null where a value has to be measured once more to tell. ``nothing_found``: no record says anything
    against this one, and every check agrees. ``proof`` is there when the log's own view has it among what is proved.
    """

    schema: str = "autoresearch.proof/1"
    id: str
    kind: str
    device: str
    steps: list[ProofStep]
    holds: bool | None
    nothing_found: bool = False
    reason: str
    proof: ProofView | None = None


@in_snapshot
def proofs_answer(
    log: Log, participant: str | None = None, *, kind: ProofKind | None = None, author: bytes | None = None
) -> ProofsAnswer:
    """What records prove, of one kind, against one participant: ``me``, the beginning of a key, or a name.

    Raises:
        NotFound: there is no such participant, or ``me`` has no key.
        AmbiguousId: several are called so.
        UsageError: that is no key, and nobody's name.
    """
    voter = roster_of(log).voter
    roots = None if participant is None else named(log, participant, author=author)
    found = [proof for proof in proofs(log) if kind in (None, proof.kind)]
    return ProofsAnswer(
        proofs=[
            proof_view(log, proof)
            for proof in found
            if roots is None or voter(proof.device, proof.time_ms).root in roots
        ]
    )


def proof_view(log: Log, proof: Proof) -> ProofView:
    """A proof, ready for JSON."""
    return ProofView(
        kind=proof.kind.value,
        id=format_id(proof.records[0]),
        who=who(log, proof.device, proof.time_ms),
        device=proof.device.hex(),
        records=[format_id(record) for record in proof.records],
        time_ms=proof.time_ms,
        follows=proof.follows.value,
        reason=f"{PROOF_SENTENCES[proof.kind]}: {CONSEQUENCE_SENTENCES[proof.follows]}",
        until_ms=proof.until_ms,
    )
