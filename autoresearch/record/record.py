"""Records: sealing one's own, admitting those of others; the constants that all peers of one network share.

Pure: the same bytes get the same answer everywhere. The envelope is frozen; a changed envelope is another ``v`` and
another network. The signature is Ed25519 over the pre-authentication encoding of DSSE
(github.com/secure-systems-lab/dsse), kept beside the bytes and outside the id. libsodium's rules of what is a valid
signature are part of the format: a second verifier would split the network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Annotated, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta
from nacl import bindings
from nacl.exceptions import BadSignatureError

from autoresearch import words
from autoresearch.record.encoding import EncodingError, decode, decode_again, encode, format_id
from autoresearch.record.kinds import KINDS, RECORD_FIELDS, Body, Hash, Key

B = TypeVar("B", bound=Body)
DAY_MS = 86_400_000
# All others came after the first networks were founded: they are left out of the id at their default, so that it stays.
EARLY = frozenset({"name", "record_bytes", "ahead_ms", "start_ms", "per_day_seq", "per_day", "per_author"})


@dataclass(frozen=True)
class Network:
    """A network's constants. Peers whose constants differ are in different networks, because ``id`` differs.

    ``nonce``: 16 random bytes from the founding, so that two networks of one name differ; none for the built-in one.
    ``record_bytes``: the largest record. ``ahead_ms``: how far ahead of the clock here a record's time may be.
    ``start_ms``: the earliest time, UTC. ``per_day_seq``, ``per_day``, ``per_author``: how many records are kept
    for one author, UTC day and sequence number; one author and day; one author. See :mod:`autoresearch.log.quota`.
    ``tag_memory_bytes`` and ``tag_passes``: what the tag of a mailbox costs, so that all make the same (Argon2id, RFC
    9106). ``domain_voices``: how many mailboxes of one domain, unless it serves everybody, count at a time.
    ``unattested``: how many records are kept of all authors together whom the network does not name, where it names
    any.
    ``verify_…``: how many verify what and who counts, see :class:`autoresearch.judging.committee.VerificationRules`.
    """

    name: str
    record_bytes: int = 16_384
    ahead_ms: int = 600_000
    start_ms: int = 1_767_225_600_000  # 2026-01-01
    per_day_seq: int = 4
    per_day: int = 16_384
    per_author: int = 1_000_000
    nonce: bytes = b""
    tag_memory_bytes: int = 64 << 20
    tag_passes: int = 3
    domain_voices: int = 3
    verify_committee: int = 9
    verify_quorum: int = 3
    verify_everybody: int = 10
    verify_least: int = 4
    verify_patience_ms: int = 1_800_000
    verify_age_ms: int = DAY_MS
    verify_audit_permille: int = 20
    verify_seasoned: int = 10
    verify_ban_ms: int = 180 * DAY_MS
    unattested: int = 65_536

    @cached_property
    def id(self) -> bytes:
        """16 bytes that every record of the network carries: SHA-256 of the encoded constants and the nonce, cut."""
        constants = asdict(self)
        for field in fields(self):
            if field.name not in EARLY and constants[field.name] == field.default:
                del constants[field.name]
        return hashlib.sha256(encode(constants)).digest()[:16]


DEFAULT_NETWORK = Network(name=words.DEFAULT_NETWORK)


PAYLOAD_TYPE = b"application/vnd.autoresearch.record.v1+cbor"
SIGNATURE_BYTES = 64

Kind = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_.-]{0,31}\Z")]
Code = Literal["size", "encoding", "envelope", "network", "before start", "body", "signature", "early", "storing"]


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    v: Literal[1]
    net: Annotated[bytes, Meta(min_length=16, max_length=16)]
    author: Key
    seq: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    prev: Annotated[bytes, Meta(max_length=32)]
    kind: Kind
    time: Annotated[int, Meta(ge=0, le=2**53)]
    links: Annotated[list[Hash], Meta(max_length=32)]
    body: dict[str, object]


class Record(msgspec.Struct, frozen=True):
    """One signed, immutable statement. ``raw`` are the bytes as received, ``id`` their SHA-256, ``time`` ms UTC.

    ``prev`` is the id of the author's record before it, empty for the first. ``body`` is the Struct of its kind, or a
    plain map when the kind is unknown here.
    """

    id: bytes
    network: bytes
    author: bytes
    seq: int
    prev: bytes
    kind: str
    time: int
    links: tuple[bytes, ...]
    body: Body | dict[str, object]
    raw: bytes
    signature: bytes

    def body_as(self, kind: type[B]) -> B:
        """The body of a record that is of this kind, as every caller knows that it is."""
        assert isinstance(self.body, kind), f"a record of the kind {self.kind}"
        return self.body


def plain_body(body: Body | dict[str, object]) -> dict[str, object]:
    """A body as JSON holds it: ids of records are CIDs, keys and other hashes hexadecimal."""
    fields = msgspec.structs.asdict(body) if isinstance(body, Body) else body
    ids = RECORD_FIELDS if isinstance(body, Body) else ()
    return {name: _plain(value, format_id if name in ids else bytes.hex) for name, value in fields.items()}


def _plain(value: object, text: Callable[[bytes], str] = bytes.hex) -> object:
    match value:
        case bytes():
            return text(value)
        case msgspec.Struct():
            return _plain(msgspec.to_builtins(value, builtin_types=(bytes,)))
        case dict():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner, text) for inner in value]
        case _:
            return value


class Refusal(msgspec.Struct, frozen=True):
    """Why bytes are no record: a code for programs and a sentence for people."""

    code: Code
    sentence: str


class Signer(Protocol):
    """What can sign: the public key and a detached Ed25519 signature."""

    @property
    def public(self) -> bytes:
        """32 bytes."""

    def sign(self, message: bytes) -> bytes:
        """64 bytes."""


def signed_bytes(raw: bytes) -> bytes:
    """What the signature covers: DSSE's pre-authentication encoding of the payload type and the record's bytes."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE, len(raw), raw)


def seal(
    signer: Signer,
    network: Network,
    kind: str,
    body: Body | dict[str, object],
    *,
    seq: int,
    prev: bytes,
    time_ms: int,
    links: tuple[bytes, ...] = (),
) -> Record:
    """A new record signed by ``signer``. Raises EncodingError when the body can't be encoded.

    Nothing else is checked: :func:`admit` is the one judge, of one's own records as well.
    """
    fields = msgspec.to_builtins(body, builtin_types=(bytes,))
    envelope = {
        "v": 1,
        "net": network.id,
        "author": signer.public,
        "seq": seq,
        "prev": prev,
        "kind": kind,
        "time": time_ms,
        "links": list(links),
        "body": fields,
    }
    raw = encode(envelope)
    return Record(
        id=hashlib.sha256(raw).digest(),
        network=network.id,
        author=signer.public,
        seq=seq,
        prev=prev,
        kind=kind,
        time=time_ms,
        links=tuple(links),
        body=body,
        raw=raw,
        signature=signer.sign(signed_bytes(raw)),
    )


def admit(raw: bytes, signature: bytes, network: Network, *, now_ms: int) -> Record | Refusal:
    """The record, or why not. Depends on the bytes and the network's constants, and on the clock for "early" alone.

    Cheap checks come first, the signature after them. "early" comes last of all, because early records are held and
    tried again: nobody may fill that waiting room with bytes that nobody signed.
    """
    if len(raw) > network.record_bytes:
        return Refusal("size", f"a record has at most {network.record_bytes} bytes, this one has {len(raw)}")
    if len(signature) != SIGNATURE_BYTES:
        return Refusal("size", f"a signature has {SIGNATURE_BYTES} bytes, this one has {len(signature)}")
    parsed = parse(raw, signature)
    if isinstance(parsed, Refusal):
        return parsed
    if parsed.network != network.id:
        return Refusal("network", "it belongs to another network")
    if parsed.time < network.start_ms:
        return Refusal("before start", "its time is before the network began")
    try:
        bindings.crypto_sign_open(signature + signed_bytes(raw), parsed.author)
    except BadSignatureError:
        return Refusal("signature", "the signature is not that of its author")
    if parsed.time > now_ms + network.ahead_ms:
        return Refusal("early", f"its time is more than {network.ahead_ms // 60_000} minutes ahead of the clock here")
    return parsed


def parse(raw: bytes, signature: bytes) -> Record | Refusal:
    """The record that the bytes spell, whoever signed it: the part of :func:`admit` without network and signature."""
    try:
        envelope = msgspec.convert(decode(raw), _Envelope, builtin_types=(bytes,))
    except EncodingError as error:
        return Refusal("encoding", str(error))
    except msgspec.ValidationError as error:
        return Refusal("envelope", str(error))
    if len(envelope.prev) != (0 if envelope.seq == 1 else 32):
        return Refusal("envelope", "prev names the author's record before it, and is empty in the first alone")
    try:
        return _record(envelope, raw, signature)
    except msgspec.ValidationError as error:
        return Refusal("body", f"{envelope.kind}: {error}")


def parse_stored(raw: bytes, signature: bytes) -> Record:
    """A record that was admitted before. Raises ValueError when its bytes were damaged since and spell none."""
    return _record(msgspec.convert(decode_again(raw), _Envelope, builtin_types=(bytes,)), raw, signature)


def body_fields(record: Record) -> dict[str, object]:
    """The body as its author wrote it, with the entries that this version does not know."""
    return msgspec.convert(decode_again(record.raw), _Envelope, builtin_types=(bytes,)).body


def _record(envelope: _Envelope, raw: bytes, signature: bytes) -> Record:
    kind = KINDS.get(envelope.kind)
    body = msgspec.convert(envelope.body, kind, builtin_types=(bytes,)) if kind else envelope.body
    return Record(
        id=hashlib.sha256(raw).digest(),
        network=envelope.net,
        author=envelope.author,
        seq=envelope.seq,
        prev=envelope.prev,
        kind=envelope.kind,
        time=envelope.time,
        links=tuple(envelope.links),
        body=body,
        raw=raw,
        signature=signature,
    )
