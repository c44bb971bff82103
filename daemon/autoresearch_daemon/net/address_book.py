"""The address book: which peers were heard of, when to dial them again. Pure; the file is at the bottom."""

from __future__ import annotations

import os
import random
from pathlib import Path

import msgspec

CONTACTS_MAX = 1000
ADDRESSES_MAX = 8
RETRY_SECONDS_MAX = 600.0
RETRY_SECONDS_MAX_WANTED = 60.0
EXCHANGED_MAX = 32


class Contact(msgspec.Struct, kw_only=True):
    """One peer. ``wanted``: a person or the network's manifest named it, so it is always kept connected.

    ``device_key``: the device that it last proved to have.
    """

    peer: str
    addresses: list[str] = msgspec.field(default_factory=list)
    wanted: bool = False
    seen_ms: int = 0
    failures: int = 0
    next_ms: int = 0
    device_key: bytes = b""


class AddressBook(msgspec.Struct, kw_only=True):
    """All contacts by peer id, the blocked ones, and the port that was listened on last."""

    contacts: dict[str, Contact] = msgspec.field(default_factory=dict)
    blocked: set[str] = msgspec.field(default_factory=set)
    port: int = 0

    def learn(self, peer: str, addresses: list[str], *, wanted: bool = False) -> Contact:
        """Remember addresses of a peer. New ones come first, because peers move; the oldest are forgotten."""
        contact = self.contacts.setdefault(peer, Contact(peer=peer))
        fresh = [address for address in dict.fromkeys(addresses) if address not in contact.addresses]
        if fresh:
            contact.addresses = (fresh + contact.addresses)[:ADDRESSES_MAX]
            contact.failures, contact.next_ms = 0, 0
        contact.wanted |= wanted
        self._forget_surplus()
        return contact

    def connected(self, peer: str, now_ms: int, address: str | None = None) -> None:
        """A connection stands; the address that worked is tried first from now on."""
        contact = self.contacts.setdefault(peer, Contact(peer=peer))
        contact.seen_ms, contact.failures, contact.next_ms = now_ms, 0, 0
        if address:
            others = [other for other in contact.addresses if other != address]
            contact.addresses = [address, *others][:ADDRESSES_MAX]
        self._forget_surplus()

    def proved(self, peer: str, device_key: bytes) -> None:
        """A peer has shown which device it has. One that says nothing takes nothing back that it proved before."""
        if device_key and (contact := self.contacts.get(peer)):
            contact.device_key = device_key

    def failed(self, peer: str, now_ms: int, retry_seconds: float, dice: random.Random) -> None:
        """No address of the peer answered: wait twice as long as the last time, give or take a half."""
        if (contact := self.contacts.get(peer)) is None:
            return
        most = RETRY_SECONDS_MAX_WANTED if contact.wanted else RETRY_SECONDS_MAX
        seconds = min(most, retry_seconds * 2 ** min(contact.failures, 16))
        contact.failures += 1
        contact.next_ms = now_ms + int(seconds * 1000 * dice.uniform(0.5, 1.5))

    def due(self, now_ms: int, leave_out: set[str], places: int) -> list[Contact]:
        """Whom to dial now: wanted ones always, of the others as many as there are free ``places``."""
        able = [
            contact
            for contact in self.contacts.values()
            if contact.peer not in leave_out and contact.addresses and contact.next_ms <= now_ms
        ]
        able.sort(key=lambda contact: (contact.failures, -contact.seen_ms))
        wanted = [contact for contact in able if contact.wanted]
        others = [contact for contact in able if not contact.wanted]
        return wanted + others[: max(0, places)]

    def shareable(self, asker: str, connected: set[str]) -> list[str]:
        """Addresses for a peer that asks whom we know: of peers that are connected, or were and may be again."""
        known = sorted(
            (c for c in self.contacts.values() if c.seen_ms and c.peer != asker and c.peer not in self.blocked),
            key=lambda contact: (contact.peer not in connected, -contact.seen_ms),
        )
        found = [f"{address}/p2p/{contact.peer}" for contact in known for address in contact.addresses[:2]]
        return found[:EXCHANGED_MAX]

    def _forget_surplus(self) -> None:
        while len(self.contacts) > CONTACTS_MAX:
            victims = [contact for contact in self.contacts.values() if not contact.wanted]
            if not victims:
                return
            del self.contacts[min(victims, key=lambda contact: (contact.seen_ms, -contact.failures)).peer]


def load_book(path: Path) -> AddressBook:
    """The kept book, its peers due at once; an empty one when there is none or the file is damaged."""
    try:
        book = msgspec.json.decode(path.read_bytes(), type=AddressBook)
    except (OSError, msgspec.DecodeError):
        return AddressBook()
    for contact in book.contacts.values():
        contact.failures, contact.next_ms = 0, 0
    return book


def write_book(path: Path, text: bytes) -> None:
    """Write the encoded book; a crash leaves the old or the new one. Raises OSError."""
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
    temporary.replace(path)
