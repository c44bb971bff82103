"""Ed25519 keys and the files that hold them. The only place that reads or writes a secret key.

A key file is text: a first line that says what it is, then the 32-byte seed in hexadecimal. Keys lie in the clear for
now; the first line leaves room for a form that is encrypted at rest.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from nacl.signing import SigningKey

from autoresearch.errors import NotFound, Refused

_HEADER = "autoresearch key 1 ed25519 plain"
_SEED_BYTES = 32


@dataclass(frozen=True)
class KeyPair:
    """A signing key. ``public`` is the 32-byte name by which others know it."""

    key: SigningKey

    @classmethod
    def generate(cls) -> KeyPair:
        """A new key from the system's randomness."""
        return cls(SigningKey.generate())

    @classmethod
    def from_seed(cls, seed: bytes) -> KeyPair:
        """The key that ``seed``, 32 bytes, determines."""
        return cls(SigningKey(seed))

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return bytes(self.key.verify_key)

    def sign(self, message: bytes) -> bytes:
        """The detached signature of ``message``, 64 bytes."""
        return self.key.sign(message).signature

    def __repr__(self) -> str:
        return f"KeyPair(public={self.public.hex()})"


def write_key(path: Path, pair: KeyPair) -> None:
    """Write a key file that only its owner can read. Raises Refused when something is there already."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError as error:
        raise Refused(f"{path} exists; keys are never overwritten.", hint="move it away first") from error
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(f"{_HEADER}\n{bytes(pair.key).hex()}\n")
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def read_key(path: Path) -> KeyPair:
    """The key in ``path``. Raises NotFound, or Refused when others can read it or it is no key file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError as error:
        raise NotFound(f"There is no key at {path}.", hint="make one: autoresearch id new") from error
    except OSError as error:
        raise Refused(f"The key {path} can't be opened: {error.strerror}.") from error
    with os.fdopen(descriptor, "rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise Refused(f"Others can read the key {path}.", hint=f"chmod 600 {path}")
        lines = file.read(1024).decode("ascii", errors="replace").splitlines()
    if len(lines) != 2 or lines[0] != _HEADER:
        raise Refused(f"{path} is not a key file that this version understands.")
    try:
        seed = bytes.fromhex(lines[1])
    except ValueError:
        seed = b""
    if len(seed) != _SEED_BYTES:
        raise Refused(f"The key file {path} is damaged.", hint="restore it from a backup")
    return KeyPair.from_seed(seed)


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
