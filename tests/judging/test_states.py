"""The word for a run: what it takes, who counts, and that the order of arrival means nothing."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.judging.committee import VerificationRules
from autoresearch.judging.states import (
    ERROR,
    EVALUATE,
    REPLICATE,
    UNAVAILABLE,
    Judgement,
    Lineage,
    Report,
    Terms,
    judge,
)
from autoresearch.words import RUN_STATE_SENTENCES, RunState

AUTHOR = b"author"
RULES = VerificationRules()
NOISE = 0.02


def says(who: int, *, passed: bool = True, number: int = 0, attested: bool = True) -> Report:
    return Report(b"v%d" % who, attested, (number * 100 + who, b""), EVALUATE, number, passed)


def pairs(who: int, *improvements: float, number: int = 0) -> Report:
    values = tuple(1.0 - value for value in improvements)
    return Report(b"v%d" % who, True, (1000 + number * 100 + who, b""), REPLICATE, number, True, improvements, values)


def word(*reports: Report, voters: int = 5, **more_options: object) -> Judgement:
    options = {"noise": NOISE, "minimum_effect": 0.0} | more_options
    terms = Terms(voters, RULES, **{name: options.pop(name) for name in Terms._fields if name in options})
    return judge(reports, terms, author=AUTHOR, **options)  # type: ignore[arg-type]


QUORUM = (says(1), says(2), says(3))


def test_the_authors_word_alone_is_reported() -> None:
    assert word().state is RunState.REPORTED
    assert word(says(1), says(2)).state is RunState.REPORTED


def test_a_quorum_makes_it_provisional_and_pairs_of_two_others_confirm_it() -> None:
    assert word(*QUORUM).state is RunState.PROVISIONAL
    assert word(*QUORUM, pairs(1, 0.3, 0.31)).state is RunState.PROVISIONAL
    confirmed = word(*QUORUM, pairs(1, 0.3, 0.3), pairs(2, 0.31, 0.31))
    assert confirmed.state is RunState.CONFIRMED
    assert confirmed.value == pytest.approx(0.695)
    assert (confirmed.runs, confirmed.voters) == (4, 3)


def test_what_others_find_no_better_is_not_replicated() -> None:
    nothing = [pairs(who, 0.001, -0.001) for who in (1, 2, 3, 4)]
    assert word(*QUORUM, *nothing[:3]).state is RunState.PROVISIONAL
    assert word(*QUORUM, *nothing).state is RunState.NOT_REPLICATED


@pytest.mark.parametrize("noise", [NOISE, 0.0])
@pytest.mark.parametrize(
    "lie", [(-1e9, -1e9), (-0.3, -0.3), (0.0, 0.0), (5.0, 5.0), (1e100, 1e100), (1e9, -1e9), (9.1, -8.9), (2.09, -1.9)]
)
@pytest.mark.parametrize("liar", [1, 2, 3, 4])
def test_one_voice_does_not_keep_a_better_run_from_being_confirmed(
    liar: int, lie: tuple[float, ...], noise: float
) -> None:
    honest = [pairs(who, 0.111 + who / 1e3, 0.1 - who / 1e3) for who in range(1, 7)]
    mixed = [pairs(who, *lie) if who == liar else honest[who - 1] for who in range(1, 7)]
    states = [word(*QUORUM, *mixed[:count], voters=9, noise=noise).state for count in range(2, 7)]
    assert RunState.NOT_REPLICATED not in states
    whole = word(*QUORUM, *mixed, voters=9, noise=noise)
    assert whole.state is RunState.CONFIRMED
    assert whole.improvement == pytest.approx(0.1, abs=0.06)
    # Where there are no more than four others, these have to do.
    assert word(*QUORUM, *mixed[:4], voters=5, noise=noise).state is RunState.CONFIRMED


@pytest.mark.parametrize("lie", [1e9, 1.0, 0.1])
def test_one_voice_does_not_make_a_run_better_than_it_is(lie: float) -> None:
    for liar in range(1, 7):
        mixed = [pairs(who, lie, lie) if who == liar else pairs(who, 0.01, -0.01) for who in range(1, 7)]
        for count in range(2, 7):
            assert word(*QUORUM, *mixed[:count], voters=9).state is not RunState.CONFIRMED


@pytest.mark.parametrize("voters", [4, 5, 6, 8, 20])
def test_when_all_have_spoken_a_run_is_confirmed_or_not_replicated(voters: int) -> None:
    others = range(1, min(voters, 7))
    for gain, state in ((0.0, RunState.NOT_REPLICATED), (0.3, RunState.CONFIRMED)):
        reports = [pairs(who, gain + 0.01, gain - 0.01) for who in others]
        assert word(*QUORUM, *reports, voters=voters).state is state


def test_pairs_without_an_evaluation_confirm_nothing() -> None:
    assert word(pairs(1, 0.3, 0.3), pairs(2, 0.3, 0.3)).state is RunState.REPORTED


def test_one_failure_opens_a_dispute_and_never_rejects() -> None:
    disputed = (says(1), says(2), says(3), says(4, passed=False))
    assert word(*disputed).state is RunState.DISPUTED
    assert word(*disputed, pairs(1, 0.3, 0.3), pairs(2, 0.3, 0.3)).state is RunState.DISPUTED
    cleared = [says(who, number=1) for who in (5, 6, 7)]
    assert word(*disputed, *cleared, voters=9).state is RunState.PROVISIONAL
    condemned = [says(who, number=1, passed=False) for who in (5, 6, 7)]
    assert word(*disputed, *condemned, voters=9).state is RunState.REFUTED
    split = [says(5, number=1), says(6, number=1, passed=False), says(7, number=1), says(8, number=1, passed=False)]
    assert word(*disputed, *split, voters=9).state is RunState.DISPUTED


@pytest.mark.parametrize("honest", [True, False])
def test_a_dispute_is_decided_by_those_who_measured_before_anybody_told(honest: bool) -> None:
    disputed = (*QUORUM, says(4, passed=False))
    fixed = {who: b"c%d" % who for who in range(5, 11)}
    measured = [
        says(who, passed=honest, number=1)._replace(commitment=own, links=tuple(fixed.values()))
        for who, own in fixed.items()
    ]
    expected = RunState.PROVISIONAL if honest else RunState.REFUTED
    for crowd in (5, 12):  # who repeats what was told outvotes nobody, however many they are
        late = [
            says(who, passed=not honest, number=1)._replace(commitment=b"late", links=tuple(fixed.values()))
            for who in range(11, 11 + crowd)
        ]
        assert word(*disputed, *measured, *late, voters=30).state is expected


def test_a_second_round_that_nobody_asked_for_counts_for_nothing() -> None:
    assert word(*[says(who, number=1, passed=False) for who in (5, 6, 7)]).state is RunState.REPORTED


def test_only_attested_voices_besides_the_author_count_each_once() -> None:
    strangers = [says(who, attested=False) for who in range(10)]
    assert word(*strangers).state is RunState.REPORTED
    own = [Report(AUTHOR, True, (n, b""), EVALUATE) for n in range(10)]
    assert word(says(1), says(2), *own).state is RunState.REPORTED
    assert word(*QUORUM, *(report._replace(passed=False) for report in own)).state is RunState.PROVISIONAL
    assert word(*QUORUM, pairs(1, 0.3), pairs(2, 0.3)._replace(voter=AUTHOR)).state is RunState.PROVISIONAL
    again = [says(1), *(Report(b"v1", True, (n, b""), EVALUATE) for n in range(200, 210))]
    assert word(*again).state is RunState.REPORTED


def test_a_small_network_gets_as_far_as_provisional() -> None:
    good = (says(1), pairs(1, 0.3, 0.3), pairs(2, 0.3, 0.3))
    assert word(*good, voters=2).state is RunState.PROVISIONAL
    assert word(*QUORUM, *good, voters=3).state is RunState.PROVISIONAL
    assert word(*QUORUM, *good, voters=4).state is RunState.CONFIRMED


def test_where_there_are_two_it_is_word_against_word() -> None:
    against = (says(1, passed=False), *(says(1, passed=False, number=number) for number in (1, 2)))
    for voters in (0, 1, 2):
        assert word(*against, voters=voters).state is RunState.DISPUTED
    third = [says(2, passed=False, number=1)]
    assert word(*against, *third, voters=3).state is RunState.REFUTED


@pytest.mark.parametrize("lie", [-50.0, 50.0, 1e100])
def test_one_verifier_of_two_moves_the_number_neither_way_and_a_third_is_asked(lie: float) -> None:
    honest, liar = pairs(1, 0.3, 0.31), replace_values(pairs(2, 0.3, 0.3), lie)
    assert word(*QUORUM, honest, liar).state is RunState.PROVISIONAL
    assert word(*QUORUM, honest, liar).value == pytest.approx(max(0.7, lie), abs=0.011)  # the worse for the time being
    whole = word(*QUORUM, honest, liar, pairs(3, 0.3, 0.3))
    assert whole.state is RunState.CONFIRMED
    assert whole.value == pytest.approx(0.7, abs=0.011)  # with three it is the median
    assert whole.margin == pytest.approx(0.04, abs=0.04)


def test_whoever_speaks_unasked_after_a_run_is_confirmed_moves_nothing_far() -> None:
    reports = [pairs(1, 0.3, 0.31), pairs(2, 0.3, 0.3), pairs(3, -1e9, -1e9)]
    before, after = word(*QUORUM, *reports[:2]), word(*QUORUM, *reports)
    assert before.state is after.state is RunState.CONFIRMED
    assert after.value == pytest.approx(before.value, abs=0.011)
    assert after.improvement == pytest.approx(before.improvement, abs=0.011)
    assert after.margin == pytest.approx(before.margin, abs=0.06)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("lie", [-1e9, 1e9])
def test_one_verifier_moves_the_number_and_the_improvement_no_further_than_runs_of_one_program_lie_apart(
    count: int, lie: float
) -> None:
    """Before, a friend of the author that found a huge gain against the parent doubled it where only two spoke, and one
    of four among whom the last test decides made the number as bad as it liked."""
    honest = [pairs(who, 0.1 + who / 1e3, 0.1 - who / 1e3) for who in range(1, count + 1)]
    for liar in range(count):
        for gain in (-1e9, 0.0, 0.1, 1e9):
            false_report = pairs(liar + 1, gain, gain)._replace(values=(lie, lie))
            judgement = word(*QUORUM, *honest[:liar], false_report, *honest[liar + 1 :], voters=count + 1, noise=0.02)
            if judgement.state is RunState.CONFIRMED:
                assert judgement.improvement <= 0.1 + 3 * 0.02
                assert judgement.value >= 0.9 - 3 * 0.02
            if count > 2:
                assert judgement.value == pytest.approx(0.9, abs=3 * 0.02)
                assert judgement.improvement == pytest.approx(0.1, abs=3 * 0.02)


def replace_values(report: Report, value: float) -> Report:
    return report._replace(values=(value,) * len(report.values))


def failing(who: int) -> Report:
    """In its pairs the run itself failed."""
    return Report(b"v%d" % who, True, (1000 + who, b""), REPLICATE, passed=False, measured=False)


def erring(who: int) -> Report:
    """Its evaluation ended in an error."""
    return says(who, passed=False)._replace(measured=False, obstacle=ERROR)


def lacking(who: int, *, stage: str = EVALUATE, number: int = 0) -> Report:
    """It could not get the files of the run."""
    return says(who, passed=False, number=number)._replace(measured=False, obstacle=UNAVAILABLE, stage=stage)


def test_errors_of_a_quorum_pass_nothing() -> None:
    friends = (says(1), says(2), says(3))
    assert word(*friends, erring(4), erring(5), voters=9).state is RunState.PROVISIONAL
    assert word(*friends, *map(erring, (4, 5, 6, 7)), voters=9).state is RunState.DISPUTED
    assert word(erring(1), erring(2), voters=9).state is RunState.REPORTED
    assert word(*map(erring, (1, 2, 3)), voters=9).state is RunState.DISPUTED


def test_errors_of_most_verifiers_settle_no_dispute() -> None:
    failed = tuple(map(erring, range(4, 10)))
    again = tuple(says(who, number=1) for who in (1, 2, 3))
    assert word(*failed, *again, voters=20).state is RunState.DISPUTED
    others = tuple(says(who, number=1) for who in range(4, 10))  # they came to a value after all
    assert word(*failed, *again, *others, voters=20).state is RunState.PROVISIONAL


def test_what_most_verifiers_cannot_get_is_unavailable() -> None:
    friends = (says(1), says(2), says(3))
    assert word(*friends, lacking(4), lacking(5), voters=9).state is RunState.PROVISIONAL
    assert word(*friends, *map(lacking, (4, 5, 6)), voters=9).state is RunState.PROVISIONAL
    withheld = (*friends, *map(lacking, (4, 5, 6, 7)))
    assert word(*withheld, pairs(1, 0.3, 0.3), pairs(2, 0.3, 0.3), voters=9).state is RunState.UNAVAILABLE
    assert word(*withheld, erring(8), voters=9).state is RunState.UNAVAILABLE
    assert word(*withheld, *(says(who, number=1) for who in (1, 2, 3)), voters=9).state is RunState.UNAVAILABLE
    # Whoever gets it after all, and measures it, has said nothing else.
    assert word(*withheld, says(4)._replace(order=(900, b"")), voters=9).state is RunState.PROVISIONAL
    assert word(*withheld, says(8, passed=False), voters=9).state is RunState.DISPUTED


def test_pairs_that_most_verifiers_cannot_run_confirm_nothing() -> None:
    friends = (pairs(1, 0.3, 0.3), pairs(2, 0.3, 0.31))
    assert word(*QUORUM, *friends, *(lacking(who, stage=REPLICATE) for who in (3, 4))).state is RunState.CONFIRMED
    for verdict in (ERROR, UNAVAILABLE):
        hindered = [lacking(who, stage=REPLICATE)._replace(obstacle=verdict) for who in (3, 4, 5)]
        assert word(*QUORUM, *friends, *hindered, voters=7).state is RunState.PROVISIONAL
        alone = RunState.UNAVAILABLE if verdict == UNAVAILABLE else RunState.REPORTED
        assert word(*friends, *hindered, voters=7, pairs_only=True).state is alone


def test_a_run_that_fails_in_pairs_is_not_replicated() -> None:
    friends = (pairs(1, 0.3, 0.3), pairs(2, 0.3, 0.31))
    assert word(*QUORUM, *friends, failing(3)).state is RunState.CONFIRMED
    assert word(*QUORUM, *friends, failing(3), failing(4), failing(5), voters=7).state is RunState.NOT_REPLICATED
    assert word(*QUORUM, failing(3)).state is RunState.PROVISIONAL
    assert word(*QUORUM, failing(3), failing(4)).state is RunState.NOT_REPLICATED


def test_a_parent_that_does_worse_than_its_number_confirms_no_child() -> None:
    def beside(number: float) -> tuple[Report, ...]:
        return tuple(pairs(who, 0.3, 0.3)._replace(parents=(number, number + 0.01)) for who in (1, 2))

    assert word(*QUORUM, *beside(1.0), lineage=Lineage(parent=1.0)).state is RunState.CONFIRMED
    assert word(*QUORUM, *beside(1.2), lineage=Lineage(parent=1.0)).state is RunState.PROVISIONAL
    assert word(*QUORUM, *beside(1.2), lineage=Lineage(parent=None)).state is RunState.CONFIRMED


def test_a_parent_that_is_worse_than_the_baseline_beside_it_confirms_no_child() -> None:
    """The parent spoils itself in any world but the task's own: then each child looks better than it."""

    def beside(who: int, *behind: float) -> Report:
        return pairs(who, 0.5, 0.52)._replace(behind=behind)

    assert word(*QUORUM, beside(1), beside(2)).state is RunState.CONFIRMED  # the parent is the baseline
    assert word(*QUORUM, beside(1, -0.3, -0.2), beside(2, 0.03, 0.0)).state is RunState.CONFIRMED
    for noise in (NOISE, 0.0):
        spoiled = [beside(who, 0.52, 0.5) for who in range(1, 7)]
        for count in range(1, 7):
            judgement = word(*QUORUM, *spoiled[:count], voters=9, noise=noise)
            assert (judgement.state, judgement.value, judgement.improvement) == (RunState.PROVISIONAL, None, None)
            assert (judgement.evidence.paired, judgement.evidence.behind) == (0, count)
    # What is left decides as if those had not spoken.
    honest = [pairs(who, 0.001, -0.001) for who in (3, 4, 5, 6)]
    assert word(*QUORUM, *spoiled[:2], *honest, voters=9) == word(*QUORUM, *honest, voters=9)._replace(
        voters=6, evidence=word(*QUORUM, *spoiled[:2], *honest, voters=9).evidence
    )
    # One that lies about the baseline loses its own pairs alone.
    lied = [pairs(1, 0.3, 0.3)._replace(behind=(9.0, 9.0)), pairs(2, 0.3, 0.3), pairs(3, 0.31, 0.3)]
    assert word(*QUORUM, *lied[:2]).state is RunState.PROVISIONAL
    assert word(*QUORUM, *lied).state is RunState.CONFIRMED


@pytest.mark.parametrize("behind", [0.0, 1.0, 2.0, 3.0, 5.0])
def test_an_unchanged_child_of_a_parent_that_spoils_itself_is_as_good_as_never_confirmed(behind: float) -> None:
    rng, confirmed, tries = random.Random(1), 0, 400
    for _ in range(tries):
        reports = []
        for who in range(1, 7):
            baseline, parent, child = (
                [1.0 + worse * NOISE + rng.gauss(0, NOISE) for _ in range(2)] for worse in (0.0, behind, 0.0)
            )
            gains = [before - after for before, after in zip(parent, child, strict=True)]
            lost = tuple(value - other for value, other in zip(parent, baseline, strict=True))
            reports.append(pairs(who, *gains)._replace(behind=lost))
        looks = [word(*QUORUM, *reports[:count], voters=9, minimum_effect=NOISE / 2) for count in range(2, 7)]
        confirmed += any(look.state is RunState.CONFIRMED for look in looks)
    assert confirmed <= 0.02 * tries


def test_a_run_that_collapses_as_a_parent_is_disputed() -> None:
    def state_with_parents(*values: float) -> RunState:
        return word(*QUORUM, lineage=Lineage(claim=1.0, as_parent=values)).state

    assert state_with_parents(1.0, 1.05) is RunState.PROVISIONAL
    assert state_with_parents(1.2) is RunState.PROVISIONAL  # one alone
    assert state_with_parents(1.2, 1.3) is RunState.DISPUTED
    assert word(lineage=Lineage(claim=1.0, as_parent=(1.2, 1.3))).state is RunState.DISPUTED
    assert state_with_parents(1.2, 1.3, 1.0, 1.0) is RunState.PROVISIONAL


def test_a_thousand_keys_with_one_mailbox_have_one_vote() -> None:
    crowd = [Report(b"one mailbox", True, (number, b""), EVALUATE, 0, False) for number in range(1000)]
    assert word(*crowd, *QUORUM).voters == 4
    cleared = [says(who, number=1) for who in (5, 6)]
    swarm = [Report(b"one mailbox", True, (500 + number, b""), EVALUATE, 1, False) for number in range(1000)]
    assert word(*QUORUM, *crowd, *cleared, *swarm).state is RunState.PROVISIONAL


def test_every_word_has_a_sentence() -> None:
    assert set(RUN_STATE_SENTENCES) == set(RunState)


REPORTS = st.lists(
    st.builds(
        Report,
        voter=st.sampled_from([AUTHOR, b"v1", b"v2", b"v3", b"v4", b"v5", b"v6", b"v7"]),
        attested=st.booleans(),
        order=st.tuples(st.integers(0, 5), st.binary(min_size=2, max_size=2)),
        stage=st.sampled_from([EVALUATE, REPLICATE]),
        round=st.integers(0, 2),
        passed=st.booleans(),
        improvements=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
        values=st.just(()) | st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    ),
    max_size=20,
    unique_by=lambda report: report.order,
)


@given(REPORTS, st.integers(0, 12), st.integers(0, 1000))
@settings(max_examples=60)
def test_the_order_of_arrival_means_nothing(reports: list[Report], voters: int, seed: int) -> None:
    mixed = random.Random(seed).sample(reports, len(reports))
    assert word(*mixed, voters=voters) == word(*reports, voters=voters)


ONE_VOICE = st.lists(
    st.builds(
        Report,
        voter=st.just(b"v1"),
        attested=st.just(True),
        order=st.tuples(st.integers(0, 9), st.binary(min_size=2, max_size=2)),
        stage=st.sampled_from([EVALUATE, REPLICATE]),
        round=st.integers(0, 3),
        passed=st.booleans(),
        improvements=st.tuples(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100)),
        values=st.tuples(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100)),
        commitment=st.sampled_from([b"c1", b"c2"]),
        links=st.lists(st.sampled_from([b"c1", b"c2"]), max_size=2).map(tuple),
    ),
    max_size=10,
    unique_by=lambda report: report.order,
)


@given(ONE_VOICE, st.integers(0, 12), st.booleans())
@settings(max_examples=60)
def test_one_voice_alone_decides_nothing(reports: list[Report], voters: int, pairs_only: bool) -> None:
    decided = {RunState.CONFIRMED, RunState.NOT_REPLICATED, RunState.REFUTED}
    assert word(*reports, voters=voters, pairs_only=pairs_only).state not in decided


@given(REPORTS, st.integers(0, 12))
@settings(max_examples=60)
def test_what_strangers_say_changes_nothing(reports: list[Report], voters: int) -> None:
    assert word(*reports, voters=voters) == word(*(r for r in reports if r.attested), voters=voters)


def test_a_run_that_claims_a_learned_state_alone_is_confirmed_by_its_evaluations() -> None:
    evaluations = [says(who)._replace(values=(value,)) for who, value in ((1, 9.0), (2, 9.5), (3, 10.0))]

    assert word(*evaluations[:2], state_only=True).state is RunState.REPORTED
    confirmed = word(*evaluations, state_only=True, noise=1.0)
    assert (confirmed.state, confirmed.value, confirmed.runs) == (RunState.CONFIRMED, 9.5, 3)
    assert word(*evaluations, state_only=True, voters=RULES.least - 1).state is RunState.PROVISIONAL
    against = word(*evaluations[:2], says(3, passed=False)._replace(values=(20.0,)), state_only=True)
    assert against.state is RunState.DISPUTED
    assert word(pairs(1, -0.3, -0.3), pairs(2, -0.3, -0.3), *evaluations, state_only=True).state is RunState.CONFIRMED


def test_what_a_learned_state_does_as_a_parent_in_pairs_says_nothing_of_it() -> None:
    lineage = Lineage(claim=1.0, as_parent=[5.0, 5.0, 5.0])

    assert word(*QUORUM, lineage=lineage).state is RunState.DISPUTED
    assert word(*QUORUM, lineage=lineage, state_only=True).state is RunState.CONFIRMED
