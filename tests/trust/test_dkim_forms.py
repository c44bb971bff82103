"""Several signatures, what is no mail at all, what of a mail needs to be sent; and no bytes do any harm."""

from __future__ import annotations

import base64
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import Refused, install_command
from autoresearch.text import PROOF_BYTES_MAX
from autoresearch.trust.dkim import prove, resolve_key, signed_part
from tests.trust.dkim_mail import (
    DAY_S,
    NOW_MS,
    NOW_S,
    SENDER,
    SUBJECT,
    Signing,
    dns,
    ed_key,
    ed_record,
    mail,
    rsa_key,
    rsa_record,
    verdict,
)


def test_every_signature_is_tried_not_only_the_first() -> None:
    lookup = dns()
    lookup.records["mail", "list.example"] = rsa_record(rsa_key(1024))
    inner = Signing().sign(mail())
    listed = replace(Signing(key=rsa_key(1024)), domain="list.example").sign(inner)
    broken = b"DKIM-Signature: v=1; a=rsa-sha256; d=example.org\r\n" + listed
    assert verdict(inner) == verdict(listed, lookup) == verdict(broken, lookup) == "proof"
    old = Signing(tags={"t": str(NOW_S - 9 * DAY_S)}).sign(inner)
    assert verdict(old) == "proof"


def test_of_several_reasons_the_one_of_the_senders_own_domain_is_told() -> None:
    message = Signing(domain="list.example").sign(Signing(tags={"x": str(NOW_S - 60)}).sign(mail()))
    assert verdict(message) == "The mail's DKIM signature has expired."


def test_a_flood_of_signatures_is_refused_before_any_key_is_asked_for() -> None:
    message = mail()
    for number in range(9):
        message = b"DKIM-Signature: v=1; n=%d\r\n" % number + message
    lookup = dns()
    assert verdict(message, lookup) == "The mail has more than 8 DKIM signatures."
    assert lookup.asked == []


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "The mail has no From field."),
        (b"\r\n\r\nFrom: a@b.example", "The mail has no From field."),
        (b" x\r\n", "That is no mail: its header is malformed."),
        (b"\xff\xfe\x00PNG", "That is no mail: its header has odd control characters."),
        (b"hello\r\n", "That is no mail: its header is malformed."),
        (b"From : ada@example.org\r\n" + mail(), "That is no mail: its header is malformed."),
        (mail().replace(b"Date:", b"Date: x\r\nX:"), "The mail's Date is no date."),
        (mail().replace(b"Date:", b"X:"), "The mail has no Date field."),
        (mail().replace(b"To:", b"To: x\rSubject: y\r\nX:"), "That is no mail: its header has odd control characters."),
        (mail(), "The mail has no DKIM signature."),
        (b"X: " + b"x" * PROOF_BYTES_MAX + b"\r\n" + mail(), "The mail's header is longer than 16 KiB."),
    ],
)
def test_what_is_no_signed_mail_is_refused_with_a_sentence(message: bytes, reason: str) -> None:
    assert verdict(message) == reason


def test_only_the_signed_part_needs_to_be_sent() -> None:
    private = b"Received: from home.example [192.0.2.7]\r\nX-Originating-IP: 192.0.2.7\r\n" + b"X: y\r\n" * 4000
    message = private + Signing().sign(mail(body="Dear attestor, " * 1000))
    message = Signing(domain="list.example").sign(message)
    part = signed_part(message)
    assert verdict(part) == "proof"
    assert len(part) < 1024
    assert b"192.0.2.7" not in part
    assert b"list.example" not in part
    assert b"Dear" not in part
    assert signed_part(part) == part


def test_a_mail_without_a_fitting_signature_has_no_signed_part() -> None:
    with pytest.raises(Refused, match=r"no DKIM signature"):
        signed_part(mail())
    with pytest.raises(Refused, match=r"signed by list\.example"):
        signed_part(Signing(domain="list.example").sign(mail()))


@given(st.data())
def test_no_bytes_at_all_lead_to_anything_but_a_proof_or_a_refusal(data: st.DataObject) -> None:
    message = bytearray(Signing(key=ed_key(), algorithm="ed25519-sha256").sign(mail()))
    record = bytearray(ed_record(ed_key()))
    for target in data.draw(st.lists(st.sampled_from([message, record]), min_size=1, max_size=6)):
        start = data.draw(st.integers(0, len(target)))
        target[start : start + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    verdict(bytes(message), dns(bytes(record)))


@given(st.binary(max_size=200), st.sampled_from(["rsa", "ed25519"]))
def test_no_key_at_all_leads_to_anything_but_a_refusal(key: bytes, kind: str) -> None:
    record = f"v=DKIM1; k={kind}; p=".encode() + base64.b64encode(key)
    signing = Signing() if kind == "rsa" else Signing(key=ed_key(), algorithm="ed25519-sha256")
    assert verdict(signing.sign(mail(sender=SENDER)), dns(record)) != "proof"


def test_without_the_packages_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    message = Signing().sign(mail())
    monkeypatch.setitem(sys.modules, "dkim", None)
    monkeypatch.setitem(sys.modules, "dns.resolver", None)
    with pytest.raises(Refused) as refusal:
        prove(message, dns(), subject=SUBJECT, now_ms=NOW_MS)
    assert refusal.value.hint == install_command("attest")
    with pytest.raises(Refused) as refusal:
        resolve_key("mail", "example.org")
    assert refusal.value.hint == install_command("attest")
