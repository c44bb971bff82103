"""A founder's daemon admits who joins with an invite of its machine, within the invite's bounds; others follow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from autoresearch_daemon.events import Events, now_ms
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.log_thread import LogThread
from autoresearch_daemon.peers.trust_watch import AdmissionWatch

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.log.standing.cache import roster_of
from autoresearch.paths import Paths
from autoresearch.record.record import DAY_MS, Network
from autoresearch.trust.identity import create_identity
from autoresearch.trust.invite import Invitations, join_with
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.trust.roster import Trust

NETWORK = Network(name="lab", nonce=bytes(16))


@dataclass
class Machine:
    """A node without its network: what it publishes is carried by :meth:`hear`."""

    notebook: Notebook
    thread: LogThread
    invitations: Invitations
    events: Events
    manifest: Path
    changes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """What a start of the daemon does."""
        self.admitting = AdmissionWatch(
            self.notebook, self.thread, self.events, self.manifest, changed=lambda: self.changes.append(1)
        )

    @property
    def root(self) -> bytes:
        return self.notebook.identity.root.public

    def counts(self, other: Machine) -> bool:
        return other.root in roster_of(self.notebook.log).participants

    async def hear(self, *others: Machine) -> None:
        """All records of these come in."""
        for other in others:
            records = other.notebook.log.records.newest(limit=1000)
            verdicts = self.notebook.log.writer.ingest(
                [(record.raw, record.signature) for record in records], now_ms=now_ms()
            )
            if self.admitting.note([verdict.record for verdict in verdicts if verdict.record]):
                await self.admitting.look()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    """A founder and two others in its network."""
    with ExitStack() as stack:
        homes = [
            Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / name)}) for name in ("one", "two", "three")
        ]
        roots = [(paths.create(), create_identity(paths.keys).root.public)[1] for paths in homes]
        yield [_machine(stack, paths, roots[0]) for paths in homes]


def _machine(stack: ExitStack, paths: Paths, founder: bytes) -> Machine:
    save_manifest(paths.manifest, NetworkManifest(NETWORK, Trust(founders=frozenset({founder}))))
    notebook = stack.enter_context(Notebook(paths))
    notebook.publish_identity(now_ms())
    local = LocalState(paths.local)
    stack.callback(local.close)
    thread = LogThread(notebook.log)
    stack.callback(thread.close)
    return Machine(notebook, thread, Invitations(paths.manifest, NETWORK), Events(local), paths.manifest)


def joins(machine: Machine, seed: bytes) -> None:
    """What ``network join INVITE`` leaves for the daemon."""
    machine.invitations.keep_join(join_with(seed, NETWORK.id, machine.root))


async def test_who_joins_is_admitted_at_once_and_everybody_follows(machines: list[Machine]) -> None:
    founder, ann, ben = machines
    _, seed = founder.invitations.make(now_ms(), uses=1, days=7)
    joins(ann, seed)
    await ann.admitting.look()
    await ann.admitting.look()
    assert ann.notebook.log.records.count("join") == 1
    await founder.hear(ann)
    assert founder.counts(ann)
    await ann.hear(founder)
    await ben.hear(founder, ann)
    assert ann.counts(ann)
    assert ben.counts(ann)
    assert [len(machine.changes) for machine in machines] == [1, 1, 1]
    assert [event.kind for event in ben.events.since(0)] == ["trust"]
    joins(ben, seed)
    await ben.admitting.look()
    await founder.hear(ben)
    assert not founder.counts(ben), "the invite was for one"


async def test_the_token_of_another_machine_is_nothing_to_this_one(machines: list[Machine]) -> None:
    founder, ann, ben = machines
    _, seed = ben.invitations.make(now_ms(), uses=1, days=7)
    joins(ann, seed)
    await ann.admitting.look()
    await founder.hear(ann)
    await ben.hear(ann)
    assert not founder.counts(ann)
    assert ben.notebook.log.records.count("admission") == 0


@pytest.mark.parametrize("why", ["expired", "ended"])
async def test_an_invite_that_is_over_admits_nobody(machines: list[Machine], why: str) -> None:
    founder, ann, _ = machines
    made, seed = founder.invitations.make(now_ms() - (2 * DAY_MS if why == "expired" else 0), uses=1, days=1)
    if why == "ended":
        founder.invitations.revoke(made)
    joins(ann, seed)
    await ann.admitting.look()
    await founder.hear(ann)
    assert not founder.counts(ann)


async def test_a_join_that_came_while_the_founder_slept_is_seen_at_its_start(machines: list[Machine]) -> None:
    founder, ann, _ = machines
    _, seed = founder.invitations.make(now_ms(), uses=1, days=7)
    joins(ann, seed)
    await ann.admitting.look()
    records = ann.notebook.log.records.newest()
    founder.notebook.log.writer.ingest([(record.raw, record.signature) for record in records], now_ms=now_ms())
    founder.start()
    await founder.admitting.look()
    assert founder.counts(ann)


async def test_who_is_dismissed_stays_so_also_after_a_restart(machines: list[Machine]) -> None:
    founder, ann, _ = machines
    _, seed = founder.invitations.make(now_ms(), uses=5, days=7)
    joins(ann, seed)
    await ann.admitting.look()
    await founder.hear(ann)
    founder.notebook.publish_admission(ann.root, now_ms(), admits=False)
    founder.start()
    await founder.admitting.look()
    await founder.hear(ann)
    assert not founder.counts(ann)
    await ann.hear(founder)
    assert not ann.counts(ann)


async def test_a_damaged_file_is_a_warning_and_nothing_ends(machines: list[Machine]) -> None:
    founder, ann, _ = machines
    made, seed = founder.invitations.make(now_ms(), uses=1, days=7)
    file = founder.manifest.parent / "invites" / f"{made.token.hex()}.json"
    content = file.read_text()
    file.write_text("{")
    joins(ann, seed)
    await ann.admitting.look()
    await founder.hear(ann)
    assert "is damaged" in founder.admitting.problem
    file.unlink()
    file.write_text(content)
    await founder.admitting.look()
    assert founder.counts(ann)
    assert founder.admitting.problem == ""
