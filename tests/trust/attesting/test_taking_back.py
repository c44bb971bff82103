"""An attestor takes back what it said of a participant, and what follows for the mailbox."""

from __future__ import annotations

import pytest

from autoresearch.ask.people.participants import AllowRequest, WithdrawRequest
from autoresearch.errors import NotFound, Refused
from autoresearch.record.record import DAY_MS
from tests.trust.attesting.town import ADDRESS, Town, become_attested, texts


@pytest.mark.slow
async def test_an_attestor_takes_back_what_it_said(place: Town) -> None:
    ada = place.houses["ada"]
    await become_attested(place, ada)
    key = ada.root.public.hex()
    attestors = [
        house for name, house in place.houses.items() if name != "ada" and house.attestation_service.log().attested
    ]
    attestors[0].attestation_service.withdraw(WithdrawRequest(participant=key, reason="account sold"))
    place.share()
    assert not ada.is_attested()
    assert ada.attestation_service.standing().reason == "1 of 2 attestors have seen a mailbox"
    with pytest.raises(NotFound, match="said nothing of that participant"):
        attestors[0].attestation_service.withdraw(WithdrawRequest(participant="0" * 64))
    with pytest.raises(Refused, match="no attestor"):
        ada.attestation_service.withdraw(WithdrawRequest(participant=key))


@pytest.mark.slow
async def test_a_mailbox_of_which_a_word_was_taken_back_is_refused_until_the_operator_allows_it(place: Town) -> None:
    ada = place.houses["ada"]
    await become_attested(place, ada)
    key = ada.root.public.hex()
    attestors = [
        house for name, house in place.houses.items() if name != "ada" and house.attestation_service.log().attested
    ]
    for house in attestors:
        house.attestation_service.withdraw(WithdrawRequest(participant=key))
        house.close()
        house.open()
        assert house.attestation_service.log().acts[0].what == "withdrawn"
    place.share()
    again = await ada.ask(ADDRESS)
    assert [refusal.why for refusal in again.refused] == ["withdrawn"] * 2
    assert len(again.awaited) == 1
    other = place.add("another key")
    assert "withdrawn" in {refusal.why for refusal in (await other.ask("Ada.Lovelace+more@example.org")).refused}
    assert not (await other.ask("somebody.else@example.org")).refused, "it is the mailbox that is refused"

    attestors[0].attestation_service.allow(AllowRequest(participant=key))
    assert attestors[0].attestation_service.log().acts[0].what == "allowed"
    with pytest.raises(NotFound, match="allowed it again already"):
        attestors[0].attestation_service.allow(AllowRequest(participant=key))
    with pytest.raises(Refused, match="no attestor"):
        ada.attestation_service.allow(AllowRequest(participant=key))
    place.clock.ms += DAY_MS
    await become_attested(place, ada)
    assert ada.is_attested()


@pytest.mark.slow
async def test_a_code_that_is_on_its_way_is_refused_when_the_word_is_taken_back(place: Town) -> None:
    ada, other = place.houses["ada"], place.add("another key")
    await become_attested(place, ada)
    await other.ask(ADDRESS)
    for name, house in place.houses.items():
        if name.startswith("attestor") and house.attestation_service.log().attested:
            house.attestation_service.withdraw(WithdrawRequest(participant=ada.root.public.hex()))
    refused = 0
    for text in texts(place)[-2:]:
        try:
            await other.confirm(text)
        except Refused as error:
            assert "withdrew its attestation" in str(error)  # noqa: PT017 - not all of the attestors had said something
            refused += 1
    assert refused
    assert not other.is_attested()
