"""What records prove against who signed them: all of it, or what they prove against one participant."""

from __future__ import annotations

from autoresearch.answers.participants import named
from autoresearch.api import ProofsAnswer, ProofView
from autoresearch.log import Log
from autoresearch.records import format_id
from autoresearch.views import Proof, in_snapshot, proofs, roster_of, who
from autoresearch.words import CONSEQUENCE_SENTENCES, PROOF_SENTENCES, ProofKind


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
