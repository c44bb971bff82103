"""A participant's identity: a root key that stands for the person or team, and a device key for this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autoresearch.errors import Refused
from autoresearch.identity.keys import KeyPair, read_key, write_key
from autoresearch.records import Identity as IdentityBody

ROOT_FILE = "root.key"
DEVICE_FILE = "device.key"


@dataclass(frozen=True)
class Identity:
    """The keys of one participant on one machine."""

    root: KeyPair
    device: KeyPair
    name: str = ""


def create_identity(folder: Path, *, name: str = "") -> Identity:
    """Make both keys and write them to ``folder``, which is created. Raises Refused when one of them exists."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in (ROOT_FILE, DEVICE_FILE):
        if (folder / file).exists():
            raise Refused(f"There is an identity in {folder} already.", hint="keys are never overwritten")
    identity = Identity(KeyPair.generate(), KeyPair.generate(), name)
    write_key(folder / ROOT_FILE, identity.root)
    write_key(folder / DEVICE_FILE, identity.device)
    return identity


def load_identity(folder: Path, *, name: str = "") -> Identity:
    """The identity in ``folder``. Raises NotFound, or Refused when others can read a key or it is damaged."""
    return Identity(read_key(folder / ROOT_FILE), read_key(folder / DEVICE_FILE), name)


def delegation(identity: Identity, *, expires_ms: int | None = None) -> IdentityBody:
    """The body of the ``identity`` record, to be authored by the root key, that lets the device key speak for it."""
    return IdentityBody(
        action="delegate",
        root=identity.root.public,
        device=identity.device.public,
        expires=expires_ms,
        name=identity.name,
    )
