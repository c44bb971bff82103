"""A manifest as bytes, for the wire and for invites: one DAG-CBOR map, one encoding for each manifest. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from autoresearch.errors import UsageError
from autoresearch.identity import Trust
from autoresearch.networks.manifest import Manifest, network_of, unusual_constants
from autoresearch.records import EncodingError, decode, encode

# The second has founders and, in an invite, a token. What has neither is written as the first, which all versions read.
VERSIONS = (1, 2)
TOKEN_SEED_BYTES = 32
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
    founders: list[bytes] = []
    token: Annotated[bytes, Meta(min_length=TOKEN_SEED_BYTES, max_length=TOKEN_SEED_BYTES)] | None = None


def encode_manifest(manifest: Manifest, token: bytes | None = None) -> bytes:
    """The bytes of a manifest, in an invite with the seed of its token. Constants are written when they are unusual."""
    network, trust = manifest.network, manifest.trust
    later: dict[str, object] = {}
    if trust.founders:
        later["founders"] = sorted(trust.founders)
    if token is not None:
        later["token"] = token
    return encode(
        {
            "v": VERSIONS[1] if later else VERSIONS[0],
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
        | later
    )


def decode_manifest(raw: bytes) -> Manifest:
    """The manifest of these bytes; its id is computed anew. Raises UsageError when it is none."""
    manifest, token = decode_with_token(raw)
    if token is not None:
        raise UsageError("that is no network: it has the token of an invite")
    return manifest


def decode_with_token(raw: bytes) -> tuple[Manifest, bytes | None]:
    """The manifest in an invite, and the seed of its token if it has one. Raises UsageError when it is none."""
    if len(raw) > MANIFEST_BYTES_MAX:
        raise UsageError(f"that is no network: it has more than {MANIFEST_BYTES_MAX} bytes")
    try:
        value = decode(raw)
        if isinstance(value, dict) and isinstance(value.get("v"), int) and value["v"] not in VERSIONS:
            raise UsageError("that network is written for another version", hint="install a newer autoresearch")
        found = msgspec.convert(value, _Encoded)
    except (EncodingError, msgspec.ValidationError) as error:
        raise UsageError(f"that is no network: {str(error)[:200]}") from error
    manifest = Manifest(
        network_of(found.name, found.nonce, found.constants, found.id),
        Trust(frozenset(found.attestors), found.needed, frozenset(found.participants), frozenset(found.founders)),
        tuple(found.tasks),
        tuple(found.bootstrap),
    )
    if encode_manifest(manifest, found.token) != raw:
        raise UsageError("that is no network: it is not spelled in the one right way")
    return manifest, found.token
