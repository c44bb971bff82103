"""What is said of a verdict: a sentence that follows from the evidence that exists, and from nothing else. Pure."""

from __future__ import annotations

from autoresearch.judging.states import CONFIRMING_VOTERS, Judgement, Terms, VerifierCounts
from autoresearch.judging.statistics import next_look
from autoresearch.text import counted
from autoresearch.words import RUN_STATE_SENTENCES, UNDECIDED, UNSAID, VERIFIED, RunState


def verdict_sentence(judgement: Judgement, *, missing: str = "") -> str:
    """Who measured a run and what follows, as in “evaluated by 1 verifier; to be confirmed: …”.

    ``missing`` is said behind it, see :func:`missing_sentence`.
    """
    state, evidence = judgement.state, judgement.evidence
    facts = _facts(evidence, pairs_first=state not in UNDECIDED)
    evaluators = evidence.evaluated + evidence.repeated
    if state in UNSAID:
        sentence = RUN_STATE_SENTENCES[state]
    elif state is RunState.REFUTED:
        sentence = f"{evidence.differing} of {counted(evaluators, 'verifier')} measured another value"
    elif state is RunState.DISPUTED:
        sentence = f"{_doubt(evidence)}; a larger committee is drawn"
    elif state is RunState.NOT_REPLICATED and evidence.failed > evidence.paired:
        sentence = f"it failed beside its parent: by {counted(evidence.failed, 'verifier')}"
    elif state is RunState.NOT_REPLICATED:
        sentence = f"it is not better than its parent: {facts}"
    elif state is RunState.CONFIRMED and evidence.paired:
        sentence = f"it is better than its parent: {facts}"
    elif state in VERIFIED:
        sentence = f"its value holds: {facts}"
    elif facts:
        sentence = facts
    elif evidence.unmeasured:
        sentence = f"{counted(evidence.unmeasured, 'verifier')} could not measure it"
    elif evidence.uncounted:
        sentence = f"measured by {counted(evidence.uncounted, 'other participant')}, whose verifications do not count"
    else:
        sentence = "only its author has measured it"
    return f"{sentence}; {missing}" if missing else sentence


def _doubt(evidence: VerifierCounts) -> str:
    """Why a run is disputed."""
    if evidence.differing:
        evaluators = evidence.evaluated + evidence.repeated
        return f"{evidence.differing} of {counted(evaluators, 'verifier')} measured another value"
    if evidence.unmeasured:
        return f"{counted(evidence.unmeasured, 'verifier')} could not measure it"
    return "verifiers of its child runs measured it far worse than its value"


def _facts(evidence: VerifierCounts, *, pairs_first: bool) -> str:
    """By how many verifiers a run was evaluated, trained again and compared with its parent."""
    counts = [("evaluated", evidence.evaluated), ("trained again", evidence.repeated)]
    counts.insert(0 if pairs_first else 2, ("compared with its parent", evidence.paired))
    present = [(what, voters) for what, voters in counts if voters]
    facts = [f"{what} by {voters}" for what, voters in present]
    if present:
        facts[0] = f"{present[0][0]} by {counted(present[0][1], 'verifier')}"
    if evidence.differing:
        facts.append(f"{evidence.differing} measured another value")
    if evidence.behind:
        facts.append(f"{counted(evidence.behind, 'verifier')} found its parent worse than the task's baseline")
    return ", ".join(facts)


def missing_sentence(judgement: Judgement, terms: Terms, *, has_parent: bool) -> str:
    """What an undecided run still needs; empty where it is decided, or the network is too small for any decision."""
    state, evidence = judgement.state, judgement.evidence
    voters, rules, noise, pairs_only, state_only, exact = terms
    if voters < rules.least or state not in UNDECIDED:
        return ""
    evaluators = evidence.evaluated + evidence.repeated
    aim = "to be confirmed: " if has_parent or state_only else ""
    if state is RunState.REPORTED and not pairs_only:
        return f"{aim}{evaluators} of {_verifiers(min(rules.quorum, voters - 1))} measured its value"
    if state_only:
        return f"{aim}{evaluators} of {_verifiers(CONFIRMING_VOTERS)} measured its value"
    if not has_parent:
        return "it has no parent to be compared with"
    needed = next_look(evidence.paired, noise=noise, most=voters - 1, exact=exact)
    lacking = needed - (voters - 1)
    few = f"; {counted(lacking, 'more participant')} {'is' if lacking == 1 else 'are'} needed" if lacking > 0 else ""
    if few and not (noise or exact) and next_look(evidence.paired, noise=1.0, most=voters - 1) < voters:
        few += ", as the task states no noise: autoresearch task show"
    return f"{aim}{evidence.paired} of {_verifiers(needed)} compared it with its parent{few}"


def _verifiers(number: int) -> str:
    return f"{counted(number, 'verifier')} {'has' if number == 1 else 'have'}"
