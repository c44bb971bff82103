"""No sentence about a verdict says what nobody found: whatever was measured, by verifiers that count or that don't."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.ask.show import show_answer
from autoresearch.judging.committee import VerificationRules
from autoresearch.judging.states import EVALUATE, REPLICATE, Report, Terms, judge
from autoresearch.judging.verdicts import missing_sentence, verdict_sentence
from autoresearch.log.standing.queries import leaderboard
from autoresearch.words import RunState
from tests.log.standing.village import ANN, BEN, CEM, DOT, STRANGER, Village

AUTHOR = b"author"
REPORTS = st.lists(
    st.builds(
        Report,
        voter=st.sampled_from([AUTHOR, b"a", b"b", b"c", b"d"]),
        attested=st.booleans(),
        order=st.tuples(st.integers(0, 9), st.binary(min_size=1, max_size=2)),
        stage=st.sampled_from([EVALUATE, REPLICATE]),
        round=st.integers(0, 1),
        passed=st.booleans(),
        improvements=st.sampled_from([(0.5, 0.5), (-0.5, -0.5), (0.5, -0.5)]),
        values=st.just((1.0, 1.0)),
        measured=st.booleans(),
        repeated=st.booleans(),
    ),
    max_size=12,
)


@given(REPORTS, st.booleans(), st.booleans(), st.integers(0, 5), st.sampled_from([0.0, 0.1]))
def test_every_sentence_follows_from_the_evidence(
    reports: list[Report], state_only: bool, has_parent: bool, uncounted: int, noise: float
) -> None:
    if state_only or not has_parent:
        reports = [report for report in reports if report.stage == EVALUATE]
    rules = VerificationRules(least=3)
    terms = Terms(5, rules, noise, state_only=state_only)
    standing = judge(reports, terms, author=AUTHOR, minimum_effect=0.0)
    missing = missing_sentence(standing, terms, has_parent=has_parent)
    evidence = standing.evidence._replace(uncounted=uncounted)
    sentence = verdict_sentence(standing._replace(evidence=evidence), missing=missing)
    counting = {report.voter for report in reports if report.attested and report.voter != AUTHOR}
    assert ("only its author" in sentence) is (not counting and not uncounted)
    counted_sentence = verdict_sentence(standing)
    assert ("compared with its parent by" in counted_sentence) <= (evidence.paired > 0)
    assert ("better than its parent" in counted_sentence) is (
        standing.state in (RunState.CONFIRMED, RunState.NOT_REPLICATED)
        and not state_only
        and "failed" not in counted_sentence
    )
    for what, voters in (("evaluated", evidence.evaluated), ("trained again", evidence.repeated)):
        assert voters <= len(counting)
        assert (
            (f"{what} by {voters}" in counted_sentence)
            or not voters
            or evidence.differing
            or "value holds" not in counted_sentence
        )
    assert ("to be confirmed" in sentence) <= (has_parent or state_only)


def test_among_three_the_noise_is_named_that_the_task_does_not_state() -> None:
    sentences = []
    for noise, exact, voters in ((0.0, False, 3), (0.0, False, 4), (0.1, False, 3), (0.0, True, 3)):
        terms = Terms(voters, VerificationRules(least=3), noise, pairs_only=True, exact=exact)
        standing = judge([], terms, author=AUTHOR, minimum_effect=0.0)
        sentences.append(missing_sentence(standing, terms, has_parent=True).partition("; ")[2])
    assert sentences == [
        "1 more participant is needed, as the task states no noise: autoresearch task show",
        *("", "", ""),
    ]


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return Village.at(tmp_path)


def reason(village: Village, run: bytes) -> str:
    """What ``show``, the run's page and MCP say."""
    verification = show_answer(village.log, run).verification
    assert verification is not None
    return verification.reason


def test_each_measurement_is_told_with_what_is_missing(village: Village) -> None:
    run = village.run(1.5, "child", parent=village.baseline)
    assert reason(village, run.id) == (
        "only its author has measured it; to be confirmed: 0 of 3 verifiers have measured its value"
    )
    village.evaluate(run, 1.5, ANN, BEN)
    assert reason(village, run.id) == (
        "trained again by 2 verifiers; to be confirmed: 2 of 3 verifiers have measured its value"
    )
    village.evaluate(run, 1.5, CEM, error=0.1)
    assert reason(village, run.id).startswith("its value holds: evaluated by 1 verifier, trained again by 2; ")
    village.replicate(run, 2.0, 1.5, ANN)
    assert reason(village, run.id).endswith("to be confirmed: 1 of 2 verifiers have compared it with its parent")
    village.replicate(run, 2.0, 1.5, BEN)
    sentence = (
        "it is better than its parent: compared with its parent by 2 verifiers, evaluated by 1, trained again by 2"
    )
    assert reason(village, run.id) == sentence
    [row] = [row for row in leaderboard(village.log, village.task) if row.title == "child"]
    assert row.verdict == sentence


def test_a_run_without_a_parent_is_better_than_none(village: Village) -> None:
    assert village.baseline is not None
    village.evaluate(village.baseline, 2.0, ANN, BEN, CEM)
    sentence = reason(village, village.baseline.id)
    assert sentence == "its value holds: trained again by 3 verifiers; it has no parent to be compared with"
    agent = village.run(1.0, "agent", mode="train", parent=village.baseline)
    village.evaluate(agent, 1.0, ANN, BEN, CEM, error=0.1)
    assert show_answer(village.log, agent.id).verification.state == "confirmed"  # type: ignore[union-attr]
    assert reason(village, agent.id) == "its value holds: evaluated by 3 verifiers"


def test_measurements_that_do_not_count_are_told_as_such(village: Village) -> None:
    run = village.run(1.5, "child")
    village.evaluate(run, 9.0, STRANGER)
    assert reason(village, run.id).startswith(
        "measured by 1 other participant, whose verifications do not count; to be confirmed: 0 of 3"
    )


def test_another_value_is_told_by_how_many(village: Village) -> None:
    run = village.run(1.5, "child")
    village.evaluate(run, 9.0, ANN)
    village.evaluate(run, 1.5, BEN, CEM)
    assert reason(village, run.id) == "1 of 3 verifiers measured another value; a larger committee is drawn"
    village.evaluate(run, 9.0, BEN, CEM, DOT, number=1)
    assert reason(village, run.id).endswith("measured another value")
