"""A run that its author gives to friends alone is confirmed by nobody, however long everybody waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from autoresearch.judging.states import ERROR, EVALUATE, REPLICATE, UNAVAILABLE
from autoresearch.log.log import Log
from autoresearch.log.standing.jobs import job_for
from autoresearch.log.standing.verification import judgement
from autoresearch.record.kinds import Identity
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from autoresearch.words import RunState
from tests.log.standing.village import ANN, BEN, CEM, DOT, EVE, TRUST, Village
from tests.record.making import NETWORK, key

# Twenty voters, as the attack had: the author, three friends, sixteen others.
AUTHOR, FRIENDS = EVE, (ANN, BEN, CEM)
OTHERS = [DOT, *(key(600 + number) for number in range(14))]
HOUR_MS = 3_600_000


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Village]:
    roots = {who.public: key(700 + number) for number, who in enumerate(OTHERS[1:])}
    trust = Trust(participants=TRUST.participants | {root.public for root in roots.values()})
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=trust) as log:
        made = Village(log)
        for who in OTHERS[1:]:
            root = roots[who.public]
            made.append(root, "identity", Identity(action="delegate", root=root.public, device=who.public))
            made.append(who, "identity", Identity(action="profile", root=root.public))
        yield made


def drawn(town: Village, run: Record, people: list[KeyPair], stage: str = EVALUATE) -> list[KeyPair]:
    """Those of the people that the protocol asks now."""
    jobs = ((who, job_for(town.log, run.id, who.public, bytes(who.key), town.now_ms)) for who in people)
    return [who for who, job in jobs if job is not None and job.stage == stage]


def state(town: Village, run: Record) -> RunState:
    return judgement(town.log, run.id).state


@pytest.mark.slow
def test_a_committee_that_cannot_get_the_model_does_not_grow_to_the_friends(town: Village) -> None:
    run = town.run(0.05, "withheld", by=AUTHOR)
    first = drawn(town, run, OTHERS)
    assert len(first) >= 3, "the draw of these keys"
    town.fails(run, UNAVAILABLE, *first)
    assert state(town, run) is RunState.UNAVAILABLE

    town.now_ms += 8 * HOUR_MS
    late = [who for who in FRIENDS if who not in drawn(town, run, list(FRIENDS))]
    assert drawn(town, run, OTHERS) == first, "those who were drawn are asked again, and nobody else"
    town.evaluate(run, 0.05, *FRIENDS)
    assert late, "some friend was not drawn at first"
    assert judgement(town.log, run.id).voters == len(FRIENDS) - len(late)
    town.replicate(run, 2.0, 0.05, *FRIENDS)
    assert state(town, run) is RunState.UNAVAILABLE

    town.evaluate(run, 0.05, *first)  # the author gives it to them after all
    assert state(town, run) is RunState.PROVISIONAL


@pytest.mark.slow
@pytest.mark.parametrize("verdict", [ERROR, UNAVAILABLE])
def test_three_friends_are_outnumbered_by_all_that_could_not_measure_it(town: Village, verdict: str) -> None:
    """Everybody is drawn, as of a run that is dated back, and the friends are the first to tell."""
    run = town.run(0.05, "withheld", by=AUTHOR)
    town.now_ms += 8 * HOUR_MS
    town.evaluate(run, 0.05, *FRIENDS)
    town.fails(run, verdict, *OTHERS[:4])
    expected = RunState.UNAVAILABLE if verdict == UNAVAILABLE else RunState.DISPUTED
    assert state(town, run) is expected
    town.evaluate(run, 0.05, *FRIENDS, number=1)
    assert state(town, run) is expected, "the round after a dispute is no way round it"
    town.replicate(run, 2.0, 0.05, *FRIENDS)
    assert state(town, run) is expected


def test_a_friend_that_opens_a_dispute_gains_nothing(town: Village) -> None:
    run = town.run(0.05, "withheld", by=AUTHOR)
    town.now_ms += 8 * HOUR_MS
    town.evaluate(run, 1.9, FRIENDS[0])
    town.fails(run, UNAVAILABLE, *OTHERS[:4])
    town.evaluate(run, 0.05, *FRIENDS, number=1)
    assert state(town, run) is RunState.DISPUTED


@pytest.mark.slow
@pytest.mark.parametrize("verdict", [ERROR, UNAVAILABLE])
def test_a_parent_that_only_friends_can_train_confirms_no_child(town: Village, verdict: str) -> None:
    run = town.run(0.05, "child", by=AUTHOR)
    town.now_ms += 8 * HOUR_MS
    town.evaluate(run, 0.05, *OTHERS)
    town.now_ms += 8 * HOUR_MS
    town.fails(run, verdict, *OTHERS[:4], stage=REPLICATE)
    town.replicate(run, 2.0, 0.05, *FRIENDS)
    assert state(town, run) is RunState.PROVISIONAL
