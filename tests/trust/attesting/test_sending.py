"""What becomes of an attestor's mails: how many there are, what servers say, and settings that cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.errors import AutoresearchError, Refused
from autoresearch.record.record import DAY_MS
from autoresearch.settings import MAIL_PASSWORD_VARIABLE
from tests.trust.attesting.postoffice import PASSWORD, PostOffice, post_office
from tests.trust.attesting.town import ADDRESS, MINUTE_MS, Town, texts, town


@pytest.mark.slow
async def test_nobody_gets_many_mails_whoever_asks(place: Town) -> None:
    for number in range(4):
        house = place.add(f"bomber-{number}")
        await house.ask("victim@example.org")
        await house.ask("Victim+x@example.org")
    assert len(texts(place, "victim@example.org")) + len(texts(place, "Victim+x@example.org")) <= 3 * 3
    last = await house.ask("victim@example.org")
    assert {refusal.reason for refusal in last.refused} == {"it has sent that address its maximum of mails today"}
    place.clock.ms += DAY_MS + MINUTE_MS
    assert len((await house.ask("victim@example.org")).awaited) == 2


@pytest.mark.slow
async def test_a_node_asks_for_so_many_mails_a_day(tmp_path: Path, office: PostOffice) -> None:
    with town(tmp_path, office, attestors=2, mails_per_peer="2") as place:
        ada = place.houses["ada"]
        for number in range(3):
            answer = await ada.ask(f"mailbox{number}@gmail.com")
        assert {refusal.why for refusal in answer.refused} == {"peer_cap"}


@pytest.mark.slow
async def test_an_address_that_the_server_refuses_is_said_to_be_so_and_counts(place: Town) -> None:
    place.office.refused["gone@example.org"] = "550 5.1.1"
    ada = place.houses["ada"]
    answer = await ada.ask("gone@example.org")
    assert {refusal.reason for refusal in answer.refused} == {"its mail server refuses mail for that address"}
    assert answer.awaited == []
    log = place.houses["attestor-0"].attestation_service.log()
    assert log.mailed == 1
    assert log.acts[0].why == "no_such_mailbox"


@pytest.mark.slow
async def test_a_server_that_says_later_is_asked_again_later(place: Town) -> None:
    place.office.refused["slow@example.org"] = "451 4.7.1"
    ada = place.houses["ada"]
    answer = await ada.ask("slow@example.org")
    assert {refusal.why for refusal in answer.refused} == {"not_sent"}
    assert place.houses["attestor-0"].attestation_service.log().mailed == 0


async def test_a_server_that_takes_a_mail_and_hangs_up_floods_no_mailbox(tmp_path: Path) -> None:
    with post_office(tmp_path) as office, town(tmp_path, office, attestors=2, mails_per_address="1") as place:
        office.hangs_up = True
        ada = place.houses["ada"]
        first, second = await ada.ask(ADDRESS), await ada.ask(ADDRESS)
        assert {refusal.why for refusal in first.refused} == {"not_sent"}
        assert {refusal.why for refusal in second.refused} == {"address_cap"}
        assert len(office.mails) == 2
        assert "SMTPServerDisconnected" in place.houses["attestor-0"].attestation_service.conditions()[0].detail


@pytest.mark.slow
async def test_a_wrong_password_sends_nothing_and_is_not_told(tmp_path: Path, office: PostOffice) -> None:
    (tmp_path / "wrong").write_text("guess\n")
    (tmp_path / "wrong").chmod(0o600)
    with town(tmp_path, office, password_file=str(tmp_path / "wrong")) as place:
        answer = await place.houses["ada"].ask(ADDRESS)
        warning = place.houses["attestor-0"].attestation_service.conditions()[0].detail
    assert {refusal.why for refusal in answer.refused} == {"not_sent"}
    assert "the attestor's last mail was not sent: SMTPAuthenticationError 535" in warning


@pytest.mark.slow
async def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tmp_path: Path, office: PostOffice) -> None:
    with town(tmp_path, office, ca_file="") as place:
        answer = await place.houses["ada"].ask(ADDRESS)
    assert {refusal.why for refusal in answer.refused} == {"not_sent"}


@pytest.mark.slow
async def test_a_server_without_starttls_gets_neither_password_nor_mail(tmp_path: Path) -> None:
    with post_office(tmp_path, tls=False) as plain, town(tmp_path, plain) as place:
        answer = await place.houses["ada"].ask(ADDRESS)
        assert {refusal.why for refusal in answer.refused} == {"not_sent"}
        assert plain.mails == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"from_address": "nobody"}, "from_address"),
        ({"password_file": ""}, "has no password"),
        ({"password_file": "/nowhere"}, "password_file: there is no /nowhere"),
        ({"security": "none", "host": "mail.example.org"}, "in the clear"),
        ({"security": "none", "host": "mail.example.org", "user": "", "password_file": ""}, "in the clear"),
        ({"ca_file": "/nowhere"}, "ca_file"),
        ({"disposable_file": "/nowhere"}, "disposable_file"),
    ],
)
def test_settings_that_can_not_work_are_a_sentence_at_the_start(
    tmp_path: Path, office: PostOffice, changes: dict[str, str], sentence: str
) -> None:
    with pytest.raises(AutoresearchError, match=sentence), town(tmp_path, office, **changes):
        pass


def test_a_password_that_others_can_read_is_refused(tmp_path: Path, office: PostOffice) -> None:
    office.settings(tmp_path / "open")
    (tmp_path / "open").chmod(0o644)
    with pytest.raises(Refused, match="Others can read"), town(tmp_path, office, password_file=str(tmp_path / "open")):
        pass


@pytest.mark.slow
async def test_the_password_may_come_from_the_environment(
    tmp_path: Path, office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MAIL_PASSWORD_VARIABLE, PASSWORD)
    with town(tmp_path, office, password_file="") as place:
        assert len((await place.houses["ada"].ask(ADDRESS)).awaited) == 2
        assert PASSWORD not in repr(place.houses["attestor-0"].attestation_service._attestor._server)
