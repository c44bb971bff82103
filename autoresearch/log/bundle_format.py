"""The bytes of a bundle: CAR version 1 as far as bundles use it, its first and its last block. Pure.

Also which blobs a record refers to. CAR is a header with one root, then blocks, each with its CID before it. CIDs are
version 1 with SHA-256, of codec dag-cbor or raw. It is read and written block by block: a file of any size takes the
memory of one block. Source: ipld.io/specs/transport/car/carv1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, BinaryIO, NamedTuple

import msgspec
from msgspec import Meta

from autoresearch.errors import UsageError
from autoresearch.log.chunks import CHUNK_BYTES
from autoresearch.log.sync.index import varint
from autoresearch.record.encoding import EncodingError, decode, encode
from autoresearch.record.kinds import BlobRef, Contest, Note, Release, Run, Task, Verification
from autoresearch.record.record import Network, Record

DAG_CBOR, RAW = 0x71, 0x55
_CODECS = (DAG_CBOR, RAW)
_CID_BYTES = 36
# A block holds a record, a signature, a small blob, a chunk of a larger one, or a manifest of chunks.
BLOCK_BYTES = CHUNK_BYTES
# DAG-CBOR of {"roots": [CID], "version": 1}, up to the CID and from its end on. A link is tag 42 on a zero byte and
# the CID; only this spelling is canonical.
HEADER_PREFIX = bytes.fromhex("3aa265726f6f747381d82a582500")
_HEADER_SUFFIX = bytes.fromhex("6776657273696f6e01")


class BrokenBundle(UsageError):
    """The file is no bundle, or ends in the middle of one; the sentence says where."""


class Block(NamedTuple):
    """One block. ``intact``: the data is what the identifier names."""

    codec: int
    sha256: bytes
    data: bytes
    intact: bool


def write_header(file: BinaryIO, root: bytes) -> None:
    """Begin a file whose root is the dag-cbor block with this hash."""
    file.write(HEADER_PREFIX + _cid(DAG_CBOR, root) + _HEADER_SUFFIX)


def write_block(file: BinaryIO, codec: int, data: bytes) -> None:
    """Add a block of at most 1 MiB."""
    if len(data) > BLOCK_BYTES:
        raise ValueError(f"a block has at most {BLOCK_BYTES} bytes")
    file.write(varint(_CID_BYTES + len(data)) + _cid(codec, hashlib.sha256(data).digest()) + data)


def read_header(file: BinaryIO) -> bytes:
    """The hash of the root. Raises BrokenBundle."""
    end = len(HEADER_PREFIX) + _CID_BYTES
    header = _read(file, end + len(_HEADER_SUFFIX))
    cid = header[len(HEADER_PREFIX) : end]
    if not (header.startswith(HEADER_PREFIX) and cid[:4] == _cid(DAG_CBOR, b"") and header[end:] == _HEADER_SUFFIX):
        raise BrokenBundle("it does not begin as a bundle does")
    return cid[4:]


def read_blocks(file: BinaryIO) -> Iterator[Block]:
    """All blocks in turn. Raises BrokenBundle where the file stops being one, before reading an impossible length."""
    number = 0
    while (length := _read_varint(file, number)) is not None:
        number += 1
        if not _CID_BYTES <= length <= _CID_BYTES + BLOCK_BYTES:
            raise BrokenBundle(f"its block {number} has an impossible length")
        section = _read(file, length)
        if len(section) < length:
            raise BrokenBundle(f"it ends in the middle of its block {number}")
        codec, sha256, data = section[1], section[4:_CID_BYTES], section[_CID_BYTES:]
        if codec not in _CODECS or section[:4] != _cid(codec, b""):
            raise BrokenBundle(f"its block {number} has an identifier of another kind")
        yield Block(codec, sha256, data, hashlib.sha256(data).digest() == sha256)


def _cid(codec: int, sha256: bytes) -> bytes:
    return bytes((1, codec, 0x12, 0x20)) + sha256


def _read_varint(file: BinaryIO, blocks: int) -> int | None:
    """The next length, or None at the end of the file. Four bytes are more than any allowed length takes."""
    number = 0
    for index in range(4):
        byte = _read(file, 1)
        if not byte:
            if index:
                raise BrokenBundle(f"it ends in the middle of a length, after {blocks} blocks")
            return None
        number |= (byte[0] & 0x7F) << (7 * index)
        if byte[0] < 0x80:
            return number
    raise BrokenBundle(f"its block {blocks + 1} has an impossible length")


def _read(file: BinaryIO, count: int) -> bytes:
    try:
        return file.read(count)
    except OSError as error:
        raise BrokenBundle(f"it can't be read any further: {error.strerror}") from error


VERSION = 1
# So many records at most come before their blobs: whoever reads has to remember what these refer to.
GROUP_RECORDS = 256


class Opening(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The root: which version of the format, and whose records these are."""

    bundle: int
    network: Annotated[bytes, Meta(min_length=16, max_length=16)]
    name: Annotated[str, Meta(max_length=256)]


class Closing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last block: how many records and blobs came before. A bundle without it was cut off."""

    records: int
    blobs: int


def opening(network: Network) -> bytes:
    """The block that opens a bundle of this network."""
    return encode(msgspec.to_builtins(Opening(VERSION, network.id, network.name), builtin_types=(bytes,)))


def closing(records: int, blobs: int) -> bytes:
    """The block that closes a bundle."""
    return encode(msgspec.to_builtins(Closing(records, blobs), builtin_types=(bytes,)))


def read_opening(data: bytes) -> Opening:
    """What the block says. Raises BrokenBundle."""
    try:
        opening = msgspec.convert(decode(data), Opening, builtin_types=(bytes,))
    except (EncodingError, msgspec.ValidationError) as error:
        raise BrokenBundle("its first block does not say what it is") from error
    if opening.bundle != VERSION:
        raise BrokenBundle(f"it is a bundle of version {opening.bundle}, which is unknown here")
    return opening


def read_closing(data: bytes) -> Closing | None:
    """What the block says, or None when it closes nothing."""
    try:
        return msgspec.convert(decode(data), Closing, builtin_types=(bytes,))
    except (EncodingError, msgspec.ValidationError):
        return None


class BundledBlobs(StrEnum):
    """Which blobs go into a bundle."""

    SOURCES = "sources"
    ALL = "all"
    NONE = "none"


def blobs_of(record: Record, carried: BundledBlobs) -> Iterator[BlobRef]:
    """The blobs of a record: with ``SOURCES`` those that say what was run, with ``ALL`` logs and checkpoints too."""
    if carried is BundledBlobs.NONE:
        return
    body = record.body
    more: tuple[BlobRef | None, ...] = ()
    match body:
        case Run():
            yield body.source
            more = body.log, body.checkpoint
        case Task():
            yield body.baseline
            yield from body.harness.values()
        case Contest():
            if body.rules is not None:
                yield body.rules
        case Note(attack=BlobRef() as report):
            yield report
        case Release():
            yield body.bundle
        case Verification():
            more = (body.log,)
    if carried is BundledBlobs.ALL:
        yield from (blob for blob in more if blob is not None)
