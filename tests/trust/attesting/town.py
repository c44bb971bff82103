"""Participants and attestors with real notebooks, ledgers and mails; in place of the network, calls in one process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.mail.service import AttestationService

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.people.attestation import confirmations
from autoresearch.ask.people.participants import AttestAnswer, AttestRequest, CodeView
from autoresearch.errors import AutoresearchError
from autoresearch.log.standing.cache import roster_of
from autoresearch.paths import Paths
from autoresearch.record.record import Network, Record
from autoresearch.settings import load_settings
from autoresearch.trust.identity import create_identity
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.trust.roster import Roster, Trust
from tests.record.making import NOW_MS
from tests.trust.attesting.postoffice import PostOffice, variables

ADDRESS = "Ada.Lovelace+notes@example.org"
MINUTE_MS = 60_000
TEA = Network(name="tea", nonce=bytes(16), tag_memory_bytes=8192, tag_passes=1)


@dataclass
class Clock:
    """A clock that stands until somebody moves it."""

    ms: int = NOW_MS

    def __call__(self) -> int:
        self.ms += 1
        return self.ms


class House:
    """One node, without a network process. ``peer`` is what the others know it by."""

    def __init__(self, town: Town, name: str, settings: dict[str, str]) -> None:
        self.peer = name
        self.paths = Paths.from_environment({"AUTORESEARCH_HOME": str(town.folder / name)})
        self.paths.create()
        self._town = town
        self._settings = settings
        self.open()

    def open(self, settings: dict[str, str] | None = None) -> None:
        """Start, or start again, with other settings besides."""
        self._settings |= settings or {}
        self.notebook = Notebook(self.paths)
        self.notebook.publish_identity(self._town.clock())
        self.local = LocalState(self.paths.local)
        settings = load_settings(self.paths.settings, self._settings)[0]
        self.attestation_service = AttestationService(
            self.notebook, self.local, self.paths, settings, os.environ, now_ms=self._town.clock
        )
        self.attestation_service.connect(self)

    def close(self) -> None:
        """Stop."""
        self.attestation_service.close()
        self.local.close()
        self.notebook.close()

    @property
    def root(self) -> KeyPair:
        assert isinstance(self.notebook.identity.root, KeyPair)
        return self.notebook.identity.root

    def roster(self) -> Roster:
        return roster_of(self.notebook.log)

    def is_attested(self) -> bool:
        return self.roster().voter(self.notebook.author, self._town.clock()).attested

    def awaited(self) -> list[CodeView]:
        return self.attestation_service.standing().awaited

    async def ask(self, address: str) -> AttestAnswer:
        return await self.attestation_service.ask(AttestRequest(address=address))

    async def confirm(self, text: str, root: KeyPair | None = None) -> AttestAnswer:
        """Confirm all codes in a text; fails when there is none that is awaited."""
        signed = confirmations(text, self.awaited(), root or self.root, self.notebook.author, TEA.id)
        assert signed
        for confirmation in signed:
            answer = await self.attestation_service.confirm(confirmation)
        return answer

    # --- what a desk needs of the network ---

    def me(self) -> str:
        return self.peer

    def connected(self) -> list[str]:
        return [peer for peer in self._town.houses if peer != self.peer]

    async def ask_attestor(self, peer: str, data: bytes) -> bytes:
        reply = await self._town.houses[peer].attestation_service.reply(self.peer, data)
        if reply is None:
            raise AutoresearchError("that peer is no attestor")
        return reply

    async def synchronise(self, peer: str) -> None:
        other = self._town.houses[peer]
        other.hear(pairs(self.notebook))
        self.hear(pairs(other.notebook))

    async def take_in(self, records: Sequence[tuple[bytes, bytes]], peer: str) -> None:
        self.hear(records)

    def hear(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        self.notebook.log.writer.ingest(records, now_ms=self._town.clock())


@dataclass
class Town:
    """All houses by name."""

    folder: Path
    clock: Clock
    office: PostOffice
    houses: dict[str, House]
    manifest: NetworkManifest

    def add(self, name: str, *, share: bool = True) -> House:
        """One more participant, who knows what all know, and all of whom."""
        save_manifest(self._paths(name).manifest, self.manifest)
        house = self.houses[name] = House(self, name, {})
        if share:
            self.share()
        return house

    def share(self) -> None:
        """Everybody gets every record."""
        everything = [pair for house in self.houses.values() for pair in pairs(house.notebook)]
        for house in self.houses.values():
            house.hear(everything)

    def written(self) -> bytes:
        """All that any node has on its disk, write-ahead logs included."""
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())

    def _paths(self, name: str) -> Paths:
        return Paths.from_environment({"AUTORESEARCH_HOME": str(self.folder / name)})


def pairs(notebook: Notebook) -> list[tuple[bytes, bytes]]:
    kinds = ("identity", "attestation", "withdrawal")
    records: list[Record] = [record for kind in kinds for record in notebook.log.records.newest(kind=kind, limit=1000)]
    return [(record.raw, record.signature) for record in reversed(records)]


@contextmanager
def town(
    folder: Path,
    office: PostOffice,
    *,
    attestors: int = 3,
    change: Callable[[Network], Network] | None = None,
    **settings: str,
) -> Iterator[Town]:
    """So many attestors, two of which are needed, and one participant, “ada”."""
    made = Town(folder / "town", Clock(), office, {}, NetworkManifest(TEA))
    names = [f"attestor-{number}" for number in range(attestors)]
    roots = []
    for name in names:
        made._paths(name).create()
        roots.append(create_identity(made._paths(name).keys).root.public)
    made.manifest = NetworkManifest(change(TEA) if change else TEA, Trust(frozenset(roots), 2))
    chosen = variables(settings)
    with ExitStack() as opened:
        for name in names:
            save_manifest(made._paths(name).manifest, made.manifest)
            made.houses[name] = House(made, name, office.settings(folder / "password") | chosen)
        made.add("ada")
        opened.callback(lambda: [house.close() for house in made.houses.values()])
        yield made


def texts(place: Town, address: str = ADDRESS) -> list[str]:
    """The mails to an address, the oldest first."""
    return place.office.text_to(address)


async def become_attested(place: Town, house: House, address: str = ADDRESS) -> None:
    """Ask for codes and give them back, as somebody with the mailbox does."""
    await house.ask(address)
    for text in texts(place, address)[-2:]:
        await house.confirm(text)
