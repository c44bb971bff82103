"""Root keys at rest: OpenSSH's private key format with a passphrase, which ``ssh-keygen`` reads as well. Pure.

The passphrase goes through bcrypt_pbkdf, the cipher is AES-256-CTR (OpenSSH's PROTOCOL.key). PKCS #8 as libraries
write it by default would cost a guesser a thousandth of that.
"""

from __future__ import annotations

from autoresearch.errors import Refused
from autoresearch.identity.keys import KeyPair

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
        raise Refused("That is no encrypted key.", hint="autoresearch id backup FILE writes one")
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
        raise Refused("The root key's public file is damaged.", hint="restore it: autoresearch id restore") from error
    if not isinstance(key, Ed25519PublicKey):
        raise Refused("The root key's public file holds a key of another type.")
    return key.public_bytes_raw()


def _usable(passphrase: str) -> bytes:
    encoded = passphrase.encode()
    if not 1 <= len(encoded) <= PASSPHRASE_BYTES_MAX:
        raise Refused(f"A passphrase has 1 to {PASSPHRASE_BYTES_MAX} bytes.")
    return encoded
