"""The last word holds: by a device's own order and by what a record replaces, never by what its clock said."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from autoresearch.record.kinds import Admission, Identity
from autoresearch.record.record import Record
from autoresearch.trust.identity import DeviceState, devices_of
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Roster, Trust, last_word
from tests.record.making import NOW_MS, key, sealed
from tests.trust.test_roster import delegates, revokes

ANN, LAPTOP, DESKTOP, FOUNDER, THIEF = map(key, range(1, 6))
YEAR_MS = 365 * 86_400_000


def calls_itself(
    device: KeyPair, name: str, *, seq: int, at: int = 0, replaces: Sequence[Record] = (), root: KeyPair = ANN
) -> Record:
    body = Identity(action="profile", root=root.public, name=name)
    links = [record.id for record in replaces]
    return sealed(device, body, kind="identity", seq=seq, time_ms=NOW_MS + at, links=links)


def name(*records: Record) -> str:
    both = [*delegates(ANN, LAPTOP), *delegates(ANN, DESKTOP, time_ms=NOW_MS + 1)]
    return Roster([*both, *records], Trust()).name(ANN.public)


def test_a_name_given_by_a_clock_two_years_ahead_is_replaced_by_the_next_one() -> None:
    ahead = calls_itself(LAPTOP, "from 2028", seq=5, at=2 * YEAR_MS)
    assert name(ahead, calls_itself(LAPTOP, "today", seq=6)) == "today"
    assert name(ahead, calls_itself(ANN, "today", seq=2, replaces=[ahead])) == "today", "by another device"
    assert name(ahead, calls_itself(ANN, "today", seq=2)) == "from 2028", "which did not know of it"


def test_a_founder_undoes_what_a_stolen_device_said_with_a_clock_ahead() -> None:
    trust = Trust(founders=frozenset({FOUNDER.public}))
    body = Admission(action="admit", participant=THIEF.public)
    ahead = sealed(LAPTOP, body, kind="admission", seq=2, time_ms=NOW_MS + 2 * YEAR_MS)
    undone = Admission(action="remove", participant=THIEF.public)
    records = [*delegates(FOUNDER, LAPTOP), ahead]
    assert THIEF.public in Roster(records, trust).participants
    last = sealed(FOUNDER, undone, kind="admission", seq=2, time_ms=NOW_MS + 1, links=[ahead.id])
    assert THIEF.public not in Roster([*records, last], trust).participants


def test_a_device_that_was_named_by_a_clock_ahead_can_be_revoked_today() -> None:
    named = delegates(ANN, LAPTOP, time_ms=NOW_MS + 2 * YEAR_MS)
    records = [*named, revokes(ANN, LAPTOP, NOW_MS)]
    roster, later = Roster(records, Trust()), NOW_MS + 3 * YEAR_MS
    assert roster.voter(LAPTOP.public, later).root == LAPTOP.public
    assert [device.state for device in devices_of(records, ANN.public, later)] == [DeviceState.REVOKED]


def test_a_device_named_again_after_its_revocation_speaks_again_whatever_the_clock_says() -> None:
    says = Identity(action="delegate", root=ANN.public, device=LAPTOP.public)
    again = sealed(ANN, says, kind="identity", seq=3, time_ms=NOW_MS + 1)
    records = [*delegates(ANN, LAPTOP), revokes(ANN, LAPTOP, NOW_MS + YEAR_MS), again]
    assert Roster(records, Trust()).voter(LAPTOP.public, NOW_MS + 2 * YEAR_MS).root == ANN.public
    assert devices_of(records, ANN.public, NOW_MS)[0].state is DeviceState.ACTIVE


@st.composite
def words(draw: st.DrawFn) -> list[Record]:
    """Records of three devices with clocks of their own, each linking some of those before it."""
    made: list[Record] = []
    for at in range(draw(st.integers(1, 8))):
        device = draw(st.sampled_from([ANN, LAPTOP, DESKTOP]))
        seq = 2 + sum(record.author == device.public for record in made)
        replaced = draw(st.lists(st.sampled_from(made), max_size=3)) if made else []
        clock = draw(st.integers(-YEAR_MS, YEAR_MS))
        made.append(calls_itself(device, f"name {at}", seq=seq, at=clock, replaces=replaced))
    return made


@given(words(), st.randoms())
def test_the_last_word_is_one_that_nothing_replaces_in_any_order_of_arrival(made: list[Record], random) -> None:
    holds = last_word(made)
    assert not any(holds.id in record.links for record in made)
    assert not any(record.author == holds.author and record.seq > holds.seq for record in made)
    shuffled = list(made)
    random.shuffle(shuffled)
    assert last_word(shuffled) == holds
    final = calls_itself(LAPTOP, "final", seq=99, at=-2 * YEAR_MS, replaces=made)
    assert last_word([*shuffled, final]) == final, "who has seen them all has the last word"
