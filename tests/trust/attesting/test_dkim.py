"""A second proof: a mail that its holder sent, whose Subject only somebody with the codes can know."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import pytest

from autoresearch.ask.people.attestation import confirmation_subject
from autoresearch.errors import Refused
from tests.trust.attesting.postoffice import PostOffice
from tests.trust.attesting.town import TEA, House, Town, town
from tests.trust.dkim_mail import Signing, mail, rsa_key, rsa_record

ADDRESS = "Ada+notes@example.org"


@pytest.fixture
def place(tmp_path: Path, office: PostOffice) -> Iterator[Town]:
    office.mails.clear()
    with town(tmp_path, office, attestors=2) as made:
        made.dns.records["mail", "example.org"] = rsa_record(rsa_key())
        yield made


def subject_for(ada: House, codes: str) -> str:
    return confirmation_subject(codes, ada.awaited(), ada.root.public, ada.notebook.author, TEA.id)


def sent(place: Town, subject: str, sender: str = "Ada <ada@example.org>", **signing: str) -> bytes:
    """A mail as it arrives, signed by its sender's domain now."""
    date = format_datetime(datetime.fromtimestamp(place.clock.ms // 1000, UTC))
    made = Signing(tags={"t": str(place.clock.ms // 1000)}, **signing)  # type: ignore[arg-type]
    return made.sign(mail(subject, sender, date))


async def test_one_mail_is_a_second_proof_for_both_attestors(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    codes = "\n".join(place.office.text_to(ADDRESS))
    done = await ada.confirm(codes, mail=sent(place, subject_for(ada, codes)))
    assert done.attested
    assert [one.method for one in done.attestations] == ["code+dkim"] * 2
    assert set(place.dns.asked) == {("mail", "example.org")}


async def test_a_mail_from_another_address_proves_nothing(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    code = place.office.text_to(ADDRESS)[0]
    for sender in ("Eve <eve@example.org>", "Ada <ada@sub.example.org>"):
        with pytest.raises(Refused, match="does not prove"):
            await ada.confirm(code, mail=sent(place, subject_for(ada, code), sender))
    assert not (await ada.confirm(code)).attested  # the code itself is still good
    assert [one.method for one in ada.attestation_service.standing().attestations] == ["code"]


async def test_a_mail_with_another_subject_proves_nothing(place: Town) -> None:
    """One that somebody got the holder to send without the codes, or for the other attestor alone."""
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    first, second = place.office.text_to(ADDRESS)
    for subject in ("Re: hello", subject_for(ada, second)):
        with pytest.raises(Refused, match="does not prove"):
            await ada.confirm(first, mail=sent(place, subject))


async def test_a_mail_whose_key_is_gone_or_that_was_changed_proves_nothing(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    code = place.office.text_to(ADDRESS)[0]
    good = sent(place, subject_for(ada, code))
    with pytest.raises(Refused, match="does not prove"):
        await ada.confirm(code, mail=good.replace(b"Ada <ada@", b"Eve <ada@"))
    place.dns.records.clear()
    with pytest.raises(Refused, match="does not prove"):
        await ada.confirm(code, mail=good)


async def test_mails_that_prove_nothing_use_up_the_tries(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    code = place.office.text_to(ADDRESS)[0]
    for _ in range(5):
        with pytest.raises(Refused, match="does not prove"):
            await ada.confirm(code, mail=sent(place, "Re: hello"))
    with pytest.raises(Refused, match="too many"):
        await ada.confirm(code)
