"""What a participant is given to verify: the top, disputes anywhere, audits; fewer pairs of who was always right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoresearch.judging.committee import is_audited, network_rules
from autoresearch.judging.states import EVALUATE, REPLICATE
from autoresearch.log.log import Log
from autoresearch.log.standing import jobs
from autoresearch.log.standing.jobs import job_for, next_job
from autoresearch.log.standing.participants import track_record
from autoresearch.log.standing.verification import judgement
from autoresearch.record.kinds import Identity, Verification
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from autoresearch.words import RunState
from tests.log.standing.village import ANN, BEN, CEM, DOT, EVE, PEOPLE, ROOTS, STRANGER, TRUST, Village, settled
from tests.record.making import NETWORK, commitment, key

HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def short_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """The top is one row: the same rule with fewer records."""
    monkeypatch.setattr(jobs, "CHECKED_ROWS", 1)


def job(village: Village, who, run: Record | None = None):
    seed = bytes(who.key)
    if run is not None:
        return job_for(village.log, run.id, who.public, seed, village.now_ms)
    return next_job(village.log, village.task, who.public, seed, village.now_ms)


def test_a_dispute_is_settled_however_far_down_the_board_it_is(village: Village) -> None:
    disputed = village.run(1.9, "far down")
    village.confirm(village.run(1.0, "better"), 2.0, 1.0)
    village.evaluate(disputed, 1.91, ANN)
    result = job(village, DOT)
    assert result is None or result.run != disputed.id
    village.evaluate(disputed, 2.5, BEN)
    result = job(village, DOT)
    assert (result.run, result.stage, result.round) == (disputed.id, EVALUATE, 1)


@pytest.mark.slow
def test_a_half_verified_run_keeps_its_place_while_better_ones_are_reported(village: Village) -> None:
    begun = village.run(1.5, "begun")
    village.evaluate(begun, 1.5, ANN, BEN, CEM)
    village.replicate(begun, 2.0, 1.5, ANN)
    for number in range(3):
        better = village.run(1.4 - number / 10, f"better {number}", by=EVE)
    assert job(village, BEN)[:2] == (begun.id, REPLICATE)
    assert job(village, ANN)[:2] == (better.id, EVALUATE)  # it has done its part
    village.replicate(begun, 2.0, 1.5, BEN)
    assert job(village, BEN)[:2] == (better.id, EVALUATE)
    village.confirm(better, 2.0, better.body.value)
    village.evaluate(behind := village.run(1.3, "behind", by=EVE), 1.3, ANN)
    assert job(village, BEN, behind) is not None
    assert job(village, BEN) is None  # what would not lead keeps no place


@pytest.mark.parametrize(("who", "begins"), [(ANN, True), (STRANGER, False)])
def test_a_run_that_another_verifier_committed_to_goes_before_better_ones(
    village: Village, who: KeyPair, begins: bool
) -> None:
    begun = village.run(1.5, "begun")
    village.commit(who, begun)
    better = village.run(1.4, "better", by=EVE)
    assert job(village, BEN).run == (begun if begins else better).id
    assert job(village, ANN).run == better.id  # a verifier commits once
    nearer = village.run(1.6, "nearer", by=DOT)
    for verifier in (CEM, EVE) if begins else ():
        village.commit(verifier, nearer)
    assert job(village, BEN).run == (nearer if begins else better).id


def test_a_run_goes_before_better_ones_whose_gain_no_pairs_can_show(village: Village) -> None:
    large = village.run(1.5, "large")
    small = village.run(1.499, "small", parent=large, by=EVE)
    assert job(village, BEN).run == large.id
    village.confirm(large, 2.0, 1.5)
    assert job(village, BEN).run == small.id  # its value is verified all the same
    false = village.run(1.0, "false", by=DOT)
    assert job(village, BEN).run == false.id


@pytest.mark.slow
def test_what_leads_nothing_is_audited_as_the_network_says(tmp_path) -> None:

    for permille, expected in ((0, 0), (1000, 1)):
        folder = tmp_path / str(permille)
        folder.mkdir()
        network = replace(NETWORK, verify_audit_permille=permille)
        with Log.open(folder / "log.sqlite", network, trust=TRUST) as log:
            village = Village(log)
            village.confirm(village.run(1.0, "leads"), 2.0, 1.0)
            discards = [village.run(3.0 + number, f"discard {number}") for number in range(20)]
            mine = {
                run.id
                for run in discards
                if is_audited(bytes(DOT.key), run.id, voters=len(ROOTS), rules=network_rules(network))
            }
            result = job(village, DOT)
            assert (result is not None and result.run in mine) == bool(expected)


@pytest.mark.slow
def test_who_was_always_right_has_fewer_runs_replicated_but_always_those_that_would_lead(village: Village) -> None:
    expected = []
    for number in range(NETWORK.verify_seasoned + 1):
        run = village.run(1.5 - number / 100, f"step {number}")
        village.evaluate(run, run.body.value, ANN, BEN, CEM)
        ahead = job(village, DOT, run)
        assert ahead is not None
        assert ahead.stage == REPLICATE  # it would lead
        village.replicate(run, 2.0, run.body.value, ANN, BEN)
    assert track_record(settled(village.log), ROOTS[0].public).consecutive_valid >= NETWORK.verify_seasoned
    for number in range(24):
        run = village.run(1.6 + number / 1000, f"behind {number}")
        village.evaluate(run, run.body.value, ANN, BEN, CEM)
        expected.append(job(village, DOT, run) is not None)
    assert 1 <= sum(expected) <= 8  # one in ten or eleven on average
    newcomer = village.run(1.7, "newcomer", by=EVE)
    village.evaluate(newcomer, 1.7, ANN, BEN, CEM)
    assert job(village, DOT, newcomer) is not None


FRIENDS, OTHERS = PEOPLE[:4], [key(number) for number in range(200, 208)]


@pytest.fixture
def town(tmp_path):
    """More people than everybody is asked of, of whom one is drawn; a run that its author dated back by eight hours."""
    roots = {who.public: key(300 + number) for number, who in enumerate(OTHERS)}
    trust = Trust(participants=TRUST.participants | {root.public for root in roots.values()})
    network = replace(NETWORK, verify_committee=1)
    with Log.open(tmp_path / "log.sqlite", network, trust=trust) as log:
        made = Village(log)
        for who in OTHERS:
            root = roots[who.public]
            made.append(root, "identity", Identity(action="delegate", root=root.public, device=who.public))
            made.append(who, "identity", Identity(action="profile", root=root.public))
        made.dated_back = made.run(0.05, "made up", by=FRIENDS[0])
        made.now_ms += 8 * HOUR_MS
        yield made


@pytest.mark.slow
def test_who_dates_a_run_back_so_that_everybody_is_drawn_has_it_evaluated_by_others_too(town: Village) -> None:
    run = town.dated_back
    town.evaluate(run, 0.05, *FRIENDS[1:])
    town.now_ms += 8 * HOUR_MS
    town.replicate(run, 2.0, 0.05, *FRIENDS[1:3])
    requests = [who for who in OTHERS if (result := job(town, who, run)) and result.stage == EVALUATE]
    assert judgement(town.log, run.id).state is RunState.CONFIRMED
    assert requests == OTHERS
    assert job(town, requests[0]).run == run.id
    town.evaluate(run, 1.9, requests[0])
    assert judgement(town.log, run.id).state is RunState.DISPUTED
    town.evaluate(run, 1.9, *requests[1:4], number=1)
    assert judgement(town.log, run.id).state is RunState.REFUTED


@pytest.mark.slow
def test_a_run_that_is_dated_back_has_nobody_drawn_for_its_pairs_before_others_waited(town: Village) -> None:
    run = town.dated_back
    town.evaluate(run, 0.05, *FRIENDS[1:])
    town.replicate(run, 2.0, 0.05, *FRIENDS[1:])  # at once, whoever of them is drawn
    assert judgement(town.log, run.id).state is RunState.PROVISIONAL

    def verifiers() -> list[KeyPair]:
        """Who has pairs to make: the run would lead, and is evaluated by as many as were waited for."""
        return [who for who in OTHERS if (result := job(town, who, run)) and result.stage == REPLICATE]

    town.evaluate(run, 0.05, *OTHERS)
    assert len(verifiers()) < len(OTHERS) / 2
    town.now_ms += 8 * HOUR_MS
    assert verifiers() == OTHERS


@pytest.mark.slow
@pytest.mark.parametrize("unasked", [False, True])
def test_who_dates_a_run_back_gains_nothing_by_disputing_it_first(town: Village, unasked: bool) -> None:
    run = town.dated_back
    if not unasked:  # a friend doubts it, and the same friends settle that
        town.evaluate(run, 1.9, FRIENDS[1])
        town.evaluate(run, 0.05, *FRIENDS[1:], number=1)
    else:  # or says what nobody asked for
        town.evaluate(run, 0.05, *FRIENDS[1:])
        town.evaluate(run, 1.9, FRIENDS[1])
        town.evaluate(run, 0.05, FRIENDS[0], FRIENDS[1], number=1)
    town.replicate(run, 2.0, 0.05, *FRIENDS[1:])
    assert judgement(town.log, run.id).state is RunState.PROVISIONAL
    number = 0 if unasked else 1
    requests = [
        who for who in OTHERS if (result := job(town, who, run)) and (result.stage, result.round) == (EVALUATE, number)
    ]
    assert requests == OTHERS
    town.evaluate(run, 1.9, *OTHERS, number=number)
    assert judgement(town.log, run.id).state is (RunState.DISPUTED if unasked else RunState.REFUTED)


@pytest.mark.slow
def test_nobody_makes_pairs_while_the_last_that_anybody_hears_are_about_to_be_told(town: Village) -> None:
    run = town.run(1.5, "better")
    town.now_ms += 8 * HOUR_MS  # everybody is drawn
    town.evaluate(run, 1.5, *PEOPLE[1:], *OTHERS)
    town.now_ms += 8 * HOUR_MS
    town.replicate(run, 2.0, 1e6, FRIENDS[1])
    town.replicate(run, 2.0, 1.5, *OTHERS[:4])
    assert job(town, OTHERS[4], run).stage == job(town, OTHERS[5], run).stage == REPLICATE
    made = job(town, OTHERS[4], run)
    body = Verification(run=run.id, stage=REPLICATE, verdict="pass", proof=made.proof, seeds=list(made.seeds))
    town.append(OTHERS[4], "commitment", commitment(OTHERS[4], body), [run.id])
    assert job(town, OTHERS[5], run) is None
    town.now_ms += NETWORK.verify_patience_ms
    assert job(town, OTHERS[5], run).stage == REPLICATE  # who commits and never tells keeps nobody from it
    town.replicate(run, 2.0, 1.5, OTHERS[5])
    assert judgement(town.log, run.id).state is RunState.CONFIRMED


def test_who_measured_before_it_was_drawn_is_not_asked_for_what_can_no_longer_count(town: Village) -> None:
    run = town.run(1.5, "by hand")
    early = next(who for who in OTHERS if job(town, who, run) is None)
    town.evaluate(run, 1.5, early)
    town.now_ms += 8 * HOUR_MS  # everybody is drawn
    assert judgement(town.log, run.id).voters == 0
    assert [who for who in OTHERS if job(town, who, run) is None] == [early]


def test_nobody_makes_pairs_of_what_is_no_better_by_its_authors_own_word(village: Village) -> None:
    worse, better = village.run(2.1, "worse"), village.run(1.9, "better")
    for run in (worse, better):
        village.evaluate(run, run.body.value, ANN, BEN, CEM)
    assert judgement(village.log, worse.id).state is RunState.PROVISIONAL
    assert job(village, DOT, worse) is None
    assert job(village, DOT, better).stage == REPLICATE


@pytest.mark.parametrize(("lie", "requests"), [(1e6, (BEN, CEM, DOT, EVE)), (-1e6, (BEN, CEM))], ids=["loss", "gain"])
def test_a_better_run_is_confirmed_although_one_verifier_lies_about_its_pairs(
    village: Village, lie: float, requests: tuple[int, ...]
) -> None:
    run = village.run(1.9, "better")
    village.evaluate(run, 1.9, ANN, BEN, CEM)
    village.replicate(run, 2.0, lie, ANN)
    for who in requests:
        assert job(village, who, run).stage == REPLICATE
        village.replicate(run, 2.0, 1.9, who)
    result = judgement(village.log, run.id)
    assert result.state is RunState.CONFIRMED
    assert (result.value, result.improvement) == (pytest.approx(1.9, abs=0.02), pytest.approx(0.1, abs=0.02))


def test_a_published_state_is_evaluated_and_never_replicated(village: Village) -> None:
    parent = village.run(2.0, "parent")
    run = village.run(1.0, "state", parent=parent, mode="bench")
    assert job(village, DOT, run).stage == EVALUATE

    village.evaluate(run, 1.0, ANN, BEN, CEM)

    assert judgement(village.log, run.id).state is RunState.CONFIRMED
    assert judgement(village.log, run.id).value == 1.0
    again = job(village, DOT, run)
    assert again is None or again.stage == EVALUATE
