"""Nodes that listen on nothing, as behind a router: whatever they exchange goes over connections that they made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autoresearch.log.blobs import BlobStore
from autoresearch.record.kinds import Run
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.daemon.net.test_daemons import address_of, ids, peers_of, work
from tests.daemon.toy import write_toy_task

pytestmark = pytest.mark.slow

Begin = Callable[..., Daemon]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts a daemon that listens on loopback, or on nothing and calls the one that it is given."""
    made: list[Daemon] = []

    def start(public: Daemon | None = None, *, relay: bool = False) -> Daemon:
        settings = {
            "ENABLED": "true",
            "LAN": "false",
            "LISTEN": "" if public else "/ip4/127.0.0.1/tcp/0",
            "EXCHANGE_SECONDS": "5",
            "BOOTSTRAP": address_of(public) if public else "",
            "USE_RELAY": str(relay).lower(),
        }
        names = {f"AUTORESEARCH_NETWORK_{name}": value for name, value in settings.items()}
        made.append(Daemon(tmp_path / f"home{len(made)}", names).start())
        wait_for(lambda: bool(peers_of(made[-1]).addresses) or public is not None)
        return made[-1]

    yield start
    stop_all(made)


def has_sources_of(daemon: Daemon, runs: list[Run]) -> bool:
    with BlobStore(daemon.paths.blobs, read_only=True) as blobs:
        return all(blobs.has(run.source.sha256) for run in runs)


def test_two_that_nobody_can_call_exchange_records_and_sources_through_a_third(begin: Begin, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    public = begin()
    first, second = begin(public), begin(public)
    wait_for(lambda: peers_of(public).network.connected == 2)
    work(first, task, 3)
    work(second, task, 3)

    wait_for(lambda: ids(first) == ids(second) == ids(public))
    runs = first.runs()
    assert len({run.source_digest for run in runs}) == len(runs) == 6
    for daemon in (public, first, second):
        wait_for(lambda daemon=daemon: has_sources_of(daemon, runs))
    for daemon in (first, second):
        assert peers_of(daemon).addresses == []
        assert [peer.peer for peer in peers_of(daemon).peers if peer.connected] == [peers_of(public).peer]


def test_what_only_a_node_that_nobody_can_call_has_is_fetched_through_a_relay(begin: Begin, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    public = begin()
    provider = begin(public, relay=True)
    work(provider, task, 2)
    runs = provider.runs()
    wait_for(lambda: has_sources_of(public, runs))
    with BlobStore(public.paths.blobs) as blobs:  # now the third one has them no more: only `provider` has
        sources = {run.source.sha256 for run in runs}
        blobs.delete([blob for blob in blobs.stored() if blob.sha256 in sources])

    other = begin(public, relay=True)
    wait_for(lambda: any("/p2p-circuit" in peer.address for peer in peers_of(other).peers if peer.connected))
    wait_for(lambda: has_sources_of(other, runs))
