"""Ed25519 keys and the files that hold them. The only place that reads or writes a secret key.

A plain key file is text: a first line that says what it is, then the 32-byte seed in hexadecimal. A root key may lie
encrypted instead: :mod:`autoresearch.identity.sealing`.
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
_FILE_BYTES_MAX = 16_384


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
    """Write a plain key file that only its owner can read. Raises Refused when something is there already."""
    write_private(path, plain(pair))


def plain(pair: KeyPair) -> bytes:
    """The content of a plain key file."""
    return f"{_HEADER}\n{bytes(pair.key).hex()}\n".encode("ascii")


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read; on the disk when this returns. Raises Refused when one is there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError as error:
        raise Refused(f"{path} exists; keys are never overwritten.", hint="move it away first") from error
    except OSError as error:
        raise Refused(f"{path} can't be written: {error.strerror}.") from error
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def replace_private(path: Path, content: bytes) -> None:
    """Put other content in the place of a private file: the old one or the new one is there, never half of one."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    write_private(temporary, content)
    temporary.replace(path)
    sync_folder(path.parent)


def read_key(path: Path) -> KeyPair:
    """The key in ``path``. Raises NotFound, or Refused when others can read it or it is no key file."""
    return parse_key(read_private(path), path)


def read_private(path: Path) -> bytes:
    """The content of a key file. Raises NotFound, or Refused when others can reach it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError as error:
        raise NotFound(f"There is no key at {path}.", hint="make one: autoresearch id new") from error
    except OSError as error:
        raise Refused(f"The key {path} can't be opened: {error.strerror}.") from error
    with os.fdopen(descriptor, "rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise Refused(f"Others can read the key {path}.", hint=f"chmod 600 {path}")
        return file.read(_FILE_BYTES_MAX)


def read_secret(path: Path) -> str:
    """The first line of a file with a password. Raises NotFound, or Refused when others can reach it."""
    lines = read_private(path).decode("utf-8", errors="replace").splitlines()
    return lines[0] if lines else ""


def parse_key(content: bytes, path: Path) -> KeyPair:
    """The key that a plain file holds; ``path`` is for the words. Raises Refused."""
    lines = content.decode("ascii", errors="replace").splitlines()
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
