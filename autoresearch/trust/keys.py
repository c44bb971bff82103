"""Ed25519 keys and the files that hold them. The only place that reads or writes a secret key.

A plain key file is text: a first line that says what it is, then the 32-byte seed in hexadecimal. A root key may lie
encrypted instead, in OpenSSH's private key format with a passphrase, which ``ssh-keygen`` reads as well. The passphrase
goes through bcrypt_pbkdf, the cipher is AES-256-CTR (OpenSSH's PROTOCOL.key). PKCS #8 as libraries write it by default
would cost a guesser a thousandth of that.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from nacl.signing import SigningKey

from autoresearch.errors import NotFound, Refused
from autoresearch.paths import sync_path, write_refusals

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
    """Write a file that only its owner can read; on the disk when this returns. Raises Refused when one is there.

    Where the disk is full there is none: half a key would be taken for a damaged one.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with write_refusals(path):
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError as error:
            raise Refused(f"{path} exists; keys are never overwritten.", hint="move it away first") from error
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            path.unlink(missing_ok=True)
            raise
    sync_path(path.parent)


def replace_private(path: Path, content: bytes) -> None:
    """Put other content in the place of a private file: the old one or the new one is there, never half of one."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    write_private(temporary, content)
    temporary.replace(path)
    sync_path(path.parent)


def read_key(path: Path) -> KeyPair:
    """The key in ``path``. Raises NotFound, or Refused when others can read it or it is no key file."""
    return parse_key(read_private(path), path)


def read_private(path: Path) -> bytes:
    """The content of a key file. Raises NotFound, or Refused when others can reach it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError as error:
        raise NotFound(f"There is no key at {path}.", hint="make one: autoresearch node id new") from error
    except OSError as error:
        raise Refused(f"The key {path} can't be opened: {error.strerror}.", hint="check its permissions") from error
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
        raise Refused(f"{path} is not a key file that this version understands.", hint="restore it from a backup")
    try:
        seed = bytes.fromhex(lines[1])
    except ValueError:
        seed = b""
    if len(seed) != _SEED_BYTES:
        raise Refused(f"The key file {path} is damaged.", hint="restore it from a backup")
    return KeyPair.from_seed(seed)


BEGINNING = b"-----BEGIN OPENSSH PRIVATE KEY-----"
# About half a second a guess on one core; ssh-keygen's own default is 16 to 24.
KDF_ROUNDS = 64
# bcrypt_pbkdf takes any length; a limit keeps a mistyped file from being read as a passphrase.
PASSPHRASE_BYTES_MAX = 1024


def seal_key(pair: KeyPair, passphrase: str, *, rounds: int = KDF_ROUNDS) -> bytes:
    """The key's file, encrypted. Raises Refused when the passphrase is empty or too long."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat

    encryption = PrivateFormat.OpenSSH.encryption_builder().kdf_rounds(rounds).build(_usable(passphrase))
    key = Ed25519PrivateKey.from_private_bytes(bytes(pair.key))
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, encryption)


def unseal_key(sealed: bytes, passphrase: str) -> KeyPair:
    """The key in an encrypted file. Raises Refused: wrong passphrase, damaged, or another type of key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    if not is_sealed(sealed):
        raise Refused("That is no encrypted key.", hint="autoresearch node id backup FILE writes one")
    try:
        key = load_ssh_private_key(sealed, _usable(passphrase))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise Refused("The passphrase is wrong, or the key file is damaged.", hint="try again") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise Refused("That is an OpenSSH key of another type; root keys are Ed25519.")
    return KeyPair.from_seed(key.private_bytes_raw())


def is_sealed(content: bytes) -> bool:
    """Whether it begins as an encrypted key file does."""
    return content.startswith(BEGINNING)


def format_public(public: bytes) -> str:
    """A public key as a line of OpenSSH."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = Ed25519PublicKey.from_public_bytes(public)
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() + " autoresearch-root\n"


def parse_public(line: bytes) -> bytes:
    """The 32 bytes of a public key as OpenSSH writes it. Raises Refused."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        key = load_ssh_public_key(line)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Refused(
            "The root key's public file is damaged.", hint="restore it: autoresearch node id restore"
        ) from error
    if not isinstance(key, Ed25519PublicKey):
        raise Refused("The root key's public file holds a key of another type.")
    return key.public_bytes_raw()


def _usable(passphrase: str) -> bytes:
    encoded = passphrase.encode()
    if not 1 <= len(encoded) <= PASSPHRASE_BYTES_MAX:
        raise Refused(f"A passphrase has 1 to {PASSPHRASE_BYTES_MAX} bytes.")
    return encoded
