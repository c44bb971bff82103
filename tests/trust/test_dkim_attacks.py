"""A mail is a proof only of what its sender wrote: what mail servers let pass, and what is refused here."""

from __future__ import annotations

import pytest
from nacl.signing import SigningKey

from autoresearch.trust.dkim import proof_subject, prove
from tests.trust.dkim_mail import (
    DAY_S,
    NOW_MS,
    NOW_S,
    SUBJECT,
    Dns,
    Signing,
    bare_rsa_record,
    dns,
    ed_key,
    ed_record,
    mail,
    rsa_key,
    rsa_record,
    verdict,
)


@pytest.mark.parametrize("bits", [1024, 2048, 4096])
@pytest.mark.parametrize("canonical", ["relaxed/relaxed", "simple/simple", "relaxed/simple"])
def test_a_mail_signed_with_rsa_is_a_proof(bits: int, canonical: str) -> None:
    message = Signing(key=rsa_key(bits), canonical=canonical).sign(mail())
    lookup = dns(rsa_record(rsa_key(bits)))
    proof = prove(message, lookup, subject=SUBJECT, now_ms=NOW_MS)
    assert (proof.sender, proof.domain, proof.selector) == ("ada@example.org", "example.org", "mail")
    assert (proof.algorithm, proof.bits) == ("rsa", bits)
    assert proof.record == lookup.records["mail", "example.org"]
    assert proof.signed_ms == NOW_MS - 600_000


def test_a_mail_signed_with_ed25519_is_a_proof() -> None:
    message = Signing(key=ed_key(), algorithm="ed25519-sha256").sign(mail())
    proof = prove(message, dns(ed_record(ed_key())), subject=SUBJECT, now_ms=NOW_MS)
    assert (proof.algorithm, proof.bits) == ("ed25519", 256)


def test_the_body_does_not_matter_and_may_be_gone() -> None:
    message = Signing().sign(mail())
    changed = message.replace(b"Hello.", b"Buy this.")
    assert not dns().usual(changed)
    assert verdict(changed) == verdict(message.partition(b"\r\n\r\n")[0] + b"\r\n\r\n") == "proof"


def test_a_folded_subject_and_line_ends_of_unix_are_the_same_mail() -> None:
    message = Signing().sign(mail())
    assert verdict(message.replace(b"Subject: autoresearch ", b"Subject: autoresearch\r\n  ")) == "proof"
    assert verdict(message.replace(b"\r\n", b"\n")) == "proof"


def test_a_parent_domain_may_sign() -> None:
    assert verdict(Signing().sign(mail(sender="ada@dept.example.org"))) == "proof"


# What the library by itself takes for signed.


def test_another_domains_signature_is_no_proof() -> None:
    lookup = Dns(("mail", "attacker.example", rsa_record(rsa_key())))
    message = Signing(domain="attacker.example").sign(mail())
    assert lookup.usual(message)
    assert verdict(message, lookup) == "The mail is signed by attacker.example, which is not the sender's domain."
    assert lookup.asked == []


@pytest.mark.parametrize("domain", ["org", "notexample.org", "mail.example.org", "ample.org"])
def test_neither_a_top_level_domain_nor_a_lookalike_nor_a_subdomain_signs_for_a_domain(domain: str) -> None:
    lookup = Dns(("mail", domain, rsa_record(rsa_key())))
    assert verdict(Signing(domain=domain).sign(mail()), lookup) != "proof"
    assert lookup.asked == []


def test_a_partly_covered_body_is_no_proof() -> None:
    message = Signing(tags={"l": "6"}).sign(mail()) + b"And this."
    assert dns().usual(message)
    assert verdict(message) == "The mail's DKIM signature covers a part of the text only (l=)."


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Subject", b"Subject: another\r\n"),
        ("Date", b"Date: Thu, 15 Jan 2026 11:51:00 +0000\r\n"),
        ("To", b"To: x@example.com\r\n"),
        ("Message-Id", b"Message-ID: <2@example.org>\r\n"),
        ("Reply-To", b"Reply-To: x@example.com\r\nReply-To: y@example.com\r\n"),
    ],
)
def test_a_second_field_of_what_there_is_once_is_refused(name: str, line: bytes) -> None:
    message = line + Signing().sign(mail())
    assert dns().usual(message)
    assert verdict(message) == f"The mail has several {name} fields."


def test_a_second_from_is_refused() -> None:
    message = b"From: Eve <eve@example.org>\r\n" + Signing().sign(mail())
    assert not dns().usual(message)
    assert verdict(message) == "The mail has several From fields."


@pytest.mark.parametrize("left_out", ["subject", "date"])
def test_an_uncovered_field_is_refused(left_out: str) -> None:
    covered = ":".join(name for name in ("from", "to", "subject", "date") if name != left_out)
    message = Signing(headers=covered).sign(mail(subject="hello"))
    message = message.replace(b"Subject: hello", f"Subject: {SUBJECT}".encode())
    assert dns().usual(message) is (left_out == "subject")
    assert verdict(message) == f"The mail's DKIM signature does not cover {left_out.title()}."


def test_an_uncovered_from_is_refused() -> None:
    message = Signing(headers="subject:date").sign(mail())
    assert verdict(message) == "The mail's DKIM signature does not cover From."


def test_a_key_that_is_a_test_is_refused() -> None:
    lookup = dns(rsa_record(rsa_key(), "t=s:y; "))
    message = Signing().sign(mail())
    assert lookup.usual(message)
    assert verdict(message, lookup) == "The domain marks the DKIM key that signed the mail as a test (t=y)."


def test_sha1_is_refused() -> None:
    message = Signing(algorithm="rsa-sha1").sign(mail())
    assert dns().usual(message)
    assert verdict(message) == "The mail's DKIM signature uses SHA-1, which is broken."


@pytest.mark.parametrize(
    "sender",
    [
        "ada@example.org, eve@example.net",
        "Ada <ada@example.org>, Eve <eve@example.net>",
        "Group: ada@example.org;",
        "Ada (<eve@example.net>) <ada@example.org>",
        "ada@example.org <eve@example.org>",
        "<@relay.example:ada@example.org>",
        '"ada@example.org',
        "Ada <ada@example.org> x",
        "<ada@@example.org>",
        "ada",
        "",
    ],
)
def test_a_from_that_is_not_one_plain_address_is_refused(sender: str) -> None:
    message = Signing().sign(mail(sender=sender))
    assert dns().usual(message)
    assert verdict(message) == "The mail's From is not one plain address."


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Ada ",
        '"Lovelace, Ada <eve@example.net>" ',
        "=?utf-8?Q?Ada_=3Ceve=40example.net=3E?= ",
        "Ada Lovelaço ",
        "A. L. ",
    ],
)
def test_a_display_name_says_nothing(name: str) -> None:
    message = Signing().sign(mail(sender=f"{name}<ada@example.org>"))
    assert prove(message, dns(), subject=SUBJECT, now_ms=NOW_MS).sender == "ada@example.org"


@pytest.mark.parametrize("days", [-90, -3, 3])
def test_a_mail_of_another_time_is_refused(days: int) -> None:
    message = Signing().sign(mail())
    assert dns().usual(message)
    assert verdict(message, now_ms=NOW_MS - days * DAY_S * 1000) == "The mail is not from these two days."


def test_an_old_signature_under_a_new_date_is_refused_and_the_other_way_round() -> None:
    old = Signing(tags={"t": str(NOW_S - 3 * DAY_S)}).sign(mail())
    assert verdict(old) == "The mail was not signed in these two days."
    assert (
        verdict(Signing().sign(mail(date="Thu, 1 Jan 2026 12:00:00 +0000"))) == "The mail is not from these two days."
    )


def test_another_challenge_an_answer_and_a_lists_tag_are_refused() -> None:
    for subject in (proof_subject(b"another"), f"Re: {SUBJECT}", f"[list] {SUBJECT}", SUBJECT.upper(), ""):
        message = Signing().sign(mail(subject=subject))
        assert dns().usual(message)
        assert verdict(message) == "The mail's Subject is not what was asked for."


# What nobody takes for signed.


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"ada@example.org", b"eve@example.org"),
        (b"11:50:00", b"11:50:01"),
        (b"attestor@example.net", b"attestor@example.com"),
        (b"s=mail", b"s=mail; x=1893456000"),
    ],
)
def test_a_changed_field_breaks_the_signature(old: bytes, new: bytes) -> None:
    message = Signing().sign(mail())
    assert old in message
    assert verdict(message.replace(old, new)) == "The mail's DKIM signature does not hold: something in it was changed."


def test_a_subject_put_into_a_signed_mail_breaks_the_signature() -> None:
    message = Signing().sign(mail(subject="Greetings")).replace(b"Greetings", SUBJECT.encode())
    assert verdict(message) == "The mail's DKIM signature does not hold: something in it was changed."


def test_a_signature_by_another_key_does_not_hold() -> None:
    message = Signing(key=rsa_key(1024)).sign(mail())
    assert verdict(message).startswith("The mail's DKIM signature does not hold")
    message = Signing(key=ed_key(), algorithm="ed25519-sha256").sign(mail())
    assert verdict(message, dns(ed_record(SigningKey(bytes(32))))).startswith("The mail's DKIM signature does not hold")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"v=DKIM1; k=rsa; p=", "The domain has revoked the DKIM key that signed the mail."),
        (b"", "The domain's DKIM key record is malformed."),
        (b"v=spf1 -all", "The domain's DKIM key record is malformed."),
        (b"v=DKIM1; p=AAAA", "The domain's DKIM key record is malformed."),
        (b"v=DKIM1; p=!", "The domain's DKIM key record is malformed."),
        (b"p=" + b"A" * 5000, "The domain's DKIM key record is malformed."),
        (rsa_record(rsa_key(), "s=tlsrpt; "), "The DKIM key that signed the mail is not for mail."),
        (rsa_record(rsa_key(), "s=other; "), "The DKIM key that signed the mail is not for mail."),
        (rsa_record(rsa_key(), "h=sha1; "), "The DKIM key that signed the mail does not go with SHA-256."),
        (ed_record(ed_key()), "The DKIM key that signed the mail is of another kind than its signature."),
        (bare_rsa_record((2**521 - 1) * (2**255 - 19), 65537), "The DKIM key that signed the mail is too short: "),
        (bare_rsa_record((2**4423 - 1) * (2**521 - 1), 65537), "The DKIM key that signed the mail is of an odd size."),
        (bare_rsa_record((2**1279 - 1) * (2**521 - 1), 1), "The DKIM key that signed the mail is of an odd size."),
    ],
)
def test_a_key_record_that_is_not_good_enough_is_refused(record: bytes, reason: str) -> None:
    assert verdict(Signing().sign(mail()), dns(record)).startswith(reason)


def test_a_short_key_is_refused_also_when_its_signature_holds() -> None:
    primes = 2**521 - 1, 2**255 - 19
    modulus = primes[0] * primes[1]
    private = pow(65537, -1, (primes[0] - 1) * (primes[1] - 1))
    numbers = {"exponent1": private % (primes[0] - 1), "exponent2": private % (primes[1] - 1)}
    numbers |= dict(zip(("prime1", "prime2"), primes, strict=True)) | {"modulus": modulus}
    numbers["coefficient"] = pow(primes[1], -1, primes[0])
    signing = Signing()
    signing._private = lambda: numbers  # type: ignore[method-assign]
    lookup = dns(bare_rsa_record(modulus, 65537))
    assert verdict(signing.sign(mail()), lookup) == (
        f"The DKIM key that signed the mail is too short: {modulus.bit_length()} bits, 1024 are needed."
    )


def test_a_key_for_its_own_domain_only_does_not_sign_for_those_below() -> None:
    own = dns(rsa_record(rsa_key(), "t=s; "))
    assert verdict(Signing().sign(mail()), own) == "proof"
    assert verdict(Signing(tags={"i": "@example.org"}).sign(mail()), own) == "proof"
    below = "The DKIM key that signed the mail is not for domains below its own (t=s)."
    assert verdict(Signing(tags={"i": "@dept.example.org"}).sign(mail()), own) == below
    assert verdict(Signing().sign(mail(sender="ada@dept.example.org")), own) == below


def test_a_domain_without_that_key_is_named() -> None:
    assert verdict(Signing().sign(mail()), Dns()) == "example.org has no DKIM key mail."


def test_an_expired_signature_is_refused() -> None:
    message = Signing(tags={"x": str(NOW_S - 60)}).sign(mail())
    assert verdict(message) == "The mail's DKIM signature has expired."
    assert verdict(Signing(tags={"x": str(NOW_S + 60)}).sign(mail())) == "proof"


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ({"v": "2"}, "A DKIM signature of the mail is of an unknown version."),
        ({"v": None}, "A DKIM signature of the mail has no v=."),
        ({"bh": None}, "A DKIM signature of the mail has no bh=."),
        ({"a": "rsa-md5"}, "The mail's DKIM signature uses an unknown algorithm."),
        ({"c": "loose/loose"}, "The mail's DKIM signature uses an unknown canonicalization."),
        ({"q": "http"}, "The mail's DKIM signature has its key somewhere else than in DNS."),
        ({"i": "@example.net"}, "A DKIM signature of the mail speaks for another domain than its own (i=)."),
        ({"i": "@notexample.org"}, "A DKIM signature of the mail speaks for another domain than its own (i=)."),
        ({"t": "soon"}, "A DKIM signature of the mail has no time in t=."),
        ({"x": "1"}, "A DKIM signature of the mail ends before it begins."),
        ({"s": "../x"}, "A DKIM signature of the mail names no usable domain and selector."),
        ({"d": "org"}, "A DKIM signature of the mail names no usable domain and selector."),
        ({"z": "x b=AAAA"}, "A DKIM signature of the mail is ambiguous."),
        ({"bh": "!"}, "A DKIM signature of the mail is malformed."),
    ],
)
def test_a_signature_field_that_says_odd_things_is_refused(tags: dict[str, str | None], reason: str) -> None:
    assert verdict(Signing(tags=tags).sign(mail())) == reason


def test_a_tag_that_comes_twice_is_refused() -> None:
    message = Signing().sign(mail()).replace(b"s=mail;", b"s=mail; s=mail;")
    assert verdict(message) == "A DKIM signature of the mail is malformed."
