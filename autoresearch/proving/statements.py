"""Checks of a verification's records, before its measurement is repeated."""

from __future__ import annotations

from autoresearch.proving.seeds import proof_steps
from autoresearch.proving.steps import NOT_ITS_RECORD, Given, Outcome, Step, failed, nothing_found, opened
from autoresearch.records import Commitment as CommitmentBody
from autoresearch.records import Network, Run, Verification, body_fields, format_id
from autoresearch.verification import EVALUATE, PAIRS, REPLICATE, commitment_digest
from autoresearch.words import with_article

TO_MEASURE = "the records are in order; what they state has to be measured once more"


def check_statement(verification: Given, run: Given, network: Network, *, commitment: Given | None = None) -> Outcome:
    """Whether the measurement of a verification can be repeated; ``holds`` is then None.

    ``commitment`` is the record that fixed it before the reveal. A verification without one does not count, but can be
    checked.
    """
    steps, record = opened(verification, network, "the verification")
    more, claimed = opened(run, network, "the run")
    steps += more
    if record is None or claimed is None:
        return failed(steps, NOT_ITS_RECORD)
    body, claim = record.body, claimed.body
    if not isinstance(body, Verification):
        return failed(steps, f"the record is {with_article(record.kind)}, not a verification")
    steps.append(Step("run", format_id(body.run), format_id(claimed.id), body.run == claimed.id))
    if body.run != claimed.id or not isinstance(claim, Run):
        return failed(steps, "that is not a run which it verifies")
    more, output = proof_steps(record.author, body)
    steps += more
    if output is None:
        return failed(steps, "its proof is not its device's: whoever wrote it could choose what is measured")
    if not steps[-1].agrees:
        return failed(steps, "its seeds do not follow from its proof: whoever wrote it chose what is measured")
    if commitment is not None:
        more, fixed = opened(commitment, network, "the commitment")
        steps += more
        digest = commitment_digest(record.author, body.salt, body_fields(record))
        stated = fixed.body.digest if fixed is not None and isinstance(fixed.body, CommitmentBody) else b""
        steps.append(Step("committed to", stated.hex(), digest.hex(), stated == digest))
    if body.verdict not in ("pass", "fail"):
        return nothing_found(steps, f"it states nothing of the run: {body.verdict}")
    if fault := _unmeasurable(body, claim):
        return failed(steps, fault)
    return Outcome(tuple(steps), holds=None, sentence=TO_MEASURE)


def _unmeasurable(body: Verification, claim: Run) -> str:
    """Why a verification states nothing that could be measured; empty when it does."""
    if claim.status != "ok" or claim.value is None:
        return f"the run has no value to measure: it ended as {claim.status}"
    if body.stage == EVALUATE:
        return ""
    if body.stage != REPLICATE:
        return "its stage is none that this version knows"
    if not len(body.seeds) == len(body.values) == len(body.parent_values) == PAIRS:
        return f"it has not the {PAIRS} pairs that a replication takes, and counts for nobody"
    return "" if claim.parent is not None else "the run has no parent to be compared with"
