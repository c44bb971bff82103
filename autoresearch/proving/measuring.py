"""Compares a verification with the same measurement on this machine, number by number."""

from __future__ import annotations

from autoresearch.proving.steps import Outcome, Step
from autoresearch.records import Verification
from autoresearch.verification import EVALUATE, MEAN_NATS, MISMATCHES

# Machines with another order of arithmetic differ by no more than this, in standard errors of the gap.
GAP_ROUNDING = 0.1


def close_enough(stated: float | None, found: float | None, within: float) -> bool:
    """Whether two measurements agree within ``within``. Two missing ones agree."""
    if stated is None or found is None:
        return stated is found
    return abs(stated - found) <= within


def compared(
    stated: Verification,
    found: Verification,
    *,
    claim: float,
    within: float,
    stated_passes: bool,
    found_passes: bool,
) -> Outcome:
    """Whether the same measurement on this machine agrees with a verification.

    ``within`` is how far two measurements of one run may lie apart. ``stated_passes`` and ``found_passes`` tell whether
    the claim passes by the numbers of each. An evaluation holds when these two agree, whatever its verifier's verdict.
    Pairs hold when every run comes to its number.
    """
    if stated.stage == EVALUATE:
        return _evaluation(stated, found, claim, within, stated_passes=stated_passes, found_passes=found_passes)
    steps = [Step("claim", _number(claim), f"± {within:.2g} allowed")]
    pairs = [("its parent", stated.parent_values, found.parent_values), ("the run", stated.values, found.values)]
    for number in range(len(stated.seeds)):
        for who, theirs, ours in pairs:
            one, other = _at(theirs, number), _at(ours, number)
            steps.append(
                Step(f"pair {number + 1}, {who}", _number(one), _number(other), close_enough(one, other, within))
            )
    holds = all(step.agrees is not False for step in steps)
    sentence = "the pairs come to the verifier's numbers here" if holds else "the pairs come to other numbers here"
    return Outcome(tuple(steps), holds=holds, sentence=sentence)


def _evaluation(
    stated: Verification, found: Verification, claim: float, within: float, *, stated_passes: bool, found_passes: bool
) -> Outcome:
    steps = [
        Step("claim", _number(claim), f"± {within:.2g} allowed"),
        Step("value", _number(stated.value), _number(found.value), close_enough(stated.value, found.value, within)),
    ]
    if stated.values or found.values:
        one, other = _at(stated.values, 0), _at(found.values, 0)
        steps.append(Step("on new text", _number(one), _number(other), close_enough(one, other, within)))
    steps += _answers(stated, found)
    if found.reason or stated.reason:
        steps.append(Step("why not", stated.reason, found.reason))
    theirs, ours = _word(passes=stated_passes), _word(passes=found_passes)
    steps.append(Step("the claim, by these numbers", theirs, ours, stated_passes == found_passes))
    if stated_passes != found_passes:
        return Outcome(tuple(steps), holds=False, sentence=f"by its numbers the claim {theirs}, and here it {ours}")
    return Outcome(tuple(steps), holds=True, sentence=f"the claim {ours} here as well")


def _answers(stated: Verification, found: Verification) -> list[Step]:
    """The referee's findings of a checkpoint, stated and found."""
    challenges = found.metrics.get("challenges", 0)
    allowed = {
        "challenges": 0.0,
        "mismatches": challenges * MISMATCHES,
        "mean_difference": MEAN_NATS,
        "gap": GAP_ROUNDING,
    }
    return [
        Step(name.replace("_", " "), _number(one), _number(other), close_enough(one, other, within))
        for name, within in allowed.items()
        if (one := stated.metrics.get(name)) is not None or name in found.metrics
        for other in (found.metrics.get(name),)
    ]


def _at(numbers: list[float], place: int) -> float | None:
    return numbers[place] if place < len(numbers) else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _word(*, passes: bool) -> str:
    return "is borne out" if passes else "is not borne out"
