"""What a participant is given to verify: the top, disputes anywhere, audits; fewer pairs of who was always right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoresearch.identity import Trust
from autoresearch.log import Log
from autoresearch.records import Identity, Record
from autoresearch.verification import EVALUATE, REPLICATE, is_audited, network_rules
from autoresearch.views import duties, duty_for, judgement, next_duty, track_record
from autoresearch.words import RunState
from tests.records.making import NETWORK, key
from tests.views.village import ANN, BEN, CEM, DOT, EVE, PEOPLE, ROOTS, TRUST, Village

HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def short_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """The top is one row: the same rule with fewer records."""
    monkeypatch.setattr(duties, "CHECKED_ROWS", 1)


@pytest.fixture
def village(tmp_path):
    made = Village.at(tmp_path)
    yield made
    made.log.close()


def duty(village: Village, who, run: Record | None = None):
    seed = bytes(who.key)
    if run is not None:
        return duty_for(village.log, run.id, who.public, seed, village.now_ms)
    return next_duty(village.log, village.task, who.public, seed, village.now_ms)


def test_a_dispute_is_settled_however_far_down_the_board_it_is(village: Village) -> None:
    disputed = village.run(1.9, "far down")
    village.confirm(village.run(1.0, "better"), 2.0, 1.0)
    village.evaluate(disputed, 1.91, ANN)
    found = duty(village, DOT)
    assert found is None or found.run != disputed.id
    village.evaluate(disputed, 2.5, BEN)
    found = duty(village, DOT)
    assert (found.run, found.stage, found.round) == (disputed.id, EVALUATE, 1)


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
                if is_audited(bytes(DOT.key), run.id, voices=len(ROOTS), rules=network_rules(network))
            }
            found = duty(village, DOT)
            assert (found is not None and found.run in mine) == bool(expected)


def test_who_was_always_right_has_fewer_runs_replicated_but_always_those_that_would_lead(village: Village) -> None:
    wanted = []
    for number in range(NETWORK.verify_seasoned + 1):
        run = village.run(1.5 - number / 100, f"step {number}")
        village.evaluate(run, run.body.value, ANN, BEN, CEM)
        ahead = duty(village, DOT, run)
        assert ahead is not None
        assert ahead.stage == REPLICATE  # it would lead
        village.replicate(run, 2.0, run.body.value, ANN, BEN)
    assert track_record(village.log, ROOTS[0].public).consecutive_valid >= NETWORK.verify_seasoned
    for number in range(24):
        run = village.run(1.6 + number / 1000, f"behind {number}")
        village.evaluate(run, run.body.value, ANN, BEN, CEM)
        wanted.append(duty(village, DOT, run) is not None)
    assert 1 <= sum(wanted) <= 8  # one in ten or eleven on average
    newcomer = village.run(1.7, "newcomer", by=EVE)
    village.evaluate(newcomer, 1.7, ANN, BEN, CEM)
    assert duty(village, DOT, newcomer) is not None


def test_who_dates_a_run_back_so_that_everybody_is_drawn_has_it_evaluated_by_others_too(tmp_path) -> None:
    friends, others = PEOPLE[:4], [key(number) for number in range(200, 208)]
    roots = {who.public: key(300 + number) for number, who in enumerate(others)}
    trust = Trust(participants=TRUST.participants | {root.public for root in roots.values()})
    village = Village.at(tmp_path, trust)
    for who in others:
        root = roots[who.public]
        village.append(root, "identity", Identity(action="delegate", root=root.public, device=who.public))
        village.append(who, "identity", Identity(action="profile", root=root.public))
    run = village.run(0.05, "made up", by=friends[0])  # dated back, as others see it
    village.now_ms += 8 * HOUR_MS
    village.evaluate(run, 0.05, *friends[1:])
    village.replicate(run, 2.0, 0.05, *friends[1:3])
    asked = [who for who in others if (found := duty(village, who, run)) and found.stage == EVALUATE]
    assert judgement(village.log, run.id).state is RunState.CONFIRMED
    assert asked == others
    assert duty(village, asked[0]).run == run.id
    village.evaluate(run, 1.9, asked[0])
    assert judgement(village.log, run.id).state is RunState.DISPUTED
    village.evaluate(run, 1.9, *asked[1:4], number=1)
    assert judgement(village.log, run.id).state is RunState.REFUTED
    village.log.close()
