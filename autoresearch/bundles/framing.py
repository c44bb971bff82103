"""The two blocks of a bundle that are neither record nor blob: that which opens it, that which closes it. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from autoresearch.bundles.car import BrokenBundle
from autoresearch.records import EncodingError, Network, decode, encode

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
        found = msgspec.convert(decode(data), Opening, builtin_types=(bytes,))
    except (EncodingError, msgspec.ValidationError) as error:
        raise BrokenBundle("its first block does not say what it is") from error
    if found.bundle != VERSION:
        raise BrokenBundle(f"it is a bundle of version {found.bundle}, which is unknown here")
    return found


def read_closing(data: bytes) -> Closing | None:
    """What the block says, or None when it closes nothing."""
    try:
        return msgspec.convert(decode(data), Closing, builtin_types=(bytes,))
    except (EncodingError, msgspec.ValidationError):
        return None
