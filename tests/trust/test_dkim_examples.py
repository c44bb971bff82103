"""The examples of the RFCs verify; the strict profile then says about them what it says of any mail."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from autoresearch.errors import Refused
from autoresearch.trust.dkim import prove
from autoresearch.trust.dkim_mail import is_signed, read_mail, read_signature
from tests.trust.dkim_mail import Dns

SENT_MS = int(datetime(2003, 7, 12, 4, 30, tzinfo=UTC).timestamp() * 1000)
SUBJECT = "Is dinner ready?"

# RFC 6376, A.2; its key is in appendix C
RFC6376 = b"""\
DKIM-Signature: v=1; a=rsa-sha256; s=brisbane; d=example.com;
      c=simple/simple; q=dns/txt; i=joe@football.example.com;
      h=Received : From : To : Subject : Date : Message-ID;
      bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
      b=AuUoFEfDxTDkHlLXSZEpZj79LICEps6eda7W3deTVFOk4yAUoqOB
      4nujc7YopdG5dWLSdNg6xNAZpOPr+kHxt1IrE+NahM6L/LbvaHut
      KVdkLLkpVaVVQPzeRDI009SO2Il5Lu7rDNH6mZckBdrIx0orEtZV
      4bmp/YzhwvcubU4=;
Received: from client1.football.example.com  [192.0.2.1]
      by submitserver.example.com with SUBMISSION;
      Fri, 11 Jul 2003 21:01:54 -0700 (PDT)
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game. Are you hungry yet?

Joe.
"""
RFC6376_KEY = (
    b"v=DKIM1; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDwIRP/UC3SBsEmGqZ9ZJW3/DkMoGeLnQg1fWn7/zYtIxN2SnFCjxOCKG9v3b4j"
    b"YfcTNh5ijSsq631uBItLa7od+v/RtdC2UzJ1lWT947qR+Rcac2gbto/NMqJ0fzfVjH4OuKhitdY9tf6mcwGjaNBcWToIMmPSPDdQPNUYckcQ2QID"
    b"AQAB"
)
# RFC 8463, A.3, and the keys of A.2
RFC8463 = b"""\
DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :
 date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3
 DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz
 dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
"""
RFC8463_ED25519_KEY = b"v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
RFC8463_RSA_KEY = (
    b"v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16"
    b"JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l"
    b"/K4w3QIDAQAB"
)
RFC8463_DNS = Dns(
    ("brisbane", "football.example.com", RFC8463_ED25519_KEY), ("test", "football.example.com", RFC8463_RSA_KEY)
)


def crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


def test_the_example_of_rfc_6376_is_a_proof_on_its_day() -> None:
    lookup = Dns(("brisbane", "example.com", RFC6376_KEY))
    assert lookup.usual(crlf(RFC6376))
    proof = prove(crlf(RFC6376), lookup, subject=SUBJECT, now_ms=SENT_MS)
    assert (proof.sender, proof.domain, proof.selector) == ("joe@football.example.com", "example.com", "brisbane")
    assert proof.bits == 1024
    with pytest.raises(Refused, match="these two days"):
        prove(crlf(RFC6376), lookup, subject=SUBJECT, now_ms=SENT_MS + 3 * 86_400_000)
    with pytest.raises(Refused, match="does not hold"):
        prove(crlf(RFC6376).replace(b"SUBMISSION", b"submission"), lookup, subject=SUBJECT, now_ms=SENT_MS)


@pytest.mark.parametrize(("index", "record"), [(0, RFC8463_ED25519_KEY), (1, RFC8463_RSA_KEY)])
def test_both_signatures_of_the_example_of_rfc_8463_hold(index: int, record: bytes) -> None:
    mail = read_mail(crlf(RFC8463))
    signature = read_signature(mail.signatures[index])
    assert signature.speaks_for(mail.domain)
    assert is_signed(mail.header, signature.field, signature.tags, record)
    assert not is_signed(mail.header.replace(b"dinner", b"supper"), signature.field, signature.tags, record)


def test_the_example_of_rfc_8463_was_signed_years_after_its_date_and_so_is_no_proof() -> None:
    assert RFC8463_DNS.usual(crlf(RFC8463))
    with pytest.raises(Refused, match="was not signed in these two days"):
        prove(crlf(RFC8463), RFC8463_DNS, subject=SUBJECT, now_ms=SENT_MS)
    with pytest.raises(Refused, match="is not from these two days"):
        prove(crlf(RFC8463), RFC8463_DNS, subject=SUBJECT, now_ms=1_528_637_909_000)
