"""The key record that a domain publishes, and which of them are good enough. Pure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from autoresearch.errors import Refused
from autoresearch.identity.dkim_proof.library import read_public_key, read_tags

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
    return DomainKey(record, _bits(record, algorithm), _hash(tags["p"]), "s" not in flags)


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


def _hash(text: str) -> bytes:
    return hashlib.sha256(base64.b64decode("".join(text.split()))).digest()


def _listed(value: str) -> set[str]:
    return {part.strip().lower() for part in value.split(":")}
