"""Chunk manifests: the hashes of a large blob's chunks, so that each can be checked as it arrives. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from autoresearch.errors import Refused
from autoresearch.records import EncodingError, decode, encode

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Manifest:
    """``size`` bytes in chunks of ``chunk`` bytes, the last one shorter; ``hashes`` are their SHA-256 in order."""

    size: int
    chunk: int
    hashes: tuple[bytes, ...]

    def fits(self, index: int, data: bytes) -> bool:
        """Whether ``data`` is the chunk number ``index``, from 0."""
        return index < len(self.hashes) and hashlib.sha256(data).digest() == self.hashes[index]


def encode_manifest(size: int, hashes: Sequence[bytes]) -> bytes:
    """The bytes of a manifest: a map of version, size, chunk size and the hashes one after the other."""
    return encode({"v": 1, "size": size, "chunk": CHUNK_BYTES, "hashes": b"".join(hashes)})


def decode_manifest(raw: bytes) -> Manifest:
    """The manifest that ``raw`` spells. Raises Refused when it is none, or doesn't fit its own size."""
    try:
        value = decode(raw)
    except EncodingError as error:
        raise Refused("This is no chunk manifest.") from error
    if not isinstance(value, dict) or value.keys() != {"v", "size", "chunk", "hashes"} or value["v"] != 1:
        raise Refused("This is no chunk manifest.")
    size, chunk, hashes = value["size"], value["chunk"], value["hashes"]
    if not (type(size) is int and chunk == CHUNK_BYTES and isinstance(hashes, bytes) and size > 0):
        raise Refused("This is no chunk manifest.")
    if len(hashes) != 32 * -(-size // CHUNK_BYTES):
        raise Refused("The chunk manifest doesn't fit its own size.")
    return Manifest(size, CHUNK_BYTES, tuple(hashes[at : at + 32] for at in range(0, len(hashes), 32)))
