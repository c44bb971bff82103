"""The strict profile of DKIM: when a mail proves that the holder of its sender address wrote its subject.

Key records are asked of DNS: that is the one part here that reaches out. A signature only says that a domain's server
passed the mail on. It becomes a proof by alignment with From, by covering the fields that matter, each present once, by
a key that is good enough and no test, and by being fresh.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autoresearch.errors import Refused, TimedOut, install_command
from autoresearch.text import PROOF_BYTES_MAX
from autoresearch.trust.dkim_mail import (
    MailHeader,
    Signature,
    header_of,
    is_signed,
    read_mail,
    read_public_key,
    read_signature,
    read_tags,
)

if TYPE_CHECKING:
    from dns.resolver import Resolver

# The key record's text for a selector and a domain, or None when there is none.
KeyLookup = Callable[[str, str], bytes | None]

RECORD_BYTES_MAX = 4096
RSA_BITS_MIN = 1024  # RFC 8301, 3.2
# Longer ones only cost time.
RSA_BITS_MAX = 4096
_EXPONENTS = range(3, 1 << 32)


@dataclass(frozen=True, slots=True)
class DomainKey:
    """A usable key: ``key_hash`` is SHA-256 over its bytes; ``is_for_subdomains``: may sign for domains below."""

    record: bytes
    bits: int
    key_hash: bytes
    is_for_subdomains: bool


def read_key(record: bytes, algorithm: str) -> DomainKey:
    """The key in a record, for signatures of ``algorithm``, "rsa" or "ed25519" (RFC 6376, 3.6.1; RFC 8463, 4).

    Raises:
        Refused: it is revoked, a test, too short, for something else, or no key record.
    """
    try:
        tags = read_tags(record) if len(record) <= RECORD_BYTES_MAX else {}
    except ValueError:
        tags = {}
    if "p" not in tags or tags.get("v", "DKIM1") != "DKIM1":
        raise Refused("The domain's DKIM key record is malformed.")
    if not tags["p"]:
        raise Refused("The domain has revoked the DKIM key that signed the mail.")
    flags = _listed(tags.get("t", ""))
    if "y" in flags:
        raise Refused("The domain marks the DKIM key that signed the mail as a test (t=y).")
    if not {"*", "email"} & _listed(tags.get("s", "*")):
        raise Refused("The DKIM key that signed the mail is not for mail.")
    if "sha256" not in _listed(tags.get("h", "sha256")):
        raise Refused("The DKIM key that signed the mail does not go with SHA-256.")
    if tags.get("k", "rsa") != algorithm:
        raise Refused("The DKIM key that signed the mail is of another kind than its signature.")
    return DomainKey(
        record,
        _bits(record, algorithm),
        hashlib.sha256(base64.b64decode("".join(tags["p"].split()))).digest(),
        "s" not in flags,
    )


def _bits(record: bytes, algorithm: str) -> int:
    try:
        key, bits = read_public_key(record)
    except ValueError as error:
        raise Refused("The domain's DKIM key record is malformed.") from error
    if algorithm == "ed25519":
        return bits
    if bits < RSA_BITS_MIN:
        raise Refused(f"The DKIM key that signed the mail is too short: {bits} bits, {RSA_BITS_MIN} are needed.")
    if bits > RSA_BITS_MAX or key["publicExponent"] not in _EXPONENTS:
        raise Refused("The DKIM key that signed the mail is of an odd size.")
    return bits


def _listed(value: str) -> set[str]:
    return {part.strip().lower() for part in value.split(":")}


TIMEOUT_S = 5.0


def resolve_key(selector: str, domain: str, *, resolver: Resolver | None = None) -> bytes | None:
    """The key record that ``domain`` publishes for ``selector``, or None when it has none. Blocks up to five seconds.

    Args:
        selector: of the signature.
        domain: of the signature.
        resolver: which name servers to ask; by default the machine's.

    Raises:
        Refused: the domain has several records there, which leaves open what they mean (RFC 6376, 3.6.2.2), or
            dnspython is missing.
        TimedOut: no name server answered.
    """
    try:
        import dns.exception
        import dns.resolver
    except ImportError as error:
        raise Refused(
            "DKIM keys can't be looked up here: a package is missing.", hint=install_command("attest")
        ) from error
    try:
        resolving = resolver or dns.resolver.get_default_resolver()
        answer = resolving.resolve(f"{selector}._domainkey.{domain}.", "TXT", lifetime=TIMEOUT_S, search=False)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return None
    except dns.exception.DNSException as error:
        raise TimedOut(f"No name server tells the DKIM key of {domain}.", hint="try again later") from error
    texts = [b"".join(record.strings) for record in answer]
    if len(texts) != 1:
        raise Refused(f"{domain} has several DKIM keys under one name.")
    return texts[0]


# How far Date and the signature's own time may be from now: servers' queues and clocks, not more.
FRESH_MS = 48 * 3_600_000
# A mail that passed lists and gateways carries three or four.
SIGNATURES_MAX = 8
_PURPOSE = b"autoresearch/attest/1/subject\0"


@dataclass(frozen=True, slots=True)
class DkimProof:
    """What a mail proves: that ``domain`` signed a mail of ``sender`` with the subject that was asked for.

    ``sender`` is the address in From: the caller checks that it is the one that matters. ``algorithm`` is "rsa" or
    "ed25519", ``key_hash`` SHA-256 over the key, ``record`` the key record's text, ``signed_ms`` the time that the
    signature tells, or else the mail's Date (Unix time).
    """

    sender: str
    domain: str
    selector: str
    algorithm: str
    bits: int
    key_hash: bytes
    record: bytes
    signed_ms: int


def proof_subject(statement: bytes) -> str:
    """The Subject that stands for a statement; with "Subject: " 74 letters, so that nobody folds it."""
    digest = hashlib.sha256(_PURPOSE + statement).digest()
    return "autoresearch " + base64.b32encode(digest).decode("ascii").rstrip("=").lower()


def prove(message: bytes, lookup: KeyLookup, *, subject: str, now_ms: int) -> DkimProof:
    """What the mail proves at ``now_ms``. Its body, if it is there at all, does not matter.

    Args:
        message: the mail, or :func:`signed_part` of it.
        lookup: gives the key record for a selector and a domain.
        subject: what Subject must be, to the letter: no "Re:", no tag of a list.
        now_ms: when it is judged, Unix time.

    Raises:
        Refused: the sentence says why. Of several signatures, the reason of the first whose domain is the sender's.
    """
    if len(header_of(message)) > PROOF_BYTES_MAX:
        raise Refused(f"The mail's header is longer than {PROOF_BYTES_MAX >> 10} KiB.")
    mail = read_mail(message)
    if mail.subject != subject:
        raise Refused("The mail's Subject is not what was asked for.", hint=f"Subject: {subject}")
    if abs(now_ms - mail.date_ms) > FRESH_MS:
        raise Refused("The mail is not from these two days.")
    signatures, refusals = _aligned(mail)
    for signature in reversed(signatures):
        try:
            return _checked(mail, signature, lookup, now_ms)
        except Refused as refusal:
            refusals.insert(0, refusal)
    raise refusals[0]


def signed_part(message: bytes) -> bytes:
    """What of a mail its sender's domain signed, and nothing else: no body, no way that it took.

    Raises Refused when no signature of the mail could be a proof, whatever its key.
    """
    mail = read_mail(message)
    signatures, refusals = _aligned(mail)
    if not signatures:
        raise refusals[0]
    signature_fields = {signature.field for signature in signatures}
    names = {name.strip().lower() for signature in signatures for name in signature.tags["h"].split(":")}
    fields = [field for field in mail.fields if field in signature_fields or field.key in names]
    return b"".join(field.name + b":" + field.value for field in fields) + b"\r\n"


def _aligned(mail: MailHeader) -> tuple[list[Signature], list[Refused]]:
    """The signatures that speak for the sender's domain, and why the others don't count."""
    if not mail.signatures:
        hint = "take the mail as it arrived at another provider, with all its headers"
        raise Refused("The mail has no DKIM signature.", hint=hint)
    if len(mail.signatures) > SIGNATURES_MAX:
        raise Refused(f"The mail has more than {SIGNATURES_MAX} DKIM signatures.")
    signatures, refusals = [], []
    for field in mail.signatures:
        try:
            signature = read_signature(field)
        except Refused as refusal:
            refusals.append(refusal)
            continue
        if signature.speaks_for(mail.domain):
            signatures.append(signature)
        else:
            refusals.append(Refused(f"The mail is signed by {signature.domain}, which is not the sender's domain."))
    return signatures, refusals


def _checked(mail: MailHeader, signature: Signature, lookup: KeyLookup, now_ms: int) -> DkimProof:
    signed_ms = mail.date_ms if signature.signed_s is None else signature.signed_s * 1000
    if abs(now_ms - signed_ms) > FRESH_MS:
        raise Refused("The mail was not signed in these two days.")
    if signature.expires_s is not None and now_ms >= signature.expires_s * 1000:
        raise Refused("The mail's DKIM signature has expired.")
    record = lookup(signature.selector, signature.domain)
    if record is None:
        raise Refused(f"{signature.domain} has no DKIM key {signature.selector}.")
    key = read_key(record, signature.algorithm)
    if not key.is_for_subdomains and not signature.domain == signature.identity == mail.domain:
        raise Refused("The DKIM key that signed the mail is not for domains below its own (t=s).")
    if not is_signed(mail.header, signature.field, signature.tags, record):
        raise Refused("The mail's DKIM signature does not hold: something in it was changed.")
    return DkimProof(
        sender=mail.sender,
        domain=signature.domain,
        selector=signature.selector,
        algorithm=signature.algorithm,
        bits=key.bits,
        key_hash=key.key_hash,
        record=record,
        signed_ms=signed_ms,
    )
