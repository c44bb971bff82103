"""From an address to an attested participant, with real mails over STARTTLS and a login; and every way to cheat."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from autoresearch_daemon.attesting.mailer import PASSWORD_VARIABLE
from msgspec.structs import replace

from autoresearch.answers import AllowRequest, WithdrawRequest
from autoresearch.attesting import (
    TRIES,
    Attested,
    No,
    attestors_in_order,
    decode_reply,
    encode_message,
    find_codes,
    write_code,
)
from autoresearch.errors import AutoresearchError, NotFound, Refused, UsageError
from autoresearch.identity import KeyPair, domain_tag, mail_tag, mailbox
from autoresearch.records import DAY_MS, Network, Refusal, admit
from autoresearch.views import roster_of
from tests.attesting.postoffice import PASSWORD, PostOffice, post_office
from tests.attesting.town import TEA, House, Town, pairs, town

ADDRESS = "Ada.Lovelace+notes@example.org"
MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostOffice]:
    with post_office(tmp_path_factory.mktemp("office")) as made:
        yield made


@pytest.fixture
def place(tmp_path: Path, office: PostOffice) -> Iterator[Town]:
    office.mails.clear()
    office.senders.clear()
    office.refused.clear()
    with town(tmp_path, office) as made:
        yield made


def texts(place: Town, address: str = ADDRESS) -> list[str]:
    return place.office.text_to(address)


async def become_attested(place: Town, house: House, address: str = ADDRESS) -> None:
    await house.ask(address)
    for text in texts(place, address)[-2:]:
        await house.confirm(text)


async def test_two_codes_and_the_participant_is_attested_for_all_to_see(place: Town) -> None:
    ada = place.houses["ada"]
    asked = await ada.ask(ADDRESS)
    assert (asked.attested, len(asked.awaited), asked.refused, asked.reachable) == (False, 2, [], 3)
    assert asked.reason == "0 of 2 attestors have seen a mailbox"
    first, second = texts(place)
    halfway = await ada.confirm(first)
    assert (halfway.attested, halfway.reason, len(halfway.awaited)) == (
        False,
        "1 of 2 attestors have seen a mailbox",
        1,
    )
    done = await ada.confirm(second)
    assert done.attested
    assert "2 attestors saw control of a mailbox" in done.reason
    assert done.until_ms - place.clock.ms > 179 * DAY_MS

    place.share()
    stranger = place.add("stranger")
    voice = roster_of(stranger.notebook.log).voice(ada.notebook.author, place.clock())
    assert (voice.root, voice.voice, voice.attested) == (ada.root.public, mail_tag(mailbox(ADDRESS), TEA), True)
    bodies = [record.body for record in stranger.notebook.log.records(kind="attestation", limit=9)]
    assert {body.domain for body in bodies} == {domain_tag(mailbox(ADDRESS), TEA).hex()}  # type: ignore[union-attr]
    assert {body.method for body in bodies} == {"code"}  # type: ignore[union-attr]


async def test_the_address_and_the_codes_are_nowhere_on_any_disk(place: Town) -> None:
    ada = place.houses["ada"]
    place.office.refused["nobody@example.org"] = "550"
    await ada.ask("nobody@example.org")
    await ada.ask(ADDRESS)
    codes = [code for text in texts(place) for code in find_codes(text)]
    assert len(codes) == 2
    await ada.confirm(texts(place)[0])
    for house in place.houses.values():
        house.close()
        house.open()
    written = place.written().lower()
    for secret in ("lovelace", "example.org", "nobody@", PASSWORD, *codes, *(c.replace("-", "") for c in codes)):
        assert secret.lower().encode() not in written
    assert b"mailed" in written


async def test_it_is_the_mail_that_it_should_be(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    assert place.office.senders == ["attestor@example.net"] * 2
    mail = place.office.mails[0][1]
    assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["To"] == ADDRESS
    assert mail["Message-ID"].endswith("@example.net>")
    assert ada.root.public.hex() in texts(place)[0]
    await ada.confirm(mail.as_string())  # pasted whole


async def test_a_guessed_code_is_refused_and_after_some_tries_the_right_one_too(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    code = ada.awaited()[0]
    guess = write_code(b"\0" * 10, bytes.fromhex(code.token), bytes.fromhex(code.attestor))
    for _ in range(TRIES):
        with pytest.raises(Refused, match="not the code that it mailed"):
            await ada.confirm(guess)
    with pytest.raises(Refused, match="too many wrong codes"):
        await ada.confirm("\n".join(texts(place)))


async def test_a_code_used_with_another_key_is_refused(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    with pytest.raises(Refused, match="not the code that it mailed for this participant"):
        await ada.confirm(texts(place)[0], KeyPair.generate())
    assert not (await ada.confirm(texts(place)[0])).attested


async def test_a_code_that_somebody_else_reads_is_worth_nothing_to_him(place: Town) -> None:
    ada, thief = place.houses["ada"], place.add("thief")
    await ada.ask(ADDRESS)
    thief.local.save_codes(ada.awaited())  # he even knows the second token
    with pytest.raises(Refused, match="another node"):
        await thief.confirm(texts(place)[0])
    with pytest.raises(Refused, match="another node"):
        await thief.confirm(texts(place)[1], ada.root)


async def test_a_code_is_good_once(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    awaited = ada.awaited()
    await ada.confirm(texts(place)[0])
    ada.local.save_codes(awaited)
    with pytest.raises(Refused, match="answered already"):
        await ada.confirm(texts(place)[0])
    assert len(ada.notebook.log.records(kind="attestation", limit=9)) == 1


async def test_a_code_is_good_for_half_an_hour(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    awaited = ada.awaited()
    place.clock.ms += 30 * MINUTE_MS
    assert ada.awaited() == []
    # A node whose clock is behind brings it all the same.
    ada.local.save_codes([replace(code, until_ms=place.clock.ms + MINUTE_MS) for code in awaited])
    with pytest.raises(Refused, match="too late"):
        await ada.confirm(texts(place)[0])


async def test_an_attestor_that_answers_with_another_record_is_said_to(
    place: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    before = pairs(ada.notebook)
    lies = [(b"rubbish", bytes(64), "can't be used"), (*before[0], "something else")]
    for text, (raw, signature, words) in zip(texts(place), lies, strict=True):

        async def lie(*_: object, reply: Attested = Attested(raw=raw, signature=signature)) -> bytes:
            return encode_message(reply)

        monkeypatch.setattr(ada, "ask_attestor", lie)
        with pytest.raises(AutoresearchError, match=words):
            await ada.confirm(text)
    assert (pairs(ada.notebook), ada.awaited()) == (before, [])


async def test_an_attestor_that_names_a_year_to_come_is_not_waited_for_until_then(
    place: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = place.houses["ada"]
    monkeypatch.setattr("autoresearch_daemon.attesting.attestor.CODE_MS", 2**52)
    await ada.ask(ADDRESS)
    assert len(ada.awaited()) == 2
    place.clock.ms += 61 * MINUTE_MS
    assert ada.awaited() == []


async def test_a_device_that_was_revoked_meanwhile_is_refused(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    ada.notebook.revoke(ada.root, ada.notebook.author, place.clock())
    place.share()
    with pytest.raises(Refused, match="was revoked"):
        await ada.confirm(texts(place)[0])
    with pytest.raises(Refused, match="revoked"):
        await ada.ask(ADDRESS)


async def test_a_device_whose_delegation_expired_is_refused(place: Town) -> None:
    ada = place.houses["ada"]
    place.clock.ms += 91 * DAY_MS
    for house in place.houses.values():
        if house is not ada:
            house.notebook.publish_identity(place.clock())
    place.share()
    with pytest.raises(Refused, match="expired"):
        await ada.ask(ADDRESS)


async def test_an_attestor_that_has_not_heard_of_the_device_hears_of_it_first(place: Town) -> None:
    newcomer = place.add("newcomer", share=False)
    newcomer.take_in(pairs(place.houses["attestor-0"].notebook), "an invite's node")
    await become_attested(place, newcomer)
    assert newcomer.is_attested()


async def test_an_attestation_of_another_network_is_none(place: Town) -> None:
    ada = place.houses["ada"]
    await become_attested(place, ada)
    record = ada.notebook.log.records(kind="attestation", limit=1)[0]
    refused = admit(record.raw, record.signature, Network(name="other"), now_ms=place.clock.ms)
    assert isinstance(refused, Refusal)
    assert refused.code == "network"
    again = ada.notebook.log.ingest([(record.raw, record.signature)], now_ms=place.clock.ms)
    assert [verdict.state.value for verdict in again] == ["duplicate"]


async def test_nobody_gets_many_mails_whoever_asks(place: Town) -> None:
    for number in range(4):
        house = place.add(f"bomber-{number}")
        await house.ask("victim@example.org")
        await house.ask("Victim+x@example.org")
    assert len(texts(place, "victim@example.org")) + len(texts(place, "Victim+x@example.org")) <= 3 * 3
    last = await house.ask("victim@example.org")
    assert {refusal.reason for refusal in last.refused} == {"it has written to that address often enough today"}
    place.clock.ms += DAY_MS + MINUTE_MS
    assert len((await house.ask("victim@example.org")).awaited) == 2


async def test_a_node_asks_for_so_many_mails_a_day(tmp_path: Path, office: PostOffice) -> None:
    with town(tmp_path, office, attestors=2, mails_per_peer="2") as place:
        ada = place.houses["ada"]
        for number in range(3):
            answer = await ada.ask(f"mailbox{number}@gmail.com")
        assert {refusal.why for refusal in answer.refused} == {"peer_cap"}


async def test_an_address_that_the_server_refuses_is_said_to_be_so_and_counts(place: Town) -> None:
    place.office.refused["gone@example.org"] = "550 5.1.1"
    ada = place.houses["ada"]
    answer = await ada.ask("gone@example.org")
    assert {refusal.reason for refusal in answer.refused} == {"its mail server refuses mail for that address"}
    assert answer.awaited == []
    log = place.houses["attestor-0"].desk.log()
    assert log.mailed == 1
    assert log.acts[0].why == "no_such_mailbox"


async def test_a_server_that_says_later_is_asked_again_later(place: Town) -> None:
    place.office.refused["slow@example.org"] = "451 4.7.1"
    ada = place.houses["ada"]
    answer = await ada.ask("slow@example.org")
    assert {refusal.why for refusal in answer.refused} == {"not_sent"}
    assert place.houses["attestor-0"].desk.log().mailed == 0


async def test_a_server_that_takes_a_mail_and_hangs_up_floods_no_mailbox(tmp_path: Path) -> None:
    with post_office(tmp_path) as office, town(tmp_path, office, attestors=2, mails_per_address="1") as place:
        office.hangs_up = True
        ada = place.houses["ada"]
        first, second = await ada.ask(ADDRESS), await ada.ask(ADDRESS)
        assert {refusal.why for refusal in first.refused} == {"not_sent"}
        assert {refusal.why for refusal in second.refused} == {"address_cap"}
        assert len(office.mails) == 2
        assert "SMTPServerDisconnected" in place.houses["attestor-0"].desk.warnings()[0]


async def test_another_attestor_is_asked_in_place_of_one_that_says_no(place: Town) -> None:
    ada = place.houses["ada"]
    order = attestors_in_order(ada.root.public, place.manifest.trust.attestors, now_ms=place.clock.ms)
    first = next(house for house in place.houses.values() if house.root.public == order[0])
    first.close()
    first.open({"AUTORESEARCH_ATTESTOR_DISPOSABLE": "example.com, example.org"})
    answer = await ada.ask(ADDRESS)
    assert {code.attestor for code in answer.awaited} == {key.hex() for key in order[1:]}
    assert [(no.attestor, no.why) for no in answer.refused] == [(order[0].hex(), "throw_away")]


async def test_pending_codes_and_counts_survive_a_restart_of_everybody(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    for house in place.houses.values():
        house.close()
        house.open()
    for text in texts(place):
        await ada.confirm(text)
    assert ada.is_attested()
    logs = [place.houses[f"attestor-{number}"].desk.log() for number in range(3)]
    assert sum(log.attested for log in logs) == 2
    assert all(log.trusted for log in logs)
    assert {act.what for log in logs for act in log.acts} == {"mailed", "attested"}
    modes = {stat.S_IMODE(place.houses["attestor-0"].paths.attestor.stat().st_mode)}
    assert modes == {0o600}


async def test_who_is_attested_asks_for_no_mail_until_it_is_due(place: Town) -> None:
    ada = place.houses["ada"]
    await become_attested(place, ada)
    count = len(place.office.mails)
    assert "nobody has attested" in place.add("stranger").desk.warnings()[0]
    assert place.houses["attestor-0"].desk.warnings() == []
    assert (await ada.ask(ADDRESS)).attested
    assert len(place.office.mails) == count
    assert ada.desk.warnings() == []
    place.clock.ms += 155 * DAY_MS
    for house in place.houses.values():
        house.notebook.publish_identity(place.clock())
    place.share()
    assert "days more" in ada.desk.warnings()[0]
    await become_attested(place, ada)
    assert ada.desk.warnings() == []
    place.clock.ms += 170 * DAY_MS
    assert ada.roster().voice(ada.root.public, place.clock()).attested


async def test_an_attestor_takes_back_what_it_said(place: Town) -> None:
    ada = place.houses["ada"]
    await become_attested(place, ada)
    key = ada.root.public.hex()
    said = [house for name, house in place.houses.items() if name != "ada" and house.desk.log().attested]
    said[0].desk.withdraw(WithdrawRequest(participant=key, reason="account sold"))
    place.share()
    assert not ada.is_attested()
    assert ada.desk.standing().reason == "1 of 2 attestors have seen a mailbox"
    with pytest.raises(NotFound, match="said nothing of that participant"):
        said[0].desk.withdraw(WithdrawRequest(participant="0" * 64))
    with pytest.raises(Refused, match="no attestor"):
        ada.desk.withdraw(WithdrawRequest(participant=key))


async def test_a_mailbox_of_which_a_word_was_taken_back_is_refused_until_the_operator_allows_it(place: Town) -> None:
    ada = place.houses["ada"]
    await become_attested(place, ada)
    key = ada.root.public.hex()
    said = [house for name, house in place.houses.items() if name != "ada" and house.desk.log().attested]
    for house in said:
        house.desk.withdraw(WithdrawRequest(participant=key))
        house.close()
        house.open()
        assert house.desk.log().acts[0].what == "withdrawn"
    place.share()
    again = await ada.ask(ADDRESS)
    assert [refusal.why for refusal in again.refused] == ["withdrawn"] * 2
    assert len(again.awaited) == 1
    other = place.add("another key")
    assert "withdrawn" in {refusal.why for refusal in (await other.ask("Ada.Lovelace+more@example.org")).refused}
    assert not (await other.ask("somebody.else@example.org")).refused, "it is the mailbox that is refused"

    said[0].desk.allow(AllowRequest(participant=key))
    assert said[0].desk.log().acts[0].what == "allowed"
    with pytest.raises(NotFound, match="allowed it again already"):
        said[0].desk.allow(AllowRequest(participant=key))
    with pytest.raises(Refused, match="no attestor"):
        ada.desk.allow(AllowRequest(participant=key))
    place.clock.ms += DAY_MS
    await become_attested(place, ada)
    assert ada.is_attested()


async def test_a_code_that_is_on_its_way_is_refused_when_the_word_is_taken_back(place: Town) -> None:
    ada, other = place.houses["ada"], place.add("another key")
    await become_attested(place, ada)
    await other.ask(ADDRESS)
    for name, house in place.houses.items():
        if name.startswith("attestor") and house.desk.log().attested:
            house.desk.withdraw(WithdrawRequest(participant=ada.root.public.hex()))
    refused = 0
    for text in texts(place)[-2:]:
        try:
            await other.confirm(text)
        except Refused as error:
            assert "took back" in str(error)  # noqa: PT017 - not all of the attestors had said something
            refused += 1
    assert refused
    assert not other.is_attested()


async def test_a_domain_with_as_many_voices_as_count_gets_no_more(place: Town) -> None:
    for number in range(3):
        await become_attested(place, place.add(f"member-{number}"), f"member@small{number}.example.com")
        place.share()
    fourth = place.add("member-3")
    answer = await fourth.ask("member3@example.com")
    assert {refusal.why for refusal in answer.refused} == {"domain_full"}


async def test_an_attestor_cannot_be_asked_over_a_network_that_is_off(place: Town) -> None:
    ada = place.houses["ada"]
    ada.desk._participant = None
    with pytest.raises(Refused, match="network, which is off"):
        await ada.ask(ADDRESS)
    assert not ada.desk.standing().attested
    attestor = place.houses["attestor-0"]
    assert attestor.desk.warnings() == []
    attestor.desk._participant = None
    assert "nobody can ask this attestor" in attestor.desk.warnings()[0]


async def test_a_peer_that_never_answers_keeps_nobody_waiting(place: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, silent = place.houses["ada"], place.add("silent")
    monkeypatch.setattr("autoresearch_daemon.attesting.participant.FIND_SECONDS", 3600.0)
    ask = ada.ask_attestor

    async def asked(peer: str, data: bytes) -> bytes:
        if peer == silent.peer:
            await asyncio.Event().wait()
        return await ask(peer, data)

    monkeypatch.setattr(ada, "ask_attestor", asked)
    async with asyncio.timeout(60):
        assert len((await ada.ask(ADDRESS)).awaited) == 2


async def test_rubbish_is_no_address_and_bothers_nobody(place: Town) -> None:
    ada = place.houses["ada"]
    for text, kind in (("rubbish", UsageError), ("x@mailinator.com", Refused), ("a@b.org\nBcc: c@d.org", UsageError)):
        with pytest.raises(kind):
            await ada.ask(text)
    assert place.office.mails == []


async def test_without_attestors_within_reach_it_says_so(place: Town) -> None:
    ada = place.houses["ada"]
    for name in list(place.houses):
        if name != "ada":
            place.houses.pop(name).close()
    with pytest.raises(NotFound, match="none of the 3 attestors"):
        await ada.ask(ADDRESS)


@pytest.mark.parametrize("rubbish", [b"", b"x", b"\xa0", bytes(4096)])
async def test_an_attestor_answers_rubbish_with_a_no(place: Town, rubbish: bytes) -> None:
    reply = await place.houses["attestor-0"].desk.reply("somebody", rubbish)
    assert decode_reply(reply or b"") == No(why="garbled")


async def test_a_wrong_password_sends_nothing_and_is_not_told(tmp_path: Path, office: PostOffice) -> None:
    (tmp_path / "wrong").write_text("guess\n")
    (tmp_path / "wrong").chmod(0o600)
    with town(tmp_path, office, password_file=str(tmp_path / "wrong")) as place:
        answer = await place.houses["ada"].ask(ADDRESS)
        warning = place.houses["attestor-0"].desk.warnings()[0]
    assert {refusal.why for refusal in answer.refused} == {"not_sent"}
    assert "the attestor's last mail was not sent: SMTPAuthenticationError 535" in warning


async def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tmp_path: Path, office: PostOffice) -> None:
    with town(tmp_path, office, ca_file="") as place:
        answer = await place.houses["ada"].ask(ADDRESS)
    assert {refusal.why for refusal in answer.refused} == {"not_sent"}


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


async def test_the_password_may_come_from_the_environment(
    tmp_path: Path, office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    with town(tmp_path, office, password_file="") as place:
        assert len((await place.houses["ada"].ask(ADDRESS)).awaited) == 2
        assert PASSWORD not in repr(place.houses["attestor-0"].desk._server)
