"""Evidence step by step: what records prove against their author.

Ids and signatures; forks (one device, one sequence number, two records); lineages; seeds; a verification's records, and
its numbers beside the same measurement on this machine.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from autoresearch.errors import UsageError
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question, seeds
from autoresearch.judging.states import EVALUATE, REPLICATE, commitment_digest
from autoresearch.judging.statistics import MEAN_NATS, MISMATCHES, PAIRS
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Commitment as CommitmentBody
from autoresearch.record.kinds import Merge, Run, Verification, task_of_body
from autoresearch.record.record import Network, Record, Refusal, admit, body_fields
from autoresearch.task.model import has_chosen_seed, seed_for
from autoresearch.task.program import source_digest
from autoresearch.words import with_article

# A stored record was not too early when it arrived.
_ANY_TIME = 2**62


class StoredRecord(NamedTuple):
    """A record as a log stores it: its id, its bytes and their signature."""

    id: bytes
    raw: bytes
    signature: bytes


class ProofStep(NamedTuple):
    """One comparison: what the record states, what this node computed, whether they agree.

    ``agrees`` is None where there is nothing to compare.
    """

    what: str
    stated: str
    computed: str
    agrees: bool | None = None


class ProofResult(NamedTuple):
    """The result of the steps. ``holds`` is None where only a measurement can tell.

    ``nothing_found``: no record speaks against the author, and everything that was compared agrees.
    """

    steps: tuple[ProofStep, ...]
    holds: bool | None
    sentence: str
    nothing_found: bool = False


def opened(stored: StoredRecord, network: Network, what: str) -> tuple[list[ProofStep], Record | None]:
    """The record in the bytes, or None where their hash is not the id or the signature does not hold."""
    digest = hashlib.sha256(stored.raw).digest()
    steps = [ProofStep(f"{what}: id", format_id(stored.id), format_id(digest), digest == stored.id)]
    record = admit(stored.raw, stored.signature, network, now_ms=_ANY_TIME)
    if isinstance(record, Refusal):
        return [*steps, ProofStep(f"{what}: signature", "its author's", record.sentence, agrees=False)], None
    steps.append(ProofStep(f"{what}: signature", f"device {record.author.hex()}", "holds", agrees=True))
    return steps, record if digest == stored.id else None


def failed(steps: list[ProofStep], sentence: str) -> ProofResult:
    """The outcome of steps that do not prove what was stated."""
    return ProofResult(tuple(steps), holds=False, sentence=sentence)


def nothing_found(steps: list[ProofStep], sentence: str) -> ProofResult:
    """The outcome of steps that found no misbehaviour, where none was stated."""
    return ProofResult(tuple(steps), holds=False, sentence=sentence, nothing_found=True)


NOT_ITS_RECORD = "the bytes here are not the record that the id names, or nobody signed them"


def check_fork(
    left: StoredRecord, right: StoredRecord, network: Network, *, merge: StoredRecord | None = None
) -> ProofResult:
    """Whether a device signed two records with one number. ``merge`` is the record that may have ended the fork."""
    steps, first = opened(left, network, "one record")
    more, second = opened(right, network, "the other")
    steps += more
    if first is None or second is None:
        return failed(steps, NOT_ITS_RECORD)
    same_key = first.author == second.author
    steps += [
        ProofStep("device", first.author.hex(), second.author.hex(), same_key),
        ProofStep("number", str(first.seq), str(second.seq), first.seq == second.seq),
        ProofStep("ids", format_id(first.id), format_id(second.id), first.id == second.id),
    ]
    if not same_key:
        return failed(steps, "two devices signed them")
    if first.seq != second.seq:
        return failed(steps, "they have different numbers, as they should")
    if first.id == second.id:
        return failed(steps, "it is one record")
    sentence = "the device signed two records with one number"
    if merge is None:
        return ProofResult((*steps, ProofStep("merge", "", "there is none")), holds=True, sentence=sentence)
    more, ended = opened(merge, network, "the merge")
    steps += more
    if ended is None or not isinstance(ended.body, Merge) or ended.body.device != first.author:
        return ProofResult(
            tuple(steps), holds=True, sentence=f"{sentence}; what is said to merge them is no merge of it"
        )
    steps.append(ProofStep("merge", f"by root key {ended.author.hex()}", f"of {len(ended.body.heads)} branches"))
    return ProofResult(
        tuple(steps), holds=True, sentence=f"{sentence}; its root key merged the branches, so nothing follows"
    )


def check_lineage(run: StoredRecord, parent: StoredRecord, network: Network) -> ProofResult:
    """Whether the record that a run names as its parent is about another task, or about none."""
    steps, child = opened(run, network, "the run")
    more, above = opened(parent, network, "its parent")
    steps += more
    if child is None or above is None:
        return failed(steps, NOT_ITS_RECORD)
    if not isinstance(child.body, Run):
        return failed(steps, f"the record is {with_article(child.kind)}, not a run")
    named = child.body.parent
    steps.append(ProofStep("parent", format_id(named) if named else "none", format_id(above.id), named == above.id))
    if named != above.id:
        return failed(steps, "that is not the parent which the run names")
    task = task_of_body(above.body)
    steps.append(
        ProofStep(
            "task", f"the run's: {child.body.task.hex()}", f"its parent's: {task.hex() if task else 'none'}",
            task == child.body.task,
        )
    )  # fmt: skip
    if task == child.body.task:
        return nothing_found(steps, "both are about one task")
    return ProofResult(tuple(steps), holds=True, sentence=f"the parent, a {above.kind}, is not about the run's task")


CHOSEN = "the seed does not follow from the task, the program and the replicate"
FOLLOWS = "the seed is the one that follows from the task, the program and the replicate"


def check_run_seed(run: StoredRecord, network: Network, *, source: bytes | None = None) -> ProofResult:
    """Whether a run's seed differs from the one that follows. ``source``: its program, where this node has it."""
    steps, record = opened(run, network, "the run")
    if record is None:
        return failed(steps, NOT_ITS_RECORD)
    body = record.body
    if not isinstance(body, Run):
        return failed(steps, f"the record is {with_article(record.kind)}, not a run")
    same_program = None
    shown_digest = "the source is not on this machine"
    if source is not None:
        shown_digest = _digest(source)
        same_program = shown_digest == body.source_digest.hex()
    chosen, seed = has_chosen_seed(body), seed_for(body.task, body.source_digest, body.replicate)
    steps += [
        ProofStep("task", body.task.hex(), ""),
        ProofStep("program", body.source_digest.hex(), shown_digest, same_program),
        ProofStep("replicate", str(body.replicate), ""),
        ProofStep("seed", str(body.seed), str(seed), not chosen),
    ]
    if chosen:
        return ProofResult(tuple(steps), holds=True, sentence=CHOSEN)
    if same_program is False:
        return failed(steps, f"{FOLLOWS} that the record names; but its source is another program")
    return nothing_found(steps, FOLLOWS)


def check_verifier_seeds(verification: StoredRecord, network: Network) -> ProofResult:
    """Whether a verifier's seeds differ from those that follow from its own proof."""
    steps, record = opened(verification, network, "the verification")
    if record is None:
        return failed(steps, NOT_ITS_RECORD)
    body = record.body
    if not isinstance(body, Verification):
        return failed(steps, f"the record is {with_article(record.kind)}, not a verification")
    more, output = proof_steps(record.author, body)
    steps += more
    if output is None:
        return failed(steps, "its proof proves nothing: no seeds follow from it, and it counts for nobody")
    if steps[-1].agrees:
        return nothing_found(steps, "the seeds are those that follow from its proof")
    return ProofResult(tuple(steps), holds=True, sentence="the seeds do not follow from the verifier's own proof")


def proof_steps(author: bytes, body: Verification) -> tuple[list[ProofStep], bytes | None]:
    """Checks that the proof is the device's for this run, stage and round, and that the seeds follow from it.

    Returns the steps and the VRF output, None where the proof is not valid. Only the device's secret key can make the
    proof, and each question has one output (RFC 9381).
    """
    output = ecvrf.verify(author, question(body.run, body.stage, body.round), body.proof)
    expected = f"of this device for this run, {body.stage}, round {body.round}"
    steps = [ProofStep("proof", expected, "does not hold" if output is None else "holds", output is not None)]
    if output is None:
        return steps, None
    drawn = seeds(output, len(body.seeds))
    return [*steps, ProofStep("seeds", _listed(body.seeds), _listed(drawn), list(body.seeds) == drawn)], output


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def _digest(source: bytes) -> str:
    try:
        return source_digest(source.decode("utf-8", errors="replace")).hex()
    except UsageError:
        return "it is no program"


TO_MEASURE = "the records are in order; what they state has to be measured once more"


def check_statement(
    verification: StoredRecord, run: StoredRecord, network: Network, *, commitment: StoredRecord | None = None
) -> ProofResult:
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
    steps.append(ProofStep("run", format_id(body.run), format_id(claimed.id), body.run == claimed.id))
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
        steps.append(ProofStep("committed to", stated.hex(), digest.hex(), stated == digest))
    if body.verdict not in ("pass", "fail"):
        return nothing_found(steps, f"it states nothing of the run: {body.verdict}")
    if fault := _unmeasurable(body, claim):
        return failed(steps, fault)
    return ProofResult(tuple(steps), holds=None, sentence=TO_MEASURE)


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


# Machines with another order of arithmetic differ by no more than this, in standard errors of the gap.
GAP_ROUNDING = 0.1


def compared(
    stated: Verification,
    measured: Verification,
    *,
    claim: float,
    within: float,
    stated_passes: bool,
    measured_passes: bool,
) -> ProofResult:
    """Whether the same measurement on this machine agrees with a verification.

    ``within`` is how far two measurements of one run may lie apart. ``stated_passes`` and ``measured_passes`` tell
    whether the claim passes by the numbers of each. An evaluation holds when these two agree, whatever its verifier's
    verdict. Pairs hold when every run comes to its number.
    """
    if stated.stage == EVALUATE:
        return _evaluation(
            stated, measured, claim, within, stated_passes=stated_passes, measured_passes=measured_passes
        )
    steps = [ProofStep("claim", _number(claim), f"± {within:.2g} allowed")]
    pairs = [("its parent", stated.parent_values, measured.parent_values), ("the run", stated.values, measured.values)]
    if stated.baseline_values:  # an earlier version measured none
        pairs.append(("the task's baseline", stated.baseline_values, measured.baseline_values))
    for number in range(len(stated.seeds)):
        for who, theirs, ours in pairs:
            steps.append(_number_step(f"pair {number + 1}, {who}", _at(theirs, number), _at(ours, number), within))
    holds = all(step.agrees is not False for step in steps)
    sentence = "the pairs come to the verifier's numbers here" if holds else "the pairs come to other numbers here"
    return ProofResult(tuple(steps), holds=holds, sentence=sentence)


def _evaluation(
    stated: Verification,
    measured: Verification,
    claim: float,
    within: float,
    *,
    stated_passes: bool,
    measured_passes: bool,
) -> ProofResult:
    steps = [
        ProofStep("claim", _number(claim), f"± {within:.2g} allowed"),
        _number_step("value", stated.value, measured.value, within),
    ]
    if stated.values or measured.values:
        steps.append(_number_step("on new text", _at(stated.values, 0), _at(measured.values, 0), within))
    # The referee's findings of a checkpoint, stated and found.
    challenges = measured.metrics.get("challenges", 0)
    allowed = {
        "challenges": 0.0,
        "mismatches": challenges * MISMATCHES,
        "mean_difference": MEAN_NATS,
        "gap": GAP_ROUNDING,
    }
    steps += [
        _number_step(name.replace("_", " "), stated.metrics.get(name), measured.metrics.get(name), within)
        for name, within in allowed.items()
        if name in stated.metrics or name in measured.metrics
    ]
    if measured.reason or stated.reason:
        steps.append(ProofStep("why not", stated.reason, measured.reason))
    theirs, ours = _word(passes=stated_passes), _word(passes=measured_passes)
    steps.append(ProofStep("the claim, by these numbers", theirs, ours, stated_passes == measured_passes))
    if stated_passes != measured_passes:
        return ProofResult(tuple(steps), holds=False, sentence=f"by its numbers the claim {theirs}, and here it {ours}")
    return ProofResult(tuple(steps), holds=True, sentence=f"the claim {ours} here as well")


def _number_step(what: str, stated: float | None, measured: float | None, within: float) -> ProofStep:
    # Two missing ones agree.
    agrees = stated is measured if stated is None or measured is None else abs(stated - measured) <= within
    return ProofStep(what, _number(stated), _number(measured), agrees)


def _at(numbers: list[float], place: int) -> float | None:
    return numbers[place] if place < len(numbers) else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _word(*, passes: bool) -> str:
    return "is borne out" if passes else "is not borne out"
