"""Who is chosen: as many as should be, nobody by his own choice, and more machines are not more lots."""

from __future__ import annotations

import hashlib

import pytest

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import (
    VerificationRules,
    challenge_draw,
    expected,
    is_audited,
    is_chosen,
    is_replicated,
    question,
    seeds,
    text_seeds,
)

RULES = VerificationRules()
RUN = hashlib.sha256(b"run").digest()


def outputs(count: int) -> list[bytes]:
    return [hashlib.sha512(number.to_bytes(4, "big")).digest() for number in range(count)]


@pytest.mark.parametrize("devices", [1, 4])
def test_as_many_are_chosen_as_are_expected(devices: int) -> None:
    chosen = sum(is_chosen(out, chosen=9, voters=200, devices=devices, rules=RULES) for out in outputs(20_000))
    assert chosen / 20_000 * 200 * devices == pytest.approx(9, rel=0.15)


def test_in_a_small_network_everybody_is_chosen() -> None:
    assert all(is_chosen(out, chosen=1, voters=9, devices=8, rules=RULES) for out in outputs(100))


def test_the_committee_grows_when_nobody_comes_and_after_a_dispute() -> None:
    assert expected(RULES, 0, 0) == 9
    assert expected(RULES, 0, RULES.patience_ms - 1) == 9
    assert expected(RULES, 0, 2 * RULES.patience_ms) == 36
    assert expected(RULES, 1, 0) == 27
    assert expected(RULES, 0, 10**15) == expected(RULES, 0, 10**16)


def test_every_run_stage_and_round_is_a_question_of_its_own() -> None:
    questions = {
        question(run, stage, number) for run in outputs(3) for stage in ("evaluate", "replicate") for number in (0, 1)
    }
    assert len(questions) == 12


def test_the_seeds_follow_from_the_proof_and_from_nothing_else() -> None:
    proof = ecvrf.prove(bytes(32), question(RUN, "replicate", 0))
    drawn = seeds(ecvrf.output(proof), 8)
    assert drawn == seeds(ecvrf.output(proof), 8)
    assert len(set(drawn)) == 8
    assert all(0 <= seed < 2**63 for seed in drawn)
    assert drawn[:3] == seeds(ecvrf.output(proof), 3)


def test_what_a_program_is_asked_about_does_not_follow_from_the_seed_that_it_runs_with() -> None:
    output = bytes(range(64))

    assert text_seeds(output, 2) == text_seeds(output, 2)
    assert not {*text_seeds(output, 2)} & {*seeds(output, 2)}
    assert len({*text_seeds(output, 2), *text_seeds(output[::-1], 2)}) == 4
    assert challenge_draw(output) != challenge_draw(output[::-1])


def test_of_a_thousand_runs_that_lead_nothing_twenty_are_measured_by_somebody() -> None:
    runs = [number.to_bytes(32, "big") for number in range(5_000)]
    people = [bytes([who]) * 32 for who in range(4)]
    measured = sum(any(is_audited(who, run, voters=5, rules=RULES) for who in people) for run in runs)
    assert 70 < measured < 130
    assert not any(is_audited(people[0], run, voters=5, rules=VerificationRules(audit_permille=0)) for run in runs)
    assert all(is_audited(people[0], run, voters=2, rules=VerificationRules(audit_permille=1000)) for run in runs[:100])


def test_who_was_always_right_is_replicated_once_in_ten_times_and_a_newcomer_always() -> None:
    lots = [[number.to_bytes(64, "big")] for number in range(2_000)]
    for streak, least, most in ((0, 2000, 2000), (9, 2000, 2000), (10, 150, 250), (1000, 150, 250)):
        times = sum(is_replicated(b"run", lot, consecutive_valid=streak, rules=RULES) for lot in lots)
        assert least <= times <= most
