"""CAR version 1, the part of it that bundles use: a header with one root, then blocks, each with its CID before it.

Source: ipld.io/specs/transport/car/carv1. CIDs are version 1 with SHA-256, of codec dag-cbor or raw; an identifier here
is its codec and its 32-byte hash. Reads and writes block by block: a file of any size takes the memory of one block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from autoresearch.errors import UsageError
from autoresearch.log import CHUNK_BYTES

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
    file.write(_varint(_CID_BYTES + len(data)) + _cid(codec, hashlib.sha256(data).digest()) + data)


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


def _varint(number: int) -> bytes:
    """Unsigned LEB128."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


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
