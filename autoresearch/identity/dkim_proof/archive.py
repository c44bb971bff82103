"""Key records kept and signed by whoever saw them in DNS, for the time after the domain has changed its key. Pure.

They are good only near the time at which they were seen: an old private key may be anywhere, and some domains publish
theirs on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta
from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

from autoresearch.errors import Refused
from autoresearch.identity.dkim_proof.keys import RECORD_BYTES_MAX, KeyLookup
from autoresearch.identity.dkim_proof.profile import FRESH_MS, DkimProof
from autoresearch.identity.keys import KeyPair
from autoresearch.records import EncodingError, decode, encode

_PURPOSE = b"autoresearch/dkim-key/1\0"


class SeenKey(msgspec.Struct, frozen=True, kw_only=True):
    """What is signed: that ``record`` stood in DNS for ``selector`` and ``domain`` at ``seen`` (Unix ms)."""

    domain: Annotated[str, Meta(max_length=253)]
    selector: Annotated[str, Meta(max_length=128)]
    record: Annotated[bytes, Meta(max_length=RECORD_BYTES_MAX)]
    seen: Annotated[int, Meta(ge=0, le=2**53)]
    attestor: Annotated[bytes, Meta(min_length=32, max_length=32)]


@dataclass(frozen=True, slots=True)
class ArchivedKey:
    """A key record that an attestor saw, and its signature of that."""

    seen: SeenKey
    signature: bytes


def archive_key(proof: DkimProof, signer: KeyPair, *, now_ms: int) -> ArchivedKey:
    """The key record of a proof that was just made with a record from DNS, signed by the attestor."""
    seen = SeenKey(
        domain=proof.domain, selector=proof.selector, record=proof.record, seen=now_ms, attestor=signer.public
    )
    return ArchivedKey(seen, signer.sign(_PURPOSE + _encoded(seen)))


def write_archived_key(key: ArchivedKey) -> bytes:
    """Its bytes, DAG-CBOR."""
    return encode({"seen": _encoded(key.seen), "signature": key.signature})


def read_archived_key(raw: bytes) -> ArchivedKey:
    """What :func:`write_archived_key` wrote. Raises Refused when it is damaged or not signed by whom it names."""
    try:
        outer = msgspec.convert(decode(raw), dict[str, bytes])
        seen = msgspec.convert(decode(outer["seen"]), SeenKey)
        VerifyKey(seen.attestor).verify(_PURPOSE + outer["seen"], outer["signature"])
    except (EncodingError, msgspec.ValidationError, CryptoError, ValueError, KeyError) as error:
        raise Refused("That archived DKIM key is damaged, or not from whom it says.") from error
    return ArchivedKey(seen, outer["signature"])


def archived_lookup(keys: Iterable[ArchivedKey], *, attestors: frozenset[bytes], now_ms: int) -> KeyLookup:
    """Looks key records up among those that ``attestors`` saw within two days of ``now_ms``.

    The lookup raises Refused when they saw different ones.
    """
    records: dict[tuple[str, str], set[bytes]] = {}
    for key in keys:
        seen = key.seen
        if seen.attestor in attestors and abs(seen.seen - now_ms) <= FRESH_MS:
            records.setdefault((seen.selector, seen.domain), set()).add(seen.record)

    def lookup(selector: str, domain: str) -> bytes | None:
        found = records.get((selector, domain), set())
        if len(found) > 1:
            raise Refused(f"Attestors saw different DKIM keys {selector} of {domain}.")
        return next(iter(found), None)

    return lookup


def _encoded(seen: SeenKey) -> bytes:
    return encode(msgspec.to_builtins(seen, builtin_types=(bytes,)))
