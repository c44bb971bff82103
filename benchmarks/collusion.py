"""What colluders get past the rule of verification, by simulation with the rule itself.

200 participants, of whom some collude: they pass a bad run whenever they are drawn. The honest answer nine times in ten
when they are drawn, and fail it. A bad run gets through when a quorum passes it and nobody objects. Good runs need a
quorum of the honest; the colluders keep silent.
"""

from __future__ import annotations

import math
import random

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import VerificationRules, is_chosen
from autoresearch.judging.states import EVALUATE, Report, Terms, judge
from autoresearch.words import RunState

COMPARED = "the same probabilities by arithmetic (expected_*); the committee has 9 of 200 on average, the quorum is 3"
VOICES = 200
ANSWER = 0.9
SHARES = (5, 10, 20, 30)
TRIALS = {True: 2_000, False: 100_000}


def measure(*, quick: bool) -> dict[str, float]:
    """For each share of colluders in percent: bad runs accepted, and good ones that reach a quorum, of all."""
    dice, rules, trials = random.Random(1), VerificationRules(), TRIALS[quick]
    figures: dict[str, float] = {}
    for percent in SHARES:
        colluders = VOICES * percent // 100
        bad = good = 0
        for _ in range(trials):
            drawn = [who for who in range(VOICES) if chosen(dice, rules)]
            crooks = [who for who in drawn if who < colluders]
            honest = [who for who in drawn if who >= colluders and dice.random() < ANSWER]
            bad += word(crooks, honest, rules) is RunState.PROVISIONAL
            good += word(honest, [], rules) is RunState.PROVISIONAL
        figures[f"bad_accepted_{percent}"] = bad / trials
        figures[f"expected_bad_{percent}"] = expected_bad(colluders, rules)
        figures[f"honest_confirmed_{percent}"] = good / trials
    return {"bad_accepted": figures["bad_accepted_30"], "honest_confirmed": figures["honest_confirmed_10"]} | figures


def chosen(dice: random.Random, rules: VerificationRules) -> bool:
    """Whether one participant's lot is drawn."""
    lot = dice.randbytes(ecvrf.OUTPUT_BYTES)
    return is_chosen(lot, chosen=rules.committee, voters=VOICES, devices=1, rules=rules)


def word(passing: list[int], failing: list[int], rules: VerificationRules) -> RunState:
    """The word for a run that some pass and some fail."""
    reports = [report(who, passed=True) for who in passing] + [report(who, passed=False) for who in failing]
    return judge(reports, Terms(VOICES, rules, 0.0), author=b"", minimum_effect=0.0).state


def report(who: int, *, passed: bool) -> Report:
    """One participant's evaluation."""
    return Report(who.to_bytes(2, "big"), attested=True, order=(who, b""), stage=EVALUATE, passed=passed)


def expected_bad(colluders: int, rules: VerificationRules) -> float:
    """The chance that a quorum of colluders is drawn and no honest participant is drawn and answers."""
    chance = rules.committee / VOICES
    few = sum(
        math.comb(colluders, n) * chance**n * (1 - chance) ** (colluders - n)
        for n in range(min(rules.quorum, colluders + 1))
    )
    return (1 - few) * (1 - chance * ANSWER) ** (VOICES - colluders)
