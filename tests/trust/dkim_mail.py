"""Mails signed with DKIM in every way that is right or wrong."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import dkim
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from dkim.canonicalization import CanonicalizationPolicy
from nacl.signing import SigningKey

from autoresearch.errors import Refused
from autoresearch.trust.dkim import proof_subject, prove

NOW_MS = 1_768_478_400_000  # 15 January 2026, 12:00 UTC
NOW_S = NOW_MS // 1000
DATE = "Thu, 15 Jan 2026 11:50:00 +0000"
DAY_S = 86_400
SUBJECT = proof_subject(b"a statement")
SENDER = "Ada Lovelace <ada@example.org>"


@cache
def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def ed_key() -> SigningKey:
    return SigningKey(bytes(range(32)))


def rsa_record(key: rsa.RSAPrivateKey, more: str = "") -> bytes:
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"v=DKIM1; k=rsa; {more}p={base64.b64encode(public).decode()}".encode()


def ed_record(key: SigningKey, more: str = "") -> bytes:
    return f"v=DKIM1; k=ed25519; {more}p={base64.b64encode(bytes(key.verify_key)).decode()}".encode()


def bare_rsa_record(modulus: int, exponent: int) -> bytes:
    """A record with an RSAPublicKey of any size, which no library would make."""

    def der(tag: int, content: bytes) -> bytes:
        return bytes([tag, 0x82]) + len(content).to_bytes(2, "big") + content

    numbers = [number.to_bytes(number.bit_length() // 8 + 1, "big") for number in (modulus, exponent)]
    sequence = der(0x30, b"".join(der(0x02, number) for number in numbers))
    return b"v=DKIM1; p=" + base64.b64encode(sequence)


@dataclass
class Signing:
    """One signature: what its field says, and with which key it is made. None as a tag's value leaves it out."""

    key: Any = field(default_factory=rsa_key)
    algorithm: str = "rsa-sha256"
    domain: str = "example.org"
    selector: str = "mail"
    headers: str = "from:to:subject:date:message-id"
    canonical: str = "relaxed/relaxed"
    tags: dict[str, str | None] = field(default_factory=dict)

    def sign(self, message: bytes) -> bytes:
        """The message with this signature above it."""
        signer = dkim.DKIM(message, signature_algorithm=self.algorithm.encode())
        policy = CanonicalizationPolicy.from_c_value(self.canonical.encode())
        signer.hasher = dkim.HASH_ALGORITHMS[self.algorithm.encode()]
        body = policy.canonicalize_body(signer.body)
        if "l" in self.tags:
            body = body[: int(self.tags["l"] or 0)]
        wanted = {"v": "1", "a": self.algorithm, "c": self.canonical, "d": self.domain, "s": self.selector}
        wanted |= {"t": str(NOW_MS // 1000 - 600), "h": self.headers}
        wanted |= {"bh": base64.b64encode(signer.hasher(body).digest()).decode()} | self.tags | {"b": "0" * 60}
        tags = [(name.encode(), value.encode()) for name, value in wanted.items() if value is not None]
        names = tuple(name.strip().lower().encode() for name in self.headers.split(":"))
        value = signer.gen_header(tags, names, policy, b"DKIM-Signature", self._private())
        return b"DKIM-Signature: " + value + message

    def _private(self) -> Any:
        if isinstance(self.key, SigningKey):
            return self.key
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        return dkim.parse_pem_private_key(pem)


def mail(subject: str = SUBJECT, sender: str = SENDER, date: str = DATE, body: str = "Hello.") -> bytes:
    """An unsigned mail."""
    lines = [f"From: {sender}", "To: attestor@example.net", f"Subject: {subject}", f"Date: {date}"]
    lines += ["Message-ID: <1@example.org>", "", body, ""]
    return "\r\n".join(lines).encode()


class Dns:
    """Key records by name; it remembers what was asked."""

    def __init__(self, *records: tuple[str, str, bytes]) -> None:
        self.records = {(selector, domain): record for selector, domain, record in records}
        self.asked: list[tuple[str, str]] = []

    def __call__(self, selector: str, domain: str) -> bytes | None:
        self.asked.append((selector, domain))
        return self.records.get((selector, domain))

    def usual(self, message: bytes) -> bool:
        """What the library says of the message by itself: that any mail server would."""

        def lookup(name: bytes, **_: object) -> bytes | None:
            selector, _, domain = name.decode().rstrip(".").partition("._domainkey.")
            return self.records.get((selector, domain))

        return bool(dkim.verify(message, dnsfunc=lookup))


def dns(record: bytes | None = None) -> Dns:
    """One domain with one key."""
    return Dns(("mail", "example.org", rsa_record(rsa_key()) if record is None else record))


def verdict(message: bytes, lookup: Dns | None = None, now_ms: int = NOW_MS) -> str:
    """Either "proof" or why it is none."""
    try:
        prove(message, dns() if lookup is None else lookup, subject=SUBJECT, now_ms=now_ms)
    except Refused as refusal:
        return str(refusal)
    return "proof"
