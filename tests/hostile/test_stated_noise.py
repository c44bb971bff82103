"""Tasks that state a wrong noise: 0 is no cheaper way to a confirmation, and what replicates show is said."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from autoresearch.ask.show import show_answer
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question, seeds
from autoresearch.judging.states import REPLICATE, Judgement
from autoresearch.judging.statistics import ERROR, PAIRS, Finding, contradicts, judge_pairs
from autoresearch.log.standing.verdicts import learnt_noise, noise_doubt
from autoresearch.log.standing.verification import judgement
from autoresearch.record.kinds import Verification
from autoresearch.words import RunState
from tests.log.standing.village import ANN, BEN, PEOPLE, STRANGER, Village
from tests.record.making import DEFINITION

TRIALS = 20_000


def village(folder: Path, noise: float | None) -> Village:
    metric = {name: each for name, each in dict(DEFINITION["metric"]).items() if name != "noise"}
    return Village.at(
        folder, definition={**DEFINITION, "metric": metric if noise is None else {**metric, "noise": noise}}
    )


@pytest.mark.slow
@pytest.mark.parametrize("most", [2, 3, 6])
@pytest.mark.parametrize("friend", [False, True], ids=["honest", "a friend of the author"])
def test_a_noisy_task_that_states_no_noise_confirms_chance_hardly_ever(most: int, friend: bool) -> None:
    dice, confirmed = random.Random(3), 0
    for _ in range(TRIALS):
        pairs = [[dice.gauss(0, 1) for _ in range(PAIRS)] for _ in range(2)]
        pairs[0] = [9.0, 9.0] if friend else pairs[0]
        confirmed += judge_pairs(pairs, noise=0, minimum_effect=0, most=most, exact=True).finding is Finding.BETTER
    assert confirmed <= 1.2 * ERROR * TRIALS


def compared(place: Village, after: float) -> Judgement:
    """A child of the baseline, evaluated by three, that two ran beside it: each pair gives the same values."""
    child = place.run(after, "child")
    place.evaluate(child, after, ANN, BEN, PEOPLE[3])
    for who in (ANN, BEN):
        proof = ecvrf.prove(bytes(who.key), question(child.id, REPLICATE, 0))
        drawn = seeds(ecvrf.output(proof), PAIRS)
        measured = Verification(
            run=child.id, stage=REPLICATE, verdict="pass", proof=proof, seeds=drawn, duration_ms=1,
            values=[after] * PAIRS, parent_values=[2.0] * PAIRS,
        )  # fmt: skip
        place.verify(who, measured)
    return judgement(place.log, child.id)


def test_two_verifiers_confirm_on_a_deterministic_task(tmp_path: Path) -> None:
    assert compared(village(tmp_path, 0.0), 1.5).state is RunState.CONFIRMED


def test_two_verifiers_confirm_nothing_that_is_no_better(tmp_path: Path) -> None:
    assert compared(village(tmp_path, 0.0), 2.5).state is RunState.PROVISIONAL, "more verifiers can be asked"


def test_where_the_noise_is_unknown_two_do_not(tmp_path: Path) -> None:
    assert compared(village(tmp_path, None), 1.5).state is RunState.PROVISIONAL


def test_in_a_network_of_three_two_verifiers_decide_either_way() -> None:
    for gain, finding in ((0.0015, Finding.BETTER), (0.0, Finding.NOT_BETTER), (-0.1, Finding.NOT_BETTER)):
        comparison = judge_pairs([[gain, gain]] * 2, noise=0, minimum_effect=0, most=2, exact=True)
        assert comparison.finding is finding


@pytest.mark.parametrize(("noise", "values", "doubted"), [
    (0.0, [1.5, 1.5, 1.5], False),
    (0.0, [1.5, 1.5, 1.6], True),
    (0.1, [1.5, 1.4, 1.6], False),
    (0.01, [25.0, 137.0, 265.0], True),
    (None, [25.0, 137.0, 265.0], False),
])  # fmt: skip
def test_replicates_that_contradict_the_stated_noise_are_told(
    tmp_path: Path, noise: float | None, values: list[float], doubted: bool
) -> None:
    place = village(tmp_path, noise)
    runs = [place.run(each, "program", replicate=number) for number, each in enumerate(values)]
    place.run(900.0, "program", by=STRANGER, replicate=9)
    learnt = learnt_noise(place.log, place.task)
    assert learnt is not None
    assert (learnt.runs, learnt.programs) == (3, 1), "a stranger's replicate counts for nothing"
    verification = show_answer(place.log, runs[0].id).verification
    assert verification is not None
    assert verification.noise == noise_doubt(place.log, place.task)
    assert ("vary by" in verification.noise) is doubted


@pytest.mark.parametrize("freedom", [1, 3, 20])
def test_a_noise_that_is_right_is_doubted_once_in_fifty(freedom: int) -> None:
    dice, doubted = random.Random(5), 0
    for _ in range(TRIALS):
        deviation = (sum(dice.gauss(0, 2) ** 2 for _ in range(freedom)) / freedom) ** 0.5
        doubted += contradicts(2.0, deviation, freedom)
    assert doubted <= 0.023 * TRIALS
    assert contradicts(2.0, 20.0, freedom)
