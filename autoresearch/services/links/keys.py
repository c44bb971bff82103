"""Keys of services (ZeroMQ CURVE): who may ask a server, and which server it is. Traffic with keys is encrypted."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec
import zmq
from zmq.utils import z85

from autoresearch.errors import UsageError

BYTES = 32
_PURPOSE = b"autoresearch svc"  # blake2b takes 16 bytes


class KeyPair(msgspec.Struct, frozen=True):
    """A service's or a client's own key. ``secret`` stays on this machine; ``public`` goes to the other side."""

    secret: bytes
    public: bytes

    @classmethod
    def from_secret(cls, secret: bytes) -> KeyPair:
        """The pair that follows from any secret, always the same one: from a node's identity, for example.

        Raises:
            UsageError: the secret has fewer than 16 bytes.
        """
        if len(secret) < 16:
            raise UsageError("a secret for a service's key needs 16 bytes or more", hint="secrets.token_bytes(32)")
        own = hashlib.blake2b(secret, digest_size=BYTES, person=_PURPOSE).digest()
        return cls(secret=own, public=z85.decode(zmq.curve_public(z85.encode(own))))

    @classmethod
    def from_file(cls, path: str | Path) -> KeyPair:
        """The pair in a file of 64 hexadecimal digits; a new one where the file is missing.

        Raises:
            UsageError: others may read the file, it cannot be read or written, or it holds something else.
        """
        path = Path(path)
        try:
            text = _read(path) if path.exists() else _make(path)
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}: the key cannot be read or written", hint="name another file") from error
        try:
            own = bytes.fromhex(text.strip())
        except ValueError:
            own = b""
        if len(own) != BYTES:
            raise UsageError(f"{path}: no key of a service", hint="a key is 64 hexadecimal digits in one line")
        return cls(secret=own, public=z85.decode(zmq.curve_public(z85.encode(own))))


def _read(path: Path) -> str:
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise UsageError(f"{path}: others may read this key", hint=f"chmod 600 {path}")
    return path.read_text()


def _make(path: Path) -> str:
    text = secrets.token_hex(BYTES) + "\n"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return text


class ServerKeys(msgspec.Struct, frozen=True):
    """A server's own key, and the public keys of the clients that may ask it. Any other client is refused."""

    own: KeyPair
    clients: frozenset[bytes]

    @classmethod
    def of(cls, own: KeyPair, clients: Iterable[bytes | str]) -> ServerKeys:
        """From public keys as bytes or as 64 hexadecimal digits. Raises UsageError for anything else."""
        return cls(own=own, clients=frozenset(map(public_key, clients)))


class ClientKeys(msgspec.Struct, frozen=True):
    """A client's own key, and the public key of the server: nobody else can answer in its place."""

    own: KeyPair
    server: bytes

    @classmethod
    def of(cls, own: KeyPair, server: bytes | str) -> ClientKeys:
        """From a public key as bytes or as 64 hexadecimal digits. Raises UsageError for anything else."""
        return cls(own=own, server=public_key(server))


def public_key(key: bytes | str) -> bytes:
    """A public key from bytes or 64 hexadecimal digits. Raises UsageError for anything else."""
    try:
        found = bytes.fromhex(key) if isinstance(key, str) else key
    except ValueError:
        found = b""
    if len(found) != BYTES:
        raise UsageError("a public key has 32 bytes, or 64 hexadecimal digits", hint="print(pair.public.hex())")
    return found
