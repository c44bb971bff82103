"""A manifest as bytes, for the wire and for invites: one DAG-CBOR map, one encoding for each manifest. Pure."""

from __future__ import annotations

import msgspec

from autoresearch.errors import UsageError
from autoresearch.identity import Trust
from autoresearch.networks.manifest import Manifest, network_of, unusual_constants
from autoresearch.records import EncodingError, decode, encode

VERSION = 1
# With the bounds of a manifest it stays well below; more is not read.
MANIFEST_BYTES_MAX = 48 * 1024


class _Encoded(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    v: int
    id: bytes
    name: str
    nonce: bytes
    constants: dict[str, int]
    attestors: list[bytes]
    needed: int
    participants: list[bytes]
    tasks: list[bytes]
    bootstrap: list[str]


def encode_manifest(manifest: Manifest) -> bytes:
    """The bytes of a manifest. Constants are written when they are not the usual ones."""
    network, trust = manifest.network, manifest.trust
    return encode(
        {
            "v": VERSION,
            "id": network.id,
            "name": network.name,
            "nonce": network.nonce,
            "constants": unusual_constants(network),
            "attestors": sorted(trust.attestors),
            "needed": trust.needed,
            "participants": sorted(trust.participants),
            "tasks": list(manifest.tasks),
            "bootstrap": list(manifest.bootstrap),
        }
    )


def decode_manifest(raw: bytes) -> Manifest:
    """The manifest of these bytes; its id is computed anew. Raises UsageError when it is none."""
    if len(raw) > MANIFEST_BYTES_MAX:
        raise UsageError(f"that is no network: it has more than {MANIFEST_BYTES_MAX} bytes")
    try:
        value = decode(raw)
        if isinstance(value, dict) and isinstance(value.get("v"), int) and value["v"] != VERSION:
            raise UsageError("that network is written for another version", hint="install a newer autoresearch")
        found = msgspec.convert(value, _Encoded)
    except (EncodingError, msgspec.ValidationError) as error:
        raise UsageError(f"that is no network: {str(error)[:200]}") from error
    manifest = Manifest(
        network_of(found.name, found.nonce, found.constants, found.id),
        Trust(frozenset(found.attestors), found.needed, frozenset(found.participants)),
        tuple(found.tasks),
        tuple(found.bootstrap),
    )
    if encode_manifest(manifest) != raw:
        raise UsageError("that is no network: it is not spelled in the one right way")
    return manifest
