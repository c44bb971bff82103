"""A participant's identity: a root key that stands for the person or team, and a device key for this machine.

The folder holds ``device.key``, and ``root.key`` in the clear or encrypted. Where the root key is encrypted or stays on
another machine of the same person, ``root.pub`` names it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from autoresearch.errors import NotFound, Refused
from autoresearch.identity.keys import (
    KeyPair,
    parse_key,
    plain,
    read_key,
    read_private,
    replace_private,
    write_key,
    write_private,
)
from autoresearch.identity.sealing import format_public, is_sealed, parse_public, seal_key, unseal_key
from autoresearch.records import Identity as IdentityBody

ROOT_FILE = "root.key"
ROOT_PUBLIC_FILE = "root.pub"
DEVICE_FILE = "device.key"


@dataclass(frozen=True)
class LockedKey:
    """A root key whose secret half is not at hand: ``here`` but encrypted, or on another machine."""

    public: bytes
    here: bool


@dataclass(frozen=True)
class Identity:
    """The keys of one participant on one machine."""

    root: KeyPair | LockedKey
    device: KeyPair
    name: str = ""


def create_identity(folder: Path, *, name: str = "", passphrase: str | None = None) -> Identity:
    """Make both keys and write them to ``folder``, which is created; with a passphrase the root key is encrypted.

    Raises Refused when there is a key already.
    """
    return _install(folder, KeyPair.generate(), passphrase, name=name)


def make_identity(folder: Path) -> Identity:
    """The identity in ``folder``. Missing keys are made: both, or a new device key for the root key that is there.

    Raises Refused when there is a device key without a root key.
    """
    try:
        _load_root(folder)
    except NotFound:
        return create_identity(folder)
    own_device(folder)
    return load_identity(folder)


def restore_identity(folder: Path, backup: bytes, passphrase: str) -> Identity:
    """Put an encrypted backup of the root key into ``folder``, with a new device key beside it.

    Raises Refused when there is a key already, the passphrase is wrong or the backup damaged.
    """
    return _install(folder, unseal_key(backup, passphrase), passphrase)


def load_identity(folder: Path, *, name: str = "") -> Identity:
    """The identity in ``folder``. Raises NotFound, or Refused when others can read a key or it is damaged."""
    return Identity(_load_root(folder), read_key(folder / DEVICE_FILE), name)


def unlock(folder: Path, identity: Identity, passphrase: str) -> Identity:
    """The same with the root key at hand. Raises Refused: wrong passphrase, or the root key is on another machine."""
    if isinstance(identity.root, KeyPair):
        return identity
    if not identity.root.here:
        raise Refused(
            "The root key is not on this machine, which is a further device of its owner.",
            hint="do it on the machine that has the root key",
        )
    root = unseal_key(read_private(folder / ROOT_FILE), passphrase)
    if root.public != identity.root.public:
        raise Refused(f"{ROOT_FILE} and {ROOT_PUBLIC_FILE} in {folder} are of different keys.")
    return replace(identity, root=root)


def protect_root(folder: Path, root: KeyPair, passphrase: str | None) -> None:
    """Encrypt the root key's file with a passphrase, or lay it in the clear without one."""
    if passphrase is None:
        replace_private(folder / ROOT_FILE, plain(root))
        return
    # First the name, so that an encrypted key never lies there without one.
    replace_private(folder / ROOT_PUBLIC_FILE, format_public(root.public).encode())
    replace_private(folder / ROOT_FILE, seal_key(root, passphrase))


def back_up_root(path: Path, root: KeyPair, passphrase: str) -> None:
    """Write an encrypted copy of the root key to ``path``. Raises Refused when something is there."""
    write_private(path, seal_key(root, passphrase))


def own_device(folder: Path) -> KeyPair:
    """This machine's device key without any root key, made when there is none yet. Raises Refused."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        return read_key(folder / DEVICE_FILE)
    except NotFound:
        device = KeyPair.generate()
        write_key(folder / DEVICE_FILE, device)
        return device


def adopt_root(folder: Path, root: bytes) -> Identity:
    """Make this machine a device of a root key that stays elsewhere. Raises Refused when it has another."""
    if (folder / ROOT_FILE).exists():
        raise Refused(
            f"This machine has a root key of its own, {folder / ROOT_FILE}.",
            hint="move that file to a safe place first; it is never overwritten",
        )
    replace_private(folder / ROOT_PUBLIC_FILE, format_public(root).encode())
    return load_identity(folder)


def delegation(identity: Identity, *, device: bytes | None = None, expires_ms: int | None = None) -> IdentityBody:
    """The body of the ``identity`` record, to be authored by the root key, that lets a device speak for it.

    ``device`` is another one than this machine's.
    """
    return IdentityBody(
        action="delegate",
        root=identity.root.public,
        device=device or identity.device.public,
        expires=expires_ms,
        name=identity.name,
    )


def _install(folder: Path, root: KeyPair, passphrase: str | None, *, name: str = "") -> Identity:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in (ROOT_FILE, DEVICE_FILE, ROOT_PUBLIC_FILE):
        if (folder / file).exists():
            raise Refused(
                f"There is an identity in {folder} already.",
                hint="keys are never overwritten; a device that waits for its root key: autoresearch id add-device",
            )
    identity = Identity(root, KeyPair.generate(), name)
    if passphrase is None:
        write_key(folder / ROOT_FILE, root)
    else:
        protect_root(folder, root, passphrase)
    write_key(folder / DEVICE_FILE, identity.device)
    return identity


def _load_root(folder: Path) -> KeyPair | LockedKey:
    try:
        content = read_private(folder / ROOT_FILE)
    except NotFound:
        if not (folder / ROOT_PUBLIC_FILE).exists():
            raise
        return LockedKey(parse_public(read_private(folder / ROOT_PUBLIC_FILE)), here=False)
    if is_sealed(content):
        return LockedKey(parse_public(read_private(folder / ROOT_PUBLIC_FILE)), here=True)
    return parse_key(content, folder / ROOT_FILE)
