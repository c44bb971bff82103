"""Whom founders admit: a function of the set of records, of nobody else's word and of no order."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.record.kinds import Admission, Identity, Withdrawal
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import ADMITTED_MAX, Roster, Trust
from tests.record.making import NOW_MS, key, sealed
from tests.trust.test_roster import delegates, revokes

FOUNDER, LAPTOP, SECOND, ANN, BEN, STRANGER = map(key, range(1, 7))
TRUST = Trust(founders=frozenset({FOUNDER.public}))
BOTH = Trust(founders=frozenset({FOUNDER.public, SECOND.public}))


def decides(
    author: KeyPair, who: KeyPair | bytes, *, admits: bool = True, at: int = 0, seq: int = 2, token: bytes | None = None
) -> Record:
    """A founder's word, so many milliseconds after the beginning."""
    participant = who if isinstance(who, bytes) else who.public
    body = Admission(action="admit" if admits else "remove", participant=participant, token=token)
    return sealed(author, body, kind="admission", seq=seq, time_ms=NOW_MS + at)


def withdraws(author: KeyPair, *records: Record, at: int = 5_000) -> Record:
    links = [record.id for record in records]
    return sealed(author, Withdrawal(), kind="withdrawal", seq=99, time_ms=NOW_MS + at, links=links)


def counting(records: Sequence[Record], trust: Trust = TRUST) -> frozenset[bytes]:
    """The participants that count besides the founders."""
    return Roster(records, trust).participants - trust.founders


def test_a_founder_counts_and_whom_it_admits_by_any_device_of_its_own() -> None:
    roster = Roster([*delegates(FOUNDER, LAPTOP), decides(LAPTOP, ANN, at=1)], TRUST)
    assert roster.participants == {FOUNDER.public, ANN.public}
    assert roster.voter(LAPTOP.public, NOW_MS).attested
    assert roster.voter(ANN.public, NOW_MS).attested
    assert roster.count(NOW_MS) == 2
    assert set(roster.counted(NOW_MS)) == roster.voters(NOW_MS) == roster.participants
    assert not Roster([decides(LAPTOP, ANN)], TRUST).voter(ANN.public, NOW_MS).attested


def test_the_latest_word_on_a_participant_counts_whichever_founder_gave_it() -> None:
    admitted, removed = decides(FOUNDER, ANN, at=1), decides(SECOND, ANN, admits=False, at=2)
    assert counting([admitted], BOTH) == {ANN.public}
    assert counting([removed, admitted], BOTH) == frozenset()
    assert counting([removed, admitted, decides(FOUNDER, ANN, at=3, seq=3)], BOTH) == {ANN.public}
    assert counting([removed, admitted]) == {ANN.public}, "a founder whom nobody here trusts"


def test_what_was_counted_before_a_dismissal_counts_no_longer() -> None:
    roster = Roster([decides(FOUNDER, ANN, at=1), decides(FOUNDER, ANN, admits=False, at=9, seq=3)], TRUST)
    assert not roster.voter(ANN.public, NOW_MS + 5).attested


def test_a_withdrawn_word_was_never_said() -> None:
    admitted, removed = decides(FOUNDER, ANN, at=1), decides(FOUNDER, ANN, admits=False, at=2, seq=3)
    assert counting([admitted, removed, withdraws(FOUNDER, removed)]) == {ANN.public}
    assert counting([admitted, withdraws(FOUNDER, admitted)]) == frozenset()
    assert counting([admitted, withdraws(STRANGER, admitted)]) == {ANN.public}
    by_device = [*delegates(FOUNDER, LAPTOP), admitted, withdraws(LAPTOP, admitted)]
    assert counting(by_device) == frozenset()


def test_a_fork_of_the_founders_device_changes_nothing() -> None:
    branches = [decides(FOUNDER, ANN, at=1), decides(FOUNDER, BEN, at=2), decides(FOUNDER, ANN, admits=False, at=3)]
    assert counting(branches) == {BEN.public}


def test_nobody_else_admits_anybody_not_even_himself() -> None:
    assert counting([decides(STRANGER, STRANGER), decides(STRANGER, ANN)]) == frozenset()
    assert counting([decides(FOUNDER, ANN), decides(ANN, BEN), decides(ANN, FOUNDER, admits=False)]) == {ANN.public}
    claimed = sealed(STRANGER, Identity(action="profile", root=FOUNDER.public), kind="identity", time_ms=NOW_MS)
    assert counting([claimed, decides(STRANGER, ANN, at=1)]) == frozenset()
    named = Trust(founders=TRUST.founders, participants=frozenset({BEN.public}))
    assert counting([decides(BEN, ANN)], named) == {BEN.public}


def test_a_revoked_device_of_the_founder_admits_nobody_and_a_later_word_undoes_what_it_dated_back() -> None:
    records = [*delegates(FOUNDER, LAPTOP), decides(LAPTOP, ANN, at=1), revokes(FOUNDER, LAPTOP, NOW_MS + 10)]
    assert counting(records) == {ANN.public}
    assert counting([*records, decides(LAPTOP, STRANGER, at=10, seq=3)]) == {ANN.public}
    dated_back = [*records, decides(LAPTOP, STRANGER, at=9, seq=3), decides(LAPTOP, ANN, admits=False, at=9, seq=4)]
    assert counting(dated_back) == {STRANGER.public}
    mended = [decides(FOUNDER, STRANGER, admits=False, at=20), decides(FOUNDER, ANN, at=21, seq=3)]
    assert counting([*dated_back, *mended]) == {ANN.public}


def test_of_too_many_those_admitted_first_count() -> None:
    many = [number.to_bytes(32, "big") for number in range(1, ADMITTED_MAX + 11)]
    records = [decides(FOUNDER, who, at=number, seq=number + 1) for number, who in enumerate(many)]
    assert counting(records) == set(many[:ADMITTED_MAX])
    gone = decides(FOUNDER, many[0], admits=False, at=100_000, seq=5_000)
    assert counting([*records, gone]) == set(many[1 : ADMITTED_MAX + 1])


PEOPLE = [ANN, BEN, STRANGER, FOUNDER]
words = st.builds(
    decides,
    st.sampled_from([FOUNDER, LAPTOP, SECOND, STRANGER, ANN]),
    st.sampled_from(PEOPLE),
    admits=st.booleans(),
    at=st.integers(0, 6),
    seq=st.integers(2, 4),
)
about_devices = [*delegates(FOUNDER, LAPTOP), revokes(FOUNDER, LAPTOP, NOW_MS + 4)]


@given(decisions=st.lists(words, max_size=12, unique_by=lambda record: record.id), data=st.data())
@settings(deadline=None)
def test_any_order_of_arrival_gives_the_same_trust(decisions: list[Record], data: st.DataObject) -> None:
    taken_back = data.draw(st.lists(st.sampled_from(decisions), max_size=2) if decisions else st.just([]))
    back = [withdraws(FOUNDER, *taken_back, at=data.draw(st.integers(0, 6)))] if taken_back else []
    records = [*about_devices, *decisions, *back]
    shuffled = data.draw(st.permutations(records))
    in_order, out_of_order = Roster(records, BOTH), Roster(shuffled, BOTH)
    assert (in_order.participants, in_order.decisions) == (out_of_order.participants, out_of_order.decisions)
    heeded = {FOUNDER.public, SECOND.public, LAPTOP.public}
    admitting = {
        record.body.participant for record in decisions if record.author in heeded and record.body.action == "admit"
    }
    assert in_order.participants - BOTH.founders <= admitting, "only a founder's word makes anybody count"
