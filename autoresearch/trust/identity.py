"""A participant's identity: a root key that stands for the person or team, and a device key for each machine.

Two texts make a second machine a device of the same participant. A delegation is renewed when it is due.

The folder holds ``device.key``, and ``root.key`` in the clear or encrypted. Where the root key is encrypted or stays on
another machine of the same person, ``root.pub`` names it. A new machine prints its public key; the machine with the
root key signs a delegation and prints the record; the new machine checks that it names this device, and keeps it.
Neither text holds a secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.record.kinds import Identity
from autoresearch.record.kinds import Identity as IdentityBody
from autoresearch.record.record import DAY_MS, Network, Record, Refusal, admit
from autoresearch.trust import keys

ROOT_FILE = "root.key"
ROOT_PUBLIC_FILE = "root.pub"
DEVICE_FILE = "device.key"


@dataclass(frozen=True)
class LockedKey:
    """A root key whose secret half is not at hand: ``is_local`` but encrypted, or on another machine."""

    public: bytes
    is_local: bool


@dataclass(frozen=True)
class OwnKeys:
    """The keys of one participant on one machine."""

    root: keys.KeyPair | LockedKey
    device: keys.KeyPair


def create_identity(folder: Path, *, passphrase: str | None = None, rounds: int = keys.KDF_ROUNDS) -> OwnKeys:
    """Make both keys and write them to ``folder``, which is created; with a passphrase the root key is encrypted.

    ``rounds``: how costly a guess of the passphrase is, as for :func:`autoresearch.trust.keys.seal_key`.

    Raises Refused when there is a key already.
    """
    return _install(folder, keys.KeyPair.generate(), passphrase, rounds=rounds)


def make_identity(folder: Path) -> OwnKeys:
    """The identity in ``folder``. Missing keys are made: both, or a new device key for the root key that is there.

    Raises Refused when there is a device key without a root key.
    """
    try:
        _load_root(folder)
    except NotFound:
        return create_identity(folder)
    own_device(folder)
    return load_identity(folder)


def restore_identity(folder: Path, backup: bytes, passphrase: str, *, rounds: int = keys.KDF_ROUNDS) -> OwnKeys:
    """Put an encrypted backup of the root key into ``folder``, with a new device key beside it.

    Raises Refused when there is a key already, the passphrase is wrong or the backup damaged.
    """
    return _install(folder, keys.unseal_key(backup, passphrase), passphrase, rounds=rounds)


def load_identity(folder: Path) -> OwnKeys:
    """The identity in ``folder``. Raises NotFound, or Refused when others can read a key or it is damaged."""
    return OwnKeys(_load_root(folder), keys.read_key(folder / DEVICE_FILE))


def unlock(folder: Path, identity: OwnKeys, passphrase: str) -> OwnKeys:
    """The same with the root key at hand. Raises Refused: wrong passphrase, or the root key is on another machine."""
    if isinstance(identity.root, keys.KeyPair):
        return identity
    if not identity.root.is_local:
        raise Refused(
            "The root key is not on this machine, which is a further device of its owner.",
            hint="do it on the machine that has the root key",
        )
    root = keys.unseal_key(keys.read_private(folder / ROOT_FILE), passphrase)
    if root.public != identity.root.public:
        raise Refused(f"{ROOT_FILE} and {ROOT_PUBLIC_FILE} in {folder} are of different keys.")
    return replace(identity, root=root)


def protect_root(folder: Path, root: keys.KeyPair, passphrase: str | None, *, rounds: int = keys.KDF_ROUNDS) -> None:
    """Encrypt the root key's file with a passphrase, or lay it in the clear without one."""
    if passphrase is None:
        keys.replace_private(folder / ROOT_FILE, keys.plain(root))
        return
    # First the name, so that an encrypted key never lies there without one.
    keys.replace_private(folder / ROOT_PUBLIC_FILE, keys.format_public(root.public).encode())
    keys.replace_private(folder / ROOT_FILE, keys.seal_key(root, passphrase, rounds=rounds))


def back_up_root(path: Path, root: keys.KeyPair, passphrase: str, *, rounds: int = keys.KDF_ROUNDS) -> None:
    """Write an encrypted copy of the root key to ``path``. Raises Refused when something is there."""
    keys.write_private(path, keys.seal_key(root, passphrase, rounds=rounds))


def own_device(folder: Path) -> keys.KeyPair:
    """This machine's device key without any root key, made when there is none yet. Raises Refused."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        return keys.read_key(folder / DEVICE_FILE)
    except NotFound:
        device = keys.KeyPair.generate()
        keys.write_key(folder / DEVICE_FILE, device)
        return device


def adopt_root(folder: Path, root: bytes) -> OwnKeys:
    """Make this machine a device of a root key that stays elsewhere. Raises Refused when it has another."""
    if (folder / ROOT_FILE).exists():
        raise Refused(
            f"This machine has a root key of its own, {folder / ROOT_FILE}.",
            hint="move that file to a safe place first; it is never overwritten",
        )
    keys.replace_private(folder / ROOT_PUBLIC_FILE, keys.format_public(root).encode())
    return load_identity(folder)


def delegation(identity: OwnKeys, *, device: bytes | None = None, expires_ms: int | None = None) -> IdentityBody:
    """The body of the ``identity`` record, to be authored by the root key, that lets a device speak for it.

    ``device`` is another one than this machine's.
    """
    return IdentityBody(
        action="delegate",
        root=identity.root.public,
        device=device or identity.device.public,
        expires=expires_ms,
    )


def _install(folder: Path, root: keys.KeyPair, passphrase: str | None, *, rounds: int) -> OwnKeys:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in (ROOT_FILE, DEVICE_FILE, ROOT_PUBLIC_FILE):
        if (folder / file).exists():
            raise Refused(
                f"There is an identity in {folder} already.",
                hint="keys are never overwritten; a device without a root key: autoresearch node id add-device",
            )
    identity = OwnKeys(root, keys.KeyPair.generate())
    if passphrase is None:
        keys.write_key(folder / ROOT_FILE, root)
    else:
        protect_root(folder, root, passphrase, rounds=rounds)
    keys.write_key(folder / DEVICE_FILE, identity.device)
    return identity


def _load_root(folder: Path) -> keys.KeyPair | LockedKey:
    try:
        content = keys.read_private(folder / ROOT_FILE)
    except NotFound:
        if not (folder / ROOT_PUBLIC_FILE).exists():
            raise
        return LockedKey(keys.parse_public(keys.read_private(folder / ROOT_PUBLIC_FILE)), is_local=False)
    if keys.is_sealed(content):
        return LockedKey(keys.parse_public(keys.read_private(folder / ROOT_PUBLIC_FILE)), is_local=True)
    return keys.parse_key(content, folder / ROOT_FILE)


# A stolen device key speaks for its owner no longer than this, and a machine that is off for a season comes back.
DELEGATION_MS = 90 * DAY_MS
# Renewed when less than this is left.
RENEWAL_MS = 30 * DAY_MS


class DeviceState(StrEnum):
    """How a device stands with its root key."""

    ACTIVE = "active"
    WAITING = "waiting"  # delegated; the device itself has not agreed yet
    EXPIRED = "expired"
    REVOKED = "revoked"


class Device(NamedTuple):
    """One device of a participant. Times are Unix milliseconds; ``until_ms`` is None when it never expires."""

    key: bytes
    state: DeviceState
    since_ms: int
    until_ms: int | None


def devices_of(records: Iterable[Record], root: bytes, now_ms: int) -> list[Device]:
    """The devices that a root key has named, the first first, as they stand at ``now_ms``."""
    delegations: dict[bytes, list[Record]] = {}
    revoked: dict[bytes, Record] = {}
    agreed: set[bytes] = set()
    for record in sorted(records, key=lambda record: (record.seq, record.time, record.id)):
        body = record.body
        if not isinstance(body, Identity) or body.root != root:
            continue
        if body.action == "profile":
            agreed.add(record.author)
        elif record.author == root and body.device and body.action == "delegate":
            delegations.setdefault(body.device, []).append(record)
        elif record.author == root and body.device:
            revoked[body.device] = record
    return [_device(key, some, revoked.get(key), now_ms, agreed=key in agreed) for key, some in delegations.items()]


def is_due(device: Device | None, now_ms: int) -> bool:
    """Whether the root key should name the device (again). What was revoked is never renewed by itself."""
    if device is None:
        return True
    if device.state is DeviceState.REVOKED or device.until_ms is None:
        return False
    return device.until_ms - now_ms < RENEWAL_MS


def _device(key: bytes, delegations: list[Record], revoked: Record | None, now_ms: int, *, agreed: bool) -> Device:
    # By the root key's own order, as in the roster.
    standing = [
        each.body.expires for each in delegations if isinstance(each.body, Identity) and not _ends(revoked, each)
    ]
    since_ms = delegations[0].time
    if not standing:
        return Device(key, DeviceState.REVOKED, since_ms, revoked.time if revoked else None)
    until_ms = None if None in standing else max(until for until in standing if until is not None)
    if until_ms is not None and until_ms <= now_ms:
        return Device(key, DeviceState.EXPIRED, since_ms, until_ms)
    return Device(key, DeviceState.ACTIVE if agreed else DeviceState.WAITING, since_ms, until_ms)


def _ends(revoked: Record | None, delegated: Record) -> bool:
    return revoked is not None and revoked.seq > delegated.seq


def standing(device: Device | None, now_ms: int) -> str:
    """What a person must know about this device's standing, in a sentence; empty when all is well."""
    if device is None:
        return (
            "no root key speaks for this device in this network: its runs count as a stranger's"
            " → autoresearch node id renew"
        )
    if device.state is DeviceState.REVOKED:
        return "this device was revoked: what it publishes counts as a stranger's → autoresearch node id devices"
    if device.state is DeviceState.EXPIRED:
        return "this device's delegation has expired: what it publishes does not count → autoresearch node id renew"
    if device.until_ms is not None and device.until_ms - now_ms < RENEWAL_MS:
        days = (device.until_ms - now_ms) // DAY_MS
        return f"this device's delegation expires in {days} days → autoresearch node id renew"
    return ""


REQUEST = "autoresearch-device:"
ANSWER = "autoresearch-delegation:"
_KEY_BYTES = 32
_CHECK_BYTES = 3
_SIGNATURE_BYTES = 64


def write_request(device: bytes) -> str:
    """What the new machine prints: its device key and a checksum against typing errors."""
    return REQUEST + _text(device + hashlib.sha256(device).digest()[:_CHECK_BYTES])


def read_request(text: str) -> bytes:
    """The device key in a request. Raises UsageError when it is none or was mistyped."""
    content = _bytes(text, REQUEST)
    device = content[:_KEY_BYTES]
    if len(content) != _KEY_BYTES + _CHECK_BYTES or write_request(device) != text.strip():
        raise UsageError("that request is mistyped or cut off", hint="copy it again from the new machine")
    return device


def write_answer(record: Record) -> str:
    """What the machine with the root key prints: the signed delegation."""
    return ANSWER + _text(record.signature + record.raw)


def read_answer(text: str, device: bytes, network: Network, *, now_ms: int) -> Record:
    """The delegation in an answer, checked: of this network, for this device, signed by the root key that it names.

    Raises:
        UsageError: it is no answer, or was mistyped.
        Refused: it is for another device or network, or expired.
    """
    content = _bytes(text, ANSWER)
    record = admit(content[_SIGNATURE_BYTES:], content[:_SIGNATURE_BYTES], network, now_ms=now_ms)
    if isinstance(record, Refusal):
        if record.code == "network":
            raise Refused("That answer is for another network.", hint="autoresearch network join on both machines")
        raise UsageError(f"that answer can't be used: {record.sentence}", hint="copy it again from the other machine")
    body = record.body
    if not isinstance(body, Identity) or body.action != "delegate" or body.root != record.author:
        raise Refused("That record delegates no device.")
    if body.device != device:
        raise Refused(
            "That answer is for another device.", hint="autoresearch node id add-device prints this one's request"
        )
    if body.expires is not None and body.expires <= now_ms:
        raise Refused("That answer has expired.", hint="ask for a new one")
    return record


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str, beginning: str) -> bytes:
    code = text.strip().removeprefix(beginning)
    try:
        return base64.b64decode(code + "=" * (-len(code) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError("that text is mistyped or cut off", hint="copy it again") from error
