"""A measurement is committed to at once, told when enough others committed, and never lost on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from autoresearch_daemon.local_state import LocalState, Unrevealed
from autoresearch_daemon.verification.reveals import Reveals

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.errors import Refused
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question
from autoresearch.judging.states import EVALUATE
from autoresearch.log.log import Log
from autoresearch.log.standing.verification import counted_reports
from autoresearch.paths import Paths
from autoresearch.record.kinds import Identity, Verification
from autoresearch.record.record import Network, Record
from autoresearch.trust.identity import create_identity
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.trust.roster import Trust
from tests.record.making import NOW_MS, commitment, key, run_body, sealed, task_body

NETWORK = Network(name="friends", nonce=bytes(16))
AUTHOR, *OTHERS = (key(number) for number in range(1, 5))
LATER_MS = NOW_MS + 60_000
Result = TypeVar("Result")


class Here:
    """What takes long about a log is done at once."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def run(self, work: Callable[[Log], Result]) -> Result:
        return work(self._log)


class Place:
    """A node of a network of five, and a run of somebody else in its log."""

    def __init__(self, home: Path) -> None:
        self.paths = Paths.from_environment({"AUTORESEARCH_HOME": str(home)})
        self.paths.create()
        own = create_identity(self.paths.keys).root.public
        roots = [key(100 + number) for number in range(4)]
        trust = Trust(participants=frozenset({own, *(root.public for root in roots)}))
        save_manifest(self.paths.manifest, NetworkManifest(NETWORK, trust=trust))
        self.notebook = Notebook(self.paths)
        self.notebook.publish_identity(NOW_MS - 1000)
        for device, root in zip([AUTHOR, *OTHERS], roots, strict=True):
            self.comes(root, Identity(action="delegate", root=root.public, device=device.public), "identity")
            self.comes(device, Identity(action="profile", root=root.public), "identity")
        self.comes(AUTHOR, task_body(), "task", seq=2)
        self.run = self.comes(AUTHOR, run_body(1.2), "run", seq=3)
        self.local = LocalState(self.paths.local)
        self.thread = Here(self.notebook.log)

    def comes(self, author: KeyPair, body: object, kind: str, *, seq: int = 1, links: tuple[bytes, ...] = ()) -> Record:
        record = sealed(author, body, kind=kind, seq=seq, links=links, network=NETWORK)
        self.notebook.log.writer.ingest([(record.raw, record.signature)], now_ms=LATER_MS)
        return record

    def measured(self, who: KeyPair) -> Verification:
        proof = ecvrf.prove(bytes(who.key), question(self.run.id, EVALUATE, 0))
        return Verification(run=self.run.id, stage=EVALUATE, verdict="pass", value=1.2, proof=proof)

    def another_commits(self, who: KeyPair) -> Record:
        return self.comes(who, commitment(who, self.measured(who)), "commitment", seq=2)

    def own(self, kind: str) -> list[Record]:
        return self.notebook.log.records.newest(kind=kind, author=self.notebook.author)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.local.close()
    made.notebook.close()


def test_it_tells_when_a_quorum_committed_and_links_whom_it_waited_for(place: Place) -> None:
    reveals = Reveals(place.notebook, place.local)
    reveals.add("check-1", place.measured(place.notebook.identity.device))
    published, error = reveals.work(LATER_MS)
    assert ([t.revealed for t in published], error) == ([False], None)
    first = place.another_commits(OTHERS[0])
    assert reveals.work(LATER_MS + 1) == ([], None)
    second = place.another_commits(OTHERS[1])
    published, error = reveals.work(LATER_MS + 2)
    assert ([t.revealed for t in published], error) == ([True], None)
    own = place.own("commitment")[0]
    assert set(published[0].record.links) == {place.run.id, own.id, first.id, second.id}
    assert [record.id for record, _ in counted_reports(place.notebook.log, place.run)] == [published[0].record.id]
    assert place.local.unrevealed() == []


def test_it_does_not_vouch_for_who_committed_after_a_reveal(place: Place) -> None:
    early = place.another_commits(OTHERS[0])
    place.comes(OTHERS[0], place.measured(OTHERS[0]), "verification", seq=3, links=(place.run.id, early.id))
    late = place.another_commits(OTHERS[1])
    reveals = Reveals(place.notebook, place.local)
    reveals.add("check-1", place.measured(place.notebook.identity.device))
    published, _ = reveals.work(LATER_MS)
    assert published[-1].revealed
    assert early.id in published[-1].record.links
    assert late.id not in published[-1].record.links


def test_what_a_stranger_says_keeps_nobody_from_being_vouched_for(place: Place) -> None:
    stranger = key(60)
    place.comes(stranger, place.measured(stranger), "verification", links=(place.run.id,))
    reveals = Reveals(place.notebook, place.local)
    reveals.add("check-1", place.measured(place.notebook.identity.device))
    reveals.work(LATER_MS)
    others = [place.another_commits(who) for who in OTHERS[:2]]
    published, _ = reveals.work(LATER_MS + 1)
    assert {record.id for record in others} <= set(published[0].record.links)


def test_what_was_measured_outlives_the_daemon_and_is_told_once(place: Place) -> None:
    reveals = Reveals(place.notebook, place.local)
    reveals.add("check-1", place.measured(place.notebook.identity.device))
    unrevealed = place.local.unrevealed()
    patience_ms = NETWORK.verify_patience_ms
    # Killed before it committed, after it committed, and after it told but before it noted that.
    for now_ms, counts in ((LATER_MS, (1, 0)), (LATER_MS + 1, (1, 0)), (LATER_MS + patience_ms, (1, 1))):
        Reveals(place.notebook, LocalState(place.paths.local)).work(now_ms)
        assert (len(place.own("commitment")), len(place.own("verification"))) == counts
    place.local.keep_unrevealed(unrevealed[0])
    again = Reveals(place.notebook, LocalState(place.paths.local))
    assert again.work(LATER_MS + 2 * patience_ms) == ([], None)
    assert len(place.own("verification")) == 1
    assert place.local.unrevealed() == []


def test_what_cannot_be_recorded_waits(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    reveals = Reveals(place.notebook, place.local)
    reveals.add("check-1", place.measured(place.notebook.identity.device))

    def full(*_: object, **__: object) -> Record:
        raise Refused("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(place.notebook.log.writer, "append", full)
        published, error = reveals.work(LATER_MS)
        assert published == []
        assert isinstance(error, Refused)
    assert isinstance(place.local.unrevealed()[0], Unrevealed)
    published, error = reveals.work(LATER_MS + 1)
    assert ([t.revealed for t in published], error) == ([False], None)


def test_a_stranger_has_nothing_to_wait_for(tmp_path: Path) -> None:
    place = Place(tmp_path)
    save_manifest(place.paths.manifest, NetworkManifest(NETWORK, trust=Trust()))
    place.notebook.close()
    place.notebook = Notebook(place.paths)
    reveals = Reveals(place.notebook, place.local)
    reveals.add("check-1", place.measured(place.notebook.identity.device))
    published, _ = reveals.work(LATER_MS)
    assert [t.revealed for t in published] == [True]


def test_what_was_measured_before_is_told_once(place: Place) -> None:
    reveals = Reveals(place.notebook, place.local)
    measured = place.measured(place.notebook.identity.device)
    reveals.add("check-1", measured)
    reveals.add("check-2", measured)
    assert len(reveals.waiting()) == 1
    reveals.work(LATER_MS)
    reveals.work(LATER_MS + NETWORK.verify_patience_ms)
    reveals.add("check-3", measured)
    assert reveals.waiting() == []
    assert (len(place.own("commitment")), len(place.own("verification"))) == (1, 1)
