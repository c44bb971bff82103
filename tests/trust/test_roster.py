"""Whose word counts: delegation, attestation, expiry, revocation, and one voter for one mailbox."""

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.record.kinds import Attestation, Identity, Withdrawal
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import DEVICES_MAX, Roster, Trust, Voter
from tests.record.making import NOW_MS, key, sealed

DAY = 86_400_000
ROOT, DEVICE, OTHER, OTHER_DEVICE = key(1), key(2), key(3), key(4)
ATTESTORS = [key(101), key(102), key(103)]
TRUST = Trust(attestors=frozenset(attestor.public for attestor in ATTESTORS), needed=2)
TAG = hashlib.sha256(b"you@example.org").digest()


def delegates(root: KeyPair, device: KeyPair, *, time_ms: int = NOW_MS, expires: int | None = None) -> list[Record]:
    """Both sides of a delegation."""
    says = Identity(action="delegate", root=root.public, device=device.public, expires=expires)
    agrees = Identity(action="profile", root=root.public)
    return [
        sealed(root, says, kind="identity", time_ms=time_ms),
        sealed(device, agrees, kind="identity", time_ms=time_ms),
    ]


def revokes(root: KeyPair, device: KeyPair, time_ms: int) -> Record:
    body = Identity(action="revoke", root=root.public, device=device.public)
    return sealed(root, body, kind="identity", seq=2, time_ms=time_ms)


def attests(
    attestor: KeyPair,
    subject: KeyPair,
    tag: bytes = TAG,
    *,
    start: int = NOW_MS,
    days: int = 180,
    domain: str = "big",
) -> Record:
    body = Attestation(
        subject=subject.public, tag=tag, method="code", domain=domain, issued=start, expires=start + days * DAY
    )
    seq = int.from_bytes(subject.public[:3], "big") + 2
    return sealed(attestor, body, kind="attestation", seq=seq, time_ms=start)


def test_a_device_speaks_for_its_root_from_the_delegation_until_it_ends() -> None:
    roster = Roster(delegates(ROOT, DEVICE, expires=NOW_MS + DAY), Trust())
    speaks = Voter(ROOT.public, ROOT.public, attested=False)
    assert roster.voter(DEVICE.public, NOW_MS) == speaks
    assert roster.voter(DEVICE.public, NOW_MS + DAY - 1) == speaks
    alone = Voter(DEVICE.public, DEVICE.public, attested=False)
    assert roster.voter(DEVICE.public, NOW_MS - 1) == alone
    assert roster.voter(DEVICE.public, NOW_MS + DAY) == alone


def test_what_a_revoked_device_signs_later_is_not_its_roots_word() -> None:
    roster = Roster([*delegates(ROOT, DEVICE), revokes(ROOT, DEVICE, NOW_MS + 10)], Trust())
    assert roster.voter(DEVICE.public, NOW_MS + 9).root == ROOT.public
    assert roster.voter(DEVICE.public, NOW_MS + 10).root == DEVICE.public
    assert roster.devices(ROOT.public, NOW_MS) == {DEVICE.public}
    assert roster.devices(ROOT.public, NOW_MS + 10) == frozenset()


@given(st.randoms(use_true_random=False))
@settings(max_examples=10)
def test_so_many_devices_speak_for_a_root_key_at_a_time_and_no_more(order: random.Random) -> None:
    devices = [key(1000 + number) for number in range(DEVICES_MAX + 4)]
    records = [
        record
        for number, device in enumerate(devices)
        for record in delegates(ROOT, device, time_ms=NOW_MS + number, expires=NOW_MS + 10 * DAY + number)
    ]
    records += delegates(ROOT, devices[0], time_ms=NOW_MS + 100)  # again: it is one of them
    records.append(revokes(ROOT, devices[1], NOW_MS + DEVICES_MAX + 1))  # makes room for those after it
    order.shuffle(records)
    roster = Roster(records, Trust())
    late = NOW_MS + DAY
    expected = {
        device.public
        for at, device in enumerate(devices)
        if at not in (1, DEVICES_MAX, DEVICES_MAX + 2, DEVICES_MAX + 3)
    }
    assert roster.devices(ROOT.public, late) == expected
    assert len(expected) == DEVICES_MAX


def test_nobody_revokes_or_claims_anothers_device() -> None:
    stolen = Identity(action="delegate", root=OTHER.public, device=DEVICE.public)
    claim = sealed(OTHER, stolen, kind="identity", time_ms=NOW_MS - DAY)
    forged = Identity(action="revoke", root=ROOT.public, device=DEVICE.public)
    roster = Roster([*delegates(ROOT, DEVICE), claim, sealed(OTHER, forged, kind="identity", seq=2)], Trust())
    assert roster.voter(DEVICE.public, NOW_MS + 1).root == ROOT.public
    assert roster.voter(DEVICE.public, NOW_MS - 1).root == DEVICE.public


def test_it_takes_as_many_attestors_as_the_network_says() -> None:
    records = [*delegates(ROOT, DEVICE), attests(ATTESTORS[0], ROOT)]
    assert not Roster(records, TRUST).voter(DEVICE.public, NOW_MS).attested
    assert Roster([*records, attests(ATTESTORS[1], ROOT)], TRUST).voter(DEVICE.public, NOW_MS) == Voter(
        ROOT.public, TAG, True
    )
    twice = attests(ATTESTORS[0], ROOT, start=NOW_MS - 1)
    assert not Roster([*records, twice], TRUST).voter(DEVICE.public, NOW_MS).attested
    disagreeing = attests(ATTESTORS[1], ROOT, hashlib.sha256(b"else").digest())
    assert not Roster([*records, disagreeing], TRUST).voter(DEVICE.public, NOW_MS).attested
    untrusted = attests(key(200), ROOT)
    assert not Roster([*records, untrusted], TRUST).voter(DEVICE.public, NOW_MS).attested


def test_nobody_attests_himself() -> None:
    own = [attests(ATTESTORS[0], ATTESTORS[0]), attests(ATTESTORS[1], ATTESTORS[0])]
    assert not Roster(own, TRUST).voter(ATTESTORS[0].public, NOW_MS).attested


def test_an_attestation_counts_while_it_lasts_and_until_it_is_taken_back() -> None:
    words = [attests(ATTESTORS[0], ROOT), attests(ATTESTORS[1], ROOT, days=10)]
    back = sealed(ATTESTORS[0], Withdrawal(), kind="withdrawal", seq=9, time_ms=NOW_MS + 5 * DAY, links=[words[0].id])
    roster = Roster(words, TRUST)
    assert roster.voter(ROOT.public, NOW_MS + 10 * DAY - 1).attested
    assert not roster.voter(ROOT.public, NOW_MS + 10 * DAY).attested
    assert not roster.voter(ROOT.public, NOW_MS - 1).attested
    taken = Roster([*words, back], TRUST)
    assert taken.voter(ROOT.public, NOW_MS + 5 * DAY - 1).attested
    assert not taken.voter(ROOT.public, NOW_MS + 5 * DAY).attested
    stranger = sealed(OTHER, Withdrawal(), kind="withdrawal", time_ms=NOW_MS, links=[words[0].id])
    assert Roster([*words, stranger], TRUST).voter(ROOT.public, NOW_MS + 6 * DAY).attested


def test_an_attestor_signs_with_its_device_and_takes_back_with_another() -> None:
    machine, second = key(150), key(151)
    words = [*delegates(ATTESTORS[0], machine), attests(machine, ROOT), attests(ATTESTORS[1], ROOT)]
    assert Roster(words, TRUST).voter(ROOT.public, NOW_MS).attested
    back = sealed(second, Withdrawal(), kind="withdrawal", seq=9, time_ms=NOW_MS + DAY, links=[words[2].id])
    assert Roster([*words, back], TRUST).voter(ROOT.public, NOW_MS + DAY).attested
    with_second = [*words, back, *delegates(ATTESTORS[0], second)]
    assert not Roster(with_second, TRUST).voter(ROOT.public, NOW_MS + DAY).attested


def test_a_private_group_names_its_participants() -> None:
    roster = Roster(delegates(ROOT, DEVICE), Trust(participants=frozenset({ROOT.public})))
    assert roster.voter(DEVICE.public, NOW_MS) == Voter(ROOT.public, ROOT.public, attested=True)
    assert not roster.voter(OTHER.public, NOW_MS).attested
    assert roster.voters(NOW_MS) == {ROOT.public}


def test_a_thousand_keys_with_one_mailbox_are_one_voice() -> None:
    keys = [key(1000 + number) for number in range(1000)]
    roster = Roster([attests(attestor, person) for person in keys for attestor in ATTESTORS[:2]], TRUST)
    assert {roster.voter(person.public, NOW_MS).voter for person in keys} == {TAG}
    assert roster.voters(NOW_MS) == {TAG}


def test_who_is_named_by_hand_and_shows_a_mailbox_with_a_second_key_is_one_voice() -> None:
    words = [attests(attestor, person) for person in (ROOT, OTHER) for attestor in ATTESTORS[:2]]
    trust = Trust(TRUST.attestors, 2, frozenset({ROOT.public}))
    roster = Roster(words, trust)
    assert roster.voters(NOW_MS) == {TAG}
    assert roster.voter(ROOT.public, NOW_MS) == Voter(ROOT.public, TAG, attested=True)
    assert roster.voter(ROOT.public, NOW_MS - 1) == Voter(ROOT.public, ROOT.public, attested=True)
    assert roster.voters(NOW_MS + 180 * DAY) == {ROOT.public}


def at_one_domain(count: int, domain: str = "d" * 64, days: int = 180) -> list[Record]:
    """So many persons with mailboxes of one domain, each attested a minute after the one before."""
    return [
        attests(
            attestor, key(300 + number), bytes([number]) * 32, start=NOW_MS + number * 60_000, domain=domain, days=days
        )
        for number in range(count)
        for attestor in ATTESTORS[:2]
    ]


def test_a_domain_has_so_many_voices_and_no_more() -> None:
    later = NOW_MS + DAY
    assert len(Roster(at_one_domain(9), TRUST, domain_voices=3).voters(later)) == 3
    roster = Roster(at_one_domain(9), TRUST, domain_voices=3)
    assert [roster.voter(key(300 + number).public, later).attested for number in range(5)] == [True] * 3 + [False] * 2
    assert len(Roster(at_one_domain(9, domain="big"), TRUST, domain_voices=3).voters(later)) == 9
    assert len(Roster(at_one_domain(9), TRUST).voters(later)) == 9


def test_a_voice_that_ends_makes_room_for_the_next_of_its_domain() -> None:
    records = [*at_one_domain(1, days=2), *at_one_domain(4)[2:]]
    roster = Roster(records, TRUST, domain_voices=3)
    fourth = key(303).public
    assert not roster.voter(fourth, NOW_MS + DAY).attested
    assert roster.voter(fourth, NOW_MS + 3 * DAY).attested


def test_the_attestors_must_agree_on_the_domain() -> None:
    words = [attests(ATTESTORS[0], ROOT), attests(ATTESTORS[1], ROOT, domain="d" * 64)]
    assert not Roster(words, TRUST).voter(ROOT.public, NOW_MS).attested


@pytest.mark.slow
def test_who_gave_his_word_and_until_when() -> None:
    words = [attests(ATTESTORS[0], ROOT, days=10), attests(ATTESTORS[0], ROOT, start=NOW_MS + 1, days=20)]
    roster = Roster(words, TRUST)
    held = [(word.attestor, word.end_ms - NOW_MS) for word in roster.words(ROOT.public, NOW_MS + 11 * DAY)]
    assert held == [(ATTESTORS[0].public, 1 + 20 * DAY)]
    assert len(roster.words(ROOT.public, NOW_MS + 1)) == 2
    assert roster.words(ROOT.public, NOW_MS + 30 * DAY) == []
    assert Roster(at_one_domain(2), TRUST).mailboxes("d" * 64, NOW_MS + DAY) == {b"\0" * 32, b"\x01" * 32}


@given(st.permutations(range(12)))
@settings(max_examples=30, deadline=None)
def test_who_is_among_the_first_of_a_domain_does_not_depend_on_the_order_of_arrival(order: list[int]) -> None:
    records = at_one_domain(6)
    straight = Roster(records, TRUST, domain_voices=2)
    mixed = Roster([records[number] for number in order], TRUST, domain_voices=2)
    for time_ms in range(NOW_MS, NOW_MS + 6 * 60_000, 30_000):
        assert mixed.voters(time_ms) == straight.voters(time_ms)
        assert mixed.voters(time_ms) == straight.voters(time_ms)
        assert mixed.count(time_ms) == len(mixed.voters(time_ms)) <= 2


@pytest.mark.parametrize("trust", [TRUST, Trust(), Trust(participants=frozenset({ROOT.public}))])
@given(st.permutations(range(7)))
@settings(max_examples=30, deadline=None)
def test_the_order_of_arrival_means_nothing(trust: Trust, order: list[int]) -> None:
    records = [
        *delegates(ROOT, DEVICE),
        *delegates(OTHER, OTHER_DEVICE),
        revokes(ROOT, DEVICE, NOW_MS + 3 * DAY),
        attests(ATTESTORS[0], ROOT),
        attests(ATTESTORS[1], ROOT, days=2),
    ]
    straight, mixed = Roster(records, trust), Roster([records[number] for number in order], trust)
    for time_ms in range(NOW_MS - DAY, NOW_MS + 5 * DAY, DAY):
        assert mixed.voters(time_ms) == straight.voters(time_ms)
        assert mixed.count(time_ms) == len(mixed.voters(time_ms))
        for device in (DEVICE, OTHER_DEVICE, ROOT):
            assert mixed.voter(device.public, time_ms) == straight.voter(device.public, time_ms)
