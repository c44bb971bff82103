"""From an address to an attested participant, with real mails over STARTTLS and a login; and every way to cheat."""

from __future__ import annotations

import asyncio
import stat

import pytest
from autoresearch_attestor.rules import TRIES
from msgspec.structs import replace

from autoresearch.errors import AutoresearchError, NotFound, Refused, UsageError
from autoresearch.log.standing.cache import roster_of
from autoresearch.record.record import DAY_MS, Network, Refusal, admit
from autoresearch.trust.attestation import Attested, No, decode_reply, encode_message, find_codes, write_code
from autoresearch.trust.attestor import attestors_in_order
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.mailbox import domain_tag, mail_tag, mailbox
from tests.trust.attesting.postoffice import PASSWORD
from tests.trust.attesting.town import ADDRESS, MINUTE_MS, TEA, Town, become_attested, pairs, texts


@pytest.mark.slow
async def test_two_codes_and_the_participant_is_attested_for_all_to_see(place: Town) -> None:
    ada = place.houses["ada"]
    answer = await ada.ask(ADDRESS)
    assert (answer.attested, len(answer.awaited), answer.refused, answer.reachable) == (False, 2, [], 3)
    assert answer.reason == "0 of 2 attestors have seen a mailbox"
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
    voter = roster_of(stranger.notebook.log).voter(ada.notebook.author, place.clock())
    assert (voter.root, voter.voter, voter.attested) == (ada.root.public, mail_tag(mailbox(ADDRESS), TEA), True)
    bodies = [record.body for record in stranger.notebook.log.records.newest(kind="attestation", limit=9)]
    assert {body.domain for body in bodies} == {domain_tag(mailbox(ADDRESS), TEA).hex()}  # type: ignore[union-attr]
    assert {body.method for body in bodies} == {"code"}  # type: ignore[union-attr]


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
async def test_a_code_used_with_another_key_is_refused(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    with pytest.raises(Refused, match="not the code that it mailed for this participant"):
        await ada.confirm(texts(place)[0], KeyPair.generate())
    assert not (await ada.confirm(texts(place)[0])).attested


@pytest.mark.slow
async def test_a_code_that_somebody_else_reads_is_worth_nothing_to_him(place: Town) -> None:
    ada, thief = place.houses["ada"], place.add("thief")
    await ada.ask(ADDRESS)
    thief.local.save_codes(ada.awaited())  # he even knows the second token
    with pytest.raises(Refused, match="another node"):
        await thief.confirm(texts(place)[0])
    with pytest.raises(Refused, match="another node"):
        await thief.confirm(texts(place)[1], ada.root)


@pytest.mark.slow
async def test_a_code_is_good_once(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    awaited = ada.awaited()
    await ada.confirm(texts(place)[0])
    ada.local.save_codes(awaited)
    with pytest.raises(Refused, match="answered already"):
        await ada.confirm(texts(place)[0])
    assert len(ada.notebook.log.records.newest(kind="attestation", limit=9)) == 1


@pytest.mark.slow
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


@pytest.mark.slow
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
    monkeypatch.setattr("autoresearch_attestor.mail.CODE_MS", 2**52)
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


@pytest.mark.slow
async def test_an_attestor_that_has_not_heard_of_the_device_hears_of_it_first(place: Town) -> None:
    newcomer = place.add("newcomer", share=False)
    newcomer.hear(pairs(place.houses["attestor-0"].notebook))
    await become_attested(place, newcomer)
    assert newcomer.is_attested()


@pytest.mark.slow
async def test_an_attestation_of_another_network_is_none(place: Town) -> None:
    ada = place.houses["ada"]
    await become_attested(place, ada)
    record = ada.notebook.log.records.newest(kind="attestation", limit=1)[0]
    refused = admit(record.raw, record.signature, Network(name="other"), now_ms=place.clock.ms)
    assert isinstance(refused, Refusal)
    assert refused.code == "network"
    again = ada.notebook.log.writer.ingest([(record.raw, record.signature)], now_ms=place.clock.ms)
    assert [verdict.state.value for verdict in again] == ["duplicate"]


@pytest.mark.slow
async def test_another_attestor_is_asked_in_place_of_one_that_says_no(place: Town) -> None:
    ada = place.houses["ada"]
    order = attestors_in_order(ada.root.public, place.manifest.trust.attestors, now_ms=place.clock.ms)
    first = next(house for house in place.houses.values() if house.root.public == order[0])
    first.close()
    first.open({"AUTORESEARCH_ATTESTOR_DISPOSABLE": "example.com, example.org"})
    answer = await ada.ask(ADDRESS)
    assert {code.attestor for code in answer.awaited} == {key.hex() for key in order[1:]}
    assert [(no.attestor, no.why) for no in answer.refused] == [(order[0].hex(), "throw_away")]


@pytest.mark.slow
async def test_pending_codes_and_counts_survive_a_restart_of_everybody(place: Town) -> None:
    ada = place.houses["ada"]
    await ada.ask(ADDRESS)
    for house in place.houses.values():
        house.close()
        house.open()
    for text in texts(place):
        await ada.confirm(text)
    assert ada.is_attested()
    logs = [place.houses[f"attestor-{number}"].attestation_service.log() for number in range(3)]
    assert sum(log.attested for log in logs) == 2
    assert all(log.trusted for log in logs)
    assert {act.what for log in logs for act in log.acts} == {"mailed", "attested"}
    modes = {stat.S_IMODE(place.houses["attestor-0"].paths.local.stat().st_mode)}
    assert modes == {0o600}


@pytest.mark.slow
async def test_who_is_attested_asks_for_no_mail_until_it_is_due(place: Town) -> None:
    ada = place.houses["ada"]
    await become_attested(place, ada)
    count = len(place.office.mails)
    assert "nobody has attested" in place.add("stranger").attestation_service.conditions()[0].detail
    assert place.houses["attestor-0"].attestation_service.conditions() == []
    assert (await ada.ask(ADDRESS)).attested
    assert len(place.office.mails) == count
    assert ada.attestation_service.conditions() == []
    place.clock.ms += 155 * DAY_MS
    for house in place.houses.values():
        house.notebook.publish_identity(place.clock())
    place.share()
    assert "days more" in ada.attestation_service.conditions()[0].detail
    await become_attested(place, ada)
    assert ada.attestation_service.conditions() == []
    place.clock.ms += 170 * DAY_MS
    assert ada.roster().voter(ada.root.public, place.clock()).attested


@pytest.mark.slow
async def test_a_domain_with_as_many_voices_as_count_gets_no_more(place: Town) -> None:
    for number in range(3):
        await become_attested(place, place.add(f"member-{number}"), f"member@small{number}.example.com")
        place.share()
    fourth = place.add("member-3")
    answer = await fourth.ask("member3@example.com")
    assert {refusal.why for refusal in answer.refused} == {"domain_full"}


async def test_an_attestor_cannot_be_asked_over_a_network_that_is_off(place: Town) -> None:
    ada = place.houses["ada"]
    ada.attestation_service._participant = None
    with pytest.raises(Refused, match="network, which is off"):
        await ada.ask(ADDRESS)
    assert not ada.attestation_service.standing().attested
    attestor = place.houses["attestor-0"]
    assert attestor.attestation_service.conditions() == []
    attestor.attestation_service._participant = None
    assert "nobody can ask this attestor" in attestor.attestation_service.conditions()[0].detail


@pytest.mark.slow
async def test_a_peer_that_never_answers_keeps_nobody_waiting(place: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, silent = place.houses["ada"], place.add("silent")
    monkeypatch.setattr("autoresearch_daemon.mail.participant.FIND_SECONDS", 3600.0)
    ask = ada.ask_attestor

    async def ask_or_wait(peer: str, data: bytes) -> bytes:
        if peer == silent.peer:
            await asyncio.Event().wait()
        return await ask(peer, data)

    monkeypatch.setattr(ada, "ask_attestor", ask_or_wait)
    async with asyncio.timeout(250):
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
    reply = await place.houses["attestor-0"].attestation_service.reply("somebody", rubbish)
    assert decode_reply(reply or b"") == No(why="garbled")
