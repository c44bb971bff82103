"""When an attestor writes a mail and when it attests: every way to get round it is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from autoresearch_attestor.rules import (
    ATTESTATION_MS,
    TRIES,
    Caps,
    Mailed,
    answer_reason,
    attestation,
    cap_reason,
    request_reason,
    sender_reason,
)
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.record.record import DAY_MS
from autoresearch.trust.attestation import CodeAnswer, Parties, attestor_statement, holds
from autoresearch.trust.attestor import attestors_in_order
from autoresearch.trust.identity import Device, DeviceState
from autoresearch.words import ATTEST_SENTENCES, AttestReason
from tests.record.making import NETWORK, NOW_MS, key
from tests.trust.attesting.making import (
    ACTIVE,
    ATTESTOR,
    DEVICE,
    PARTIES,
    PENDING,
    ROOT,
    TOKEN1,
    TOKEN2,
    answer,
    request,
)


def test_an_honest_request_is_heard() -> None:
    assert request_reason(request(), PARTIES, ACTIVE, now_ms=NOW_MS) is None


@pytest.mark.parametrize(
    "parties",
    [
        replace(PARTIES, network=b"o" * 16),
        replace(PARTIES, peer="peer-2"),
        replace(PARTIES, attestor_peer="peer-2"),
        replace(PARTIES, root=key(7).public),
    ],
)
def test_a_request_made_for_another_network_peer_or_participant_is_refused(parties: Parties) -> None:
    assert request_reason(request(parties=parties), PARTIES, ACTIVE, now_ms=NOW_MS) is AttestReason.FORGED


def test_a_request_that_the_device_did_not_sign_or_not_now_is_refused() -> None:
    assert request_reason(request(signer=ROOT), PARTIES, ACTIVE, now_ms=NOW_MS) is AttestReason.FORGED
    old = request(time_ms=NOW_MS - 11 * 60_000)
    assert request_reason(old, PARTIES, ACTIVE, now_ms=NOW_MS) is AttestReason.FORGED


def test_a_request_for_another_attestor_or_for_the_attestor_itself_is_refused() -> None:
    other = replace(PARTIES, attestor=key(8).public)
    assert request_reason(request(parties=other), PARTIES, ACTIVE, now_ms=NOW_MS) is AttestReason.OTHER_NETWORK
    own = replace(PARTIES, root=ATTESTOR.public)
    assert request_reason(request(parties=own), own, ACTIVE, now_ms=NOW_MS) is AttestReason.ITSELF


@pytest.mark.parametrize(
    ("device", "why"),
    [
        (None, AttestReason.UNKNOWN_DEVICE),
        (Device(DEVICE.public, DeviceState.WAITING, 0, None), AttestReason.UNKNOWN_DEVICE),
        (Device(DEVICE.public, DeviceState.EXPIRED, 0, 1), AttestReason.EXPIRED_DEVICE),
        (Device(DEVICE.public, DeviceState.REVOKED, 0, 1), AttestReason.REVOKED_DEVICE),
    ],
)
def test_a_device_that_does_not_speak_for_the_root_key_is_refused(device: Device | None, why: AttestReason) -> None:
    assert request_reason(request(), PARTIES, device, now_ms=NOW_MS) is why


def test_the_right_answer_becomes_an_attestation_for_half_a_year() -> None:
    assert answer_reason(PENDING, answer(), "peer-1", now_ms=NOW_MS) is None
    body = attestation(PENDING, now_ms=NOW_MS)
    assert (body.subject, body.tag, body.domain) == (ROOT.public, PENDING.tag, "big")
    assert (body.issued, body.expires, body.method) == (NOW_MS, NOW_MS + ATTESTATION_MS, "code")


@given(st.binary(min_size=10, max_size=10).filter(lambda guess: guess != TOKEN1))
def test_a_guessed_code_is_refused(guess: bytes) -> None:
    assert answer_reason(PENDING, answer(token1=guess), "peer-1", now_ms=NOW_MS) is AttestReason.WRONG_CODE


def test_a_stolen_code_is_worth_nothing_with_another_key_or_from_another_peer() -> None:
    thief = key(66)
    assert answer_reason(PENDING, answer(thief), "peer-1", now_ms=NOW_MS) is AttestReason.WRONG_CODE
    own = answer(thief, root=thief.public)
    assert answer_reason(PENDING, own, "peer-1", now_ms=NOW_MS) is AttestReason.WRONG_CODE
    assert answer_reason(PENDING, answer(), "peer-2", now_ms=NOW_MS) is AttestReason.OTHER_PEER


@pytest.mark.parametrize(
    "change",
    [
        {"network": b"o" * 16},
        {"attestor": key(9).public},
        {"attestor_peer": "peer-5"},
        {"peer": "peer-5"},
        {"device": key(9).public},
        {"root": key(9).public},
    ],
)
def test_the_answer_is_bound_to_network_attestor_peer_device_and_key(change: dict[str, object]) -> None:
    assert answer_reason(PENDING, answer(**change), "peer-1", now_ms=NOW_MS) is AttestReason.WRONG_CODE  # type: ignore[arg-type]


def test_a_code_that_comes_too_late_or_was_used_is_refused() -> None:
    assert answer_reason(PENDING, answer(), "peer-1", now_ms=NOW_MS + 1) is AttestReason.TOO_LATE
    assert answer_reason(None, answer(), "peer-1", now_ms=NOW_MS) is AttestReason.NO_REQUEST
    other = CodeAnswer(token=b"x" * 16, signature=answer().signature)
    assert answer_reason(PENDING, other, "peer-1", now_ms=NOW_MS) is AttestReason.NO_REQUEST


def test_after_so_many_wrong_codes_the_right_one_is_refused_too() -> None:
    assert PENDING.tries_left == TRIES == 5
    last, over = replace(PENDING, tries_left=1), replace(PENDING, tries_left=0)
    assert answer_reason(last, answer(key(66)), "peer-1", now_ms=NOW_MS) is AttestReason.WRONG_CODE
    assert answer_reason(over, answer(), "peer-1", now_ms=NOW_MS) is AttestReason.TOO_MANY_TRIES


def test_a_signature_for_one_purpose_is_none_for_another() -> None:
    code_request = request()
    assert not holds(DEVICE.public, attestor_statement(NETWORK.id, TOKEN2, "peer-9", "peer-1"), code_request.signature)
    assert not holds(DEVICE.public, PENDING.statement, code_request.signature)


@pytest.mark.parametrize(
    ("mailed", "why"),
    [
        (Mailed(), None),
        (Mailed(address=3), AttestReason.ADDRESS_CAP),
        (Mailed(domain=20), AttestReason.DOMAIN_CAP),
        (Mailed(peer=10), AttestReason.PEER_CAP),
        (Mailed(day=50), AttestReason.DAY_CAP),
    ],
)
def test_mails_are_few_for_each_mailbox_domain_peer_and_day(mailed: Mailed, why: AttestReason | None) -> None:
    assert cap_reason(Caps(), mailed, is_big=False) is why


def test_a_provider_that_serves_everybody_has_no_cap_of_its_own() -> None:
    assert cap_reason(Caps(), Mailed(domain=10_000), is_big=True) is None
    assert sender_reason(Caps(), Mailed(address=99, domain=99)) is None


@given(st.sets(st.binary(min_size=32, max_size=32), min_size=1, max_size=8), st.binary(min_size=32, max_size=32))
def test_whom_to_ask_depends_on_who_asks_and_the_month_alone(attestors: set[bytes], root: bytes) -> None:
    order = attestors_in_order(root, attestors, now_ms=NOW_MS)
    assert set(order) == attestors
    assert order == attestors_in_order(root, reversed(order), now_ms=NOW_MS + DAY_MS)
    assert attestors_in_order(root, order[1:], now_ms=NOW_MS) == order[1:]


def test_whom_to_ask_changes_from_month_to_month() -> None:
    attestors = [key(number).public for number in range(5)]
    firsts = {attestors_in_order(ROOT.public, attestors, now_ms=NOW_MS + 31 * DAY_MS * month)[0] for month in range(24)}
    assert len(firsts) > 2


def test_every_reason_has_its_sentence() -> None:
    assert ATTEST_SENTENCES.keys() == set(AttestReason)
