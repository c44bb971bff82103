"""The devices of one participant, and when a delegation is due for renewal. Pure: identity records in, rows out."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from autoresearch.records import DAY_MS, Identity, Record

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
    given: dict[bytes, list[tuple[int, int | None]]] = {}
    revoked: dict[bytes, int] = {}
    agreed: set[bytes] = set()
    for record in sorted(records, key=lambda record: (record.time, record.id)):
        body = record.body
        if not isinstance(body, Identity) or body.root != root:
            continue
        if body.action == "profile":
            agreed.add(record.author)
        elif record.author == root and body.device and body.action == "delegate":
            given.setdefault(body.device, []).append((record.time, body.expires))
        elif record.author == root and body.device:
            revoked[body.device] = record.time
    return [_device(key, times, revoked.get(key), now_ms, agreed=key in agreed) for key, times in given.items()]


def is_due(device: Device | None, now_ms: int) -> bool:
    """Whether the root key should name the device (again). What was revoked is never renewed by itself."""
    if device is None:
        return True
    if device.state is DeviceState.REVOKED or device.until_ms is None:
        return False
    return device.until_ms - now_ms < RENEWAL_MS


def _device(
    key: bytes,
    given: list[tuple[int, int | None]],
    revoked_ms: int | None,
    now_ms: int,
    *,
    agreed: bool,
) -> Device:
    # Delegations at the very time of a revocation end with it, as in the roster.
    standing = [until for since, until in given if revoked_ms is None or since > revoked_ms]
    since_ms = given[0][0]
    if not standing:
        return Device(key, DeviceState.REVOKED, since_ms, revoked_ms)
    until_ms = None if None in standing else max(until for until in standing if until is not None)
    if until_ms is not None and until_ms <= now_ms:
        return Device(key, DeviceState.EXPIRED, since_ms, until_ms)
    return Device(key, DeviceState.ACTIVE if agreed else DeviceState.WAITING, since_ms, until_ms)


def standing(device: Device | None, now_ms: int) -> str:
    """What a person must know about this device's standing, in a sentence; empty when all is well."""
    if device is None:
        return (
            "no root key speaks for this device in this network: its runs count as a stranger's → autoresearch id renew"
        )
    if device.state is DeviceState.REVOKED:
        return "this device was revoked: what it publishes counts as a stranger's → autoresearch id devices"
    if device.state is DeviceState.EXPIRED:
        return "this device's delegation has expired: what it publishes does not count → autoresearch id renew"
    if device.until_ms is not None and device.until_ms - now_ms < RENEWAL_MS:
        days = (device.until_ms - now_ms) // DAY_MS
        return f"this device's delegation expires in {days} days → autoresearch id renew"
    return ""
