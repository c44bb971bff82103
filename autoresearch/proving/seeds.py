"""Checks of seeds: a run's follows from task, program and replicate, a verifier's from its proof."""

from __future__ import annotations

from autoresearch.errors import UsageError
from autoresearch.proving.steps import NOT_ITS_RECORD, Given, Outcome, Step, failed, nothing_found, opened
from autoresearch.records import Network, Run, Verification
from autoresearch.tasks import has_chosen_seed, seed_for, source_digest
from autoresearch.verification import ecvrf, question, seeds
from autoresearch.words import with_article

CHOSEN = "the seed does not follow from the task, the program and the replicate"
FOLLOWS = "the seed is the one that follows from the task, the program and the replicate"


def check_run_seed(run: Given, network: Network, *, source: bytes | None = None) -> Outcome:
    """Whether a run's seed differs from the one that follows. ``source``: its program, where this node has it."""
    steps, record = opened(run, network, "the run")
    if record is None:
        return failed(steps, NOT_ITS_RECORD)
    body = record.body
    if not isinstance(body, Run):
        return failed(steps, f"the record is {with_article(record.kind)}, not a run")
    same_program = None
    found = "the source is not on this machine"
    if source is not None:
        found = _digest(source)
        same_program = found == body.source_digest.hex()
    chosen, seed = has_chosen_seed(body), seed_for(body.task, body.source_digest, body.replicate)
    steps += [
        Step("task", body.task.hex(), ""),
        Step("program", body.source_digest.hex(), found, same_program),
        Step("replicate", str(body.replicate), ""),
        Step("seed", str(body.seed), str(seed), not chosen),
    ]
    if chosen:
        return Outcome(tuple(steps), holds=True, sentence=CHOSEN)
    if same_program is False:
        return failed(steps, f"{FOLLOWS} that the record names; but its source is another program")
    return nothing_found(steps, FOLLOWS)


def check_verifier_seeds(verification: Given, network: Network) -> Outcome:
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
    return Outcome(tuple(steps), holds=True, sentence="the seeds do not follow from the verifier's own proof")


def proof_steps(author: bytes, body: Verification) -> tuple[list[Step], bytes | None]:
    """Checks that the proof is the device's for this run, stage and round, and that the seeds follow from it.

    Returns the steps and the VRF output, None where the proof is not valid. Only the device's secret key can make the
    proof, and each question has one output (RFC 9381).
    """
    output = ecvrf.verify(author, question(body.run, body.stage, body.round), body.proof)
    asked = f"of this device for this run, {body.stage}, round {body.round}"
    steps = [Step("proof", asked, "does not hold" if output is None else "holds", output is not None)]
    if output is None:
        return steps, None
    drawn = seeds(output, len(body.seeds))
    return [*steps, Step("seeds", _listed(body.seeds), _listed(drawn), list(body.seeds) == drawn)], output


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def _digest(source: bytes) -> str:
    try:
        return source_digest(source.decode("utf-8", errors="replace")).hex()
    except UsageError:
        return "it is no program"
