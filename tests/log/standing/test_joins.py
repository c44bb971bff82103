"""Which of those who join with an invite a founder's node admits; and that the log's views follow at once."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from autoresearch.log.log import Log
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.participants import invited, joined_ms, joins_of, spent_uses
from autoresearch.record.kinds import Admission, Join
from autoresearch.trust.invite import Invitation, join_with, token_of
from autoresearch.trust.roster import Trust
from tests.record.making import NETWORK, NOW_MS, key, pairs, sealed

FOUNDER, ANN, BEN, STRANGER = map(key, range(1, 5))
TRUST = Trust(founders=frozenset({FOUNDER.public}))
SEED, OTHER_SEED = b"s" * 32, b"o" * 32


def invite(seed: bytes = SEED, *, uses: int = 1, made_ms: int = NOW_MS) -> Invitation:
    return Invitation(
        token=token_of(seed), network=NETWORK.id, made_ms=made_ms, expires_ms=made_ms + 1_000_000, uses=uses
    )


@pytest.fixture
def log(tmp_path: Path):
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=TRUST) as opened:
        yield opened


def join(who, seed=SEED, *, network=NETWORK.id, by=None, time_ms=NOW_MS, seq=1):
    return sealed(by or who, join_with(seed, network, who.public), kind="join", seq=seq, time_ms=time_ms)


def take(log, *records):
    verdicts = log.writer.ingest(pairs(records), now_ms=NOW_MS + 1_000_000)
    assert all(verdict.record for verdict in verdicts)


def due(log, *invitations):
    return [join.participant for join in invited(log, list(invitations), FOUNDER.public)]


def admit(log, who, seed=SEED, *, admits=True):
    token = token_of(seed) if admits else None
    body = Admission(action="admit" if admits else "remove", participant=who.public, token=token)
    log.writer.append(FOUNDER, "admission", body, now_ms=log.records.newest_ms() + 1000)


def test_who_joins_with_a_token_that_was_given_out_is_admitted_once(log):
    take(log, join(ANN))
    assert due(log, invite()) == [ANN.public]
    admit(log, ANN)
    assert due(log, invite()) == []
    assert spent_uses(log, FOUNDER.public) == {token_of(SEED): {ANN.public}}
    assert joins_of(log) == {ANN.public: NOW_MS}
    assert (joined_ms(log, ANN.public), joined_ms(log, BEN.public)) == (NOW_MS, 0)


def test_a_token_that_nobody_gave_out_admits_nobody(log):
    take(log, join(ANN, OTHER_SEED))
    assert due(log, invite()) == due(log) == []


def test_a_join_is_good_for_one_key_and_one_network(log):
    proof = join_with(SEED, NETWORK.id, ANN.public)
    stolen = Join(participant=STRANGER.public, token=proof.token, proof=proof.proof)
    forged = Join(participant=STRANGER.public, token=proof.token, proof=bytes(64))
    take(log, *(sealed(STRANGER, body, kind="join", seq=n) for n, body in enumerate((stolen, forged), start=1)))
    take(log, join(BEN, network=b"another network!"))
    assert due(log, invite(uses=9)) == []
    take(log, join(ANN, by=STRANGER, seq=3))
    assert due(log, invite(uses=9)) == [ANN.public], "whoever passes it on, it admits whom it names"


@pytest.mark.slow
def test_of_a_thousand_joins_with_one_token_the_first_is_admitted(log):
    take(log, *(join(key(100 + number), time_ms=NOW_MS + number) for number in range(1000)))
    assert due(log, invite()) == [key(100).public]
    assert len(due(log, invite(uses=3))) == 3
    admit(log, key(100))
    assert due(log, invite()) == []
    assert len(due(log, invite(uses=3))) == 2


def test_who_was_dismissed_comes_back_with_a_newer_invite_only(log):
    take(log, join(ANN))
    admit(log, ANN)
    admit(log, ANN, admits=False)
    assert due(log, invite(uses=5)) == []
    take(log, join(ANN, OTHER_SEED, seq=2))
    assert due(log, invite(OTHER_SEED, made_ms=NOW_MS - 1)) == []
    assert due(log, invite(OTHER_SEED, made_ms=log.records.newest_ms() + 1)) == [ANN.public]


def test_whoever_counts_needs_no_admission(log):
    log.trust = Trust(founders=TRUST.founders, participants=frozenset({BEN.public}))
    take(log, join(BEN), join(FOUNDER))
    assert due(log, invite(uses=5)) == []


@pytest.mark.slow
def test_the_views_follow_admissions_at_once_in_any_order(tmp_path):
    def word(number, who, *, admits=True):
        body = Admission(action="admit" if admits else "remove", participant=who.public)
        return sealed(FOUNDER, body, kind="admission", seq=number, time_ms=NOW_MS + number)

    words = [word(1, ANN), word(2, BEN), word(3, ANN, admits=False), word(4, STRANGER)]
    for number, order in enumerate(permutations(words)):
        with Log.open(tmp_path / f"{number}.sqlite", NETWORK, trust=TRUST) as log:
            seen = [roster_of(log).participants]
            for record in order:
                take(log, record)
                seen.append(roster_of(log).participants)
            assert seen[0] == {FOUNDER.public}
            assert seen[-1] == {FOUNDER.public, BEN.public, STRANGER.public}
            log.trust = Trust()
            assert roster_of(log).participants == frozenset()
