"""How often luck is taken for progress: changes that change nothing, and how many of them others would confirm.

Each candidate is the best-looking of many by its author's own runs, which is what a swarm would publish; the author's
runs don't count, so its luck is worth nothing. Other participants run two pairs each, as the network has it. Where one
of them lies, it is the second, wants no such run confirmed, and makes up a large loss, a gain that is too large to be
true, or both; what is counted is the lie that does the most harm. Or it is a friend of the author
and finds what is no better to be better, by as much as goes through most often.
"""

from __future__ import annotations

import random

from autoresearch.judging.committee import VerificationRules
from autoresearch.judging.states import EVALUATE, REPLICATE, Report, Terms, judge
from autoresearch.judging.statistics import MOST_VOTERS, PAIRS
from autoresearch.words import RunState

COMPARED = "at most 1 of 100 confirmed; and, by the author's own word, how many look better than their parent"
NOISE = 0.02
CANDIDATES = 100
REPETITIONS = {True: 20, False: 200}
TRIED = 50
VERIFIERS = MOST_VOTERS
# The improvements that a liar makes up: a mean far below the others' (also so wide apart that it leaves the widest of
# them as it is), far above, and in their midst.
LIES = ((-1000.0, -1000.0), (-1000.0, -1000.0 + 12 * NOISE), (1000.0, 1000.0), (1000.0, -999.9))
# What a friend of the author makes up for a run that is no better, in standard deviations of one run.
FAVOURS = (2, 3, 4, 5, 6, 1000)
# Real improvements, in standard deviations of one run, to see that the rule still finds something.
EFFECTS = (1, 2, 3, 5)


def measure(*, quick: bool) -> dict[str, float]:
    """Of 100 null candidates, averaged over repetitions: confirmed; those that look better to their author; power."""
    dice = random.Random(1)
    repetitions = REPETITIONS[quick]
    confirmed, pairs = [], []
    for _ in range(repetitions):
        found = [verified(dice, 0.0) for _ in range(CANDIDATES)]
        confirmed.append(sum(state is RunState.CONFIRMED for state, _ in found))
    lucky = sum(min(dice.gauss(0, NOISE) for _ in range(TRIED)) < dice.gauss(0, NOISE) for _ in range(CANDIDATES))
    favoured = [
        [verified(dice, 0.0, lie=(gain * NOISE,) * PAIRS)[0] for _ in range(CANDIDATES * repetitions // 10)]
        for gain in FAVOURS
    ]
    figures = {
        "confirmed": sum(confirmed) / repetitions,
        "confirmed_at_most": max(confirmed),
        "confirmed_with_friend": max(CANDIDATES * found.count(RunState.CONFIRMED) / len(found) for found in favoured),
        "of": CANDIDATES,
        "better_by_own_word": lucky,
    }
    for effect in EFFECTS:
        found = [verified(dice, effect * NOISE) for _ in range(CANDIDATES * repetitions // 10)]
        pairs = [count for state, count in found if state is RunState.CONFIRMED]
        figures[f"confirmed_share_{effect}_sd"] = len(pairs) / len(found)
        figures[f"pairs_{effect}_sd"] = sum(pairs) / max(len(pairs), 1)
        against = [[verified(dice, effect * NOISE, lie=lie)[0] for _ in found] for lie in LIES]
        figures[f"with_liar_{effect}_sd"] = min(states.count(RunState.CONFIRMED) for states in against) / len(found)
    return figures


def verified(dice: random.Random, effect: float, *, lie: tuple[float, ...] = ()) -> tuple[RunState, int]:
    """The word for a candidate that is really better by ``effect``, and after how many pairs it was said."""
    rules, most = VerificationRules(), VERIFIERS + 1
    reports = [Report(bytes([1, who]), attested=True, order=(who, b""), stage=EVALUATE) for who in range(VERIFIERS)]
    for who in range(VERIFIERS):
        pairs = [(dice.gauss(-effect, NOISE), dice.gauss(0.0, NOISE)) for _ in range(PAIRS)]
        if who == 1 and lie:
            pairs = [(-improvement, 0.0) for improvement in lie]
        report = Report(
            bytes([1, who]),
            attested=True,
            order=(10 + who, b""),
            stage=REPLICATE,
            improvements=tuple(parent - child for child, parent in pairs),
            values=tuple(child for child, _ in pairs),
        )
        reports.append(report)
        judgement = judge(reports, Terms(most, rules, NOISE), author=b"", minimum_effect=0.0)
        if judgement.state is not RunState.PROVISIONAL:
            return judgement.state, (who + 1) * PAIRS
    return judgement.state, VERIFIERS * PAIRS
