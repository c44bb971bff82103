"""A manifest as bytes, for the wire and for invites, and as a TOML file that a person can read and edit.

The bytes are one DAG-CBOR map, one encoding for each manifest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from autoresearch.errors import NotFound, UsageError
from autoresearch.paths import write_whole
from autoresearch.record.encoding import EncodingError, decode, encode
from autoresearch.text import read_toml
from autoresearch.trust.manifest import (
    DEFAULT_MANIFEST,
    NetworkManifest,
    constants_of,
    network_of,
    parse_key,
    unusual_constants,
)
from autoresearch.trust.roster import Trust

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


def encode_manifest(manifest: NetworkManifest, token: bytes | None = None) -> bytes:
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


def decode_manifest(raw: bytes) -> NetworkManifest:
    """The manifest of these bytes; its id is computed anew. Raises UsageError when it is none."""
    manifest, token = decode_with_token(raw)
    if token is not None:
        raise UsageError("that is no network: it has the token of an invite")
    return manifest


def decode_with_token(raw: bytes) -> tuple[NetworkManifest, bytes | None]:
    """The manifest in an invite, and the seed of its token if it has one. Raises UsageError when it is none."""
    if len(raw) > MANIFEST_BYTES_MAX:
        raise UsageError(f"that is no network: it has more than {MANIFEST_BYTES_MAX} bytes")
    try:
        value = decode(raw)
        if isinstance(value, dict) and isinstance(value.get("v"), int) and value["v"] not in VERSIONS:
            raise UsageError("that network is written for another version", hint="install a newer autoresearch")
        encoded = msgspec.convert(value, _Encoded)
    except (EncodingError, msgspec.ValidationError) as error:
        raise UsageError(f"that is no network: {str(error)[:200]}") from error
    manifest = NetworkManifest(
        network_of(encoded.name, encoded.nonce, encoded.constants, encoded.id),
        Trust(
            frozenset(encoded.attestors), encoded.needed, frozenset(encoded.participants), frozenset(encoded.founders)
        ),
        tuple(encoded.tasks),
        tuple(encoded.bootstrap),
    )
    if encode_manifest(manifest, encoded.token) != raw:
        raise UsageError("that is no network: it is not spelled in the one right way")
    return manifest, encoded.token


FILE_BYTES_MAX = 128 * 1024
HEAD = """\
# A network of autoresearch. Others join it with: autoresearch join FILE
# Name, nonce and constants make the id; whoever changes one of them founds another network.
# Whom to trust, the tasks and the addresses to begin with may be edited.
"""


class _Trust(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    attestors: list[str] = []
    needed: int = Trust().needed
    participants: list[str] = []
    founders: list[str] = []


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    nonce: str = ""
    id: str = ""
    tasks: list[str] = []
    bootstrap: list[str] = []
    constants: dict[str, int] = {}
    trust: _Trust = _Trust()


def format_manifest(manifest: NetworkManifest) -> str:
    """The manifest as TOML, with every constant, for people to read."""
    import tomlkit

    def lines(texts: list[str]) -> tomlkit.items.Array:
        array = tomlkit.array()
        array.extend(texts)
        return array.multiline(len(texts) > 1)

    network, trust = manifest.network, manifest.trust
    document = tomlkit.document()
    document["name"] = network.name
    document["nonce"] = network.nonce.hex()
    document["id"] = network.id.hex()
    document["tasks"] = lines([task.hex() for task in manifest.tasks])
    document["bootstrap"] = lines(list(manifest.bootstrap))
    document["constants"] = constants_of(network)
    document["trust"] = {
        "attestors": lines(sorted(key.hex() for key in trust.attestors)),
        "needed": trust.needed,
        "participants": lines(sorted(key.hex() for key in trust.participants)),
    } | ({"founders": lines(sorted(key.hex() for key in trust.founders))} if trust.founders else {})
    return HEAD + tomlkit.dumps(document)


def parse_manifest(text: bytes, name: str) -> NetworkManifest:
    """The manifest of a TOML text; ``name`` says in sentences where it came from. Raises UsageError when it is none."""
    try:
        if len(text) > FILE_BYTES_MAX:
            raise UsageError(f"it has more than {FILE_BYTES_MAX} bytes")
        file = msgspec.convert(read_toml(text), _File)
        return NetworkManifest(
            network_of(file.name, _bytes(file.nonce), file.constants, _bytes(file.id) or None),
            Trust(
                frozenset(map(parse_key, file.trust.attestors)),
                file.trust.needed,
                frozenset(map(parse_key, file.trust.participants)),
                frozenset(map(parse_key, file.trust.founders)),
            ),
            tuple(map(_bytes, file.tasks)),
            tuple(file.bootstrap),
        )
    except (msgspec.ValidationError, ValueError) as error:
        raise UsageError(
            f"{name} is no network's manifest: {str(error)[:200]}",
            hint="such a file is written by autoresearch network new; an invite does the same",
        ) from error
    except UsageError as error:
        raise UsageError(f"{name}: {error}", hint=error.hint) from error


def read_manifest(path: Path) -> NetworkManifest:
    """The manifest in a file. Raises NotFound, or UsageError when it is none."""
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path}", hint="check its name and folder") from error
    except OSError as error:
        raise UsageError(
            f"{path} can't be read: {error.strerror}", hint="check the path and its permissions"
        ) from error
    return parse_manifest(text, str(path))


def load_manifest(path: Path) -> NetworkManifest:
    """The manifest of a data folder: the built-in network when it has none. Raises UsageError when it is damaged."""
    try:
        return read_manifest(path)
    except NotFound:
        return DEFAULT_MANIFEST


def save_manifest(path: Path, manifest: NetworkManifest) -> None:
    """Write the manifest; whatever happens the file is the old one or the new one, whole. Raises OSError."""
    write_whole(path, format_manifest(manifest))


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise UsageError(f"{text[:80]!r} is not hexadecimal") from None
