"""Blobs over real hosts: from several peers at once, resumed after a cut, and never a wrong byte."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from autoresearch_daemon.peers.blob_fetching import Fetcher, serve_part
from autoresearch_daemon.peers.blob_storage import Prefetch

from autoresearch.errors import NotFound, Refused, TimedOut
from autoresearch.log.blobs import BlobStore
from autoresearch.log.chunks import CHUNK_BYTES
from autoresearch.record.kinds import BlobRef
from tests.daemon.net.networks import Node, nodes, until

pytestmark = pytest.mark.slow

BIG = os.urandom(12 * CHUNK_BYTES + 12_345)


class Room:
    """A disk without end."""

    async def make_room(self, size: int) -> None: ...

    @contextmanager
    def hold(self, *blobs: BlobRef):
        yield


def fetcher(node: Node, store: BlobStore) -> Fetcher:
    made = Fetcher(node.network, store, Room())
    node.network._handlers = replace(node.network._handlers, on_peers=made.peers_changed)
    return made


def serve(node: Node, store: BlobStore, lies: int | None = None, gate: asyncio.Event | None = None) -> Counter[int]:
    """Let a node serve a store, from its ``lies``-th answer on with wrong bytes; returns what it was asked for."""
    requests: Counter[int] = Counter()

    async def on_blob(name: bytes, offset: int, length: int) -> bytes | None:
        if gate and requests.total() >= 5:
            await gate.wait()
        requests[offset] += 1
        data = await serve_part(store, name, offset, length)
        return bytes(len(data)) if data and lies is not None and requests.total() >= lies else data

    node.network._handlers = replace(node.network._handlers, on_blob_request=on_blob)
    return requests


async def connect(asking: Node, *others: Node) -> None:
    for other in others:
        await asking.network.dial(other.address)
    await until(lambda: all(asking.is_connected(other) for other in others))


@pytest.fixture
def theirs(tmp_path: Path):
    with BlobStore(tmp_path / "theirs") as store:
        store.put(BIG)
        yield store


@pytest.fixture
def ours(tmp_path: Path):
    with BlobStore(tmp_path / "ours") as store:
        yield store


async def test_a_large_blob_comes_from_several_peers_at_once(tmp_path, theirs, ours):
    ref = theirs.put(BIG)
    async with nodes(tmp_path, "a", "b", "c", "d") as (a, b, c, d):
        counts = [serve(node, theirs) for node in (b, c)]
        serve(d, ours)  # connected, and has nothing
        await connect(a, b, c, d)
        await fetcher(a, ours).fetch(ref, 60)
    assert ours.get(ref.sha256) == BIG
    assert ours.find(ref.sha256) == ref
    assert all(requests.total() >= 3 for requests in counts)
    assert sum(requests.total() for requests in counts) <= 16  # the manifest, 13 chunks, and hardly one of them twice


async def test_a_liar_is_shut_out_and_named_and_the_blob_comes_from_another(tmp_path, theirs, ours):
    ref = theirs.put(BIG)
    async with nodes(tmp_path, "a", "b", "c") as (a, honest, liar):
        serve(honest, theirs)
        serve(liar, theirs, lies=2)
        await connect(a, honest, liar)
        await fetcher(a, ours).fetch(ref, 60)
        assert ours.get(ref.sha256) == BIG
        await until(lambda: not a.is_connected(liar))
        await until(lambda: any("wrong bytes" in peer.shut_out for peer in a.network.peers()))
        assert [peer.peer for peer in a.network.peers() if peer.shut_out] == [liar.peer]
        assert a.is_connected(honest)


async def test_a_liar_that_is_in_no_address_book_is_named_too(tmp_path, theirs, ours):
    small = theirs.put(b"a source")
    async with nodes(tmp_path, "a", "b") as (a, liar):
        serve(liar, theirs, lies=1)
        await liar.network.dial(a.address)
        await until(lambda: a.is_connected(liar))
        with pytest.raises(NotFound, match="wrong bytes"):
            await fetcher(a, ours).fetch(small, 60)
        await until(lambda: [peer.peer for peer in a.network.peers() if peer.shut_out] == [liar.peer])


async def test_a_record_that_names_a_blob_wrongly_brings_no_honest_peer_into_disrepute(tmp_path, theirs, ours):
    big, small = theirs.put(BIG), theirs.put(b"a source")
    other = theirs.put(BIG[::-1])
    wrong = [
        BlobRef(sha256=big.sha256, size=other.size, manifest=other.manifest),
        BlobRef(sha256=big.sha256, size=big.size + 1, manifest=big.manifest),
        BlobRef(sha256=big.sha256, size=100),
        BlobRef(sha256=big.sha256, size=big.size),
        BlobRef(sha256=small.sha256, size=3),
        BlobRef(sha256=small.sha256, size=300),
        BlobRef(sha256=small.sha256, size=big.size, manifest=big.manifest),
        BlobRef(sha256=big.sha256, size=2**60, manifest=big.manifest),
    ]
    async with nodes(tmp_path, "a", "b") as (a, b):
        serve(b, theirs)
        await connect(a, b)
        fetching = fetcher(a, ours)
        for reference in wrong:
            with pytest.raises((NotFound, Refused)):
                await fetching.fetch(reference, 60)
            assert not ours.has(reference.sha256)
        for reference in (big, small, other):
            await fetching.fetch(reference, 60)
            assert ours.find(reference.sha256) == reference
        assert a.is_connected(b)
        assert not any(peer.shut_out for peer in a.network.peers())


async def test_a_cut_costs_no_chunk_that_arrived(tmp_path, theirs):
    ref = theirs.put(BIG)
    async with nodes(tmp_path, "a", "b", "c") as (a, b, c):
        requests = serve(b, theirs, gate=asyncio.Event())
        with BlobStore(tmp_path / "ours") as ours:
            await connect(a, b)
            work = asyncio.create_task(fetcher(a, ours).fetch(ref, 60))
            await until(lambda: ours.begun_bytes(ref.sha256) >= 4 * CHUNK_BYTES)
            await b.network.stop()
            with pytest.raises(NotFound, match="no peer is connected"):
                await work
        with BlobStore(tmp_path / "ours") as ours:  # as after a restart
            requests = serve(c, theirs)
            await connect(a, c)
            await fetcher(a, ours).fetch(ref, 60)
            assert ours.get(ref.sha256) == BIG
            assert requests.total() <= 13 - 4


async def test_a_peer_that_comes_while_another_is_silent_is_asked_at_once(tmp_path, theirs, ours):
    ref = theirs.put(BIG)
    gate = asyncio.Event()
    async with nodes(tmp_path, "a", "b", "c") as (a, b, c):
        requests = serve(b, theirs, gate=gate)
        serve(c, theirs)
        await connect(a, b)
        work = asyncio.create_task(fetcher(a, ours).fetch(ref, 60))
        await until(lambda: requests.total() == 5)
        await connect(a, c)
        await work
        assert ours.get(ref.sha256) == BIG
        gate.set()


async def test_more_downloads_than_a_peer_serves_at_a_time_all_come(tmp_path, theirs, ours):
    refs = [theirs.put(os.urandom(3 * CHUNK_BYTES)) for _ in range(6)]
    async with nodes(tmp_path, "a", "b") as (a, b):
        serve(b, theirs)
        await connect(a, b)
        fetching = fetcher(a, ours)
        await asyncio.gather(*(fetching.fetch(ref, 60) for ref in refs * 2))
    assert all(ours.find(ref.sha256) == ref for ref in refs)


async def test_what_does_not_come_in_time_is_said_and_goes_on_later(tmp_path, theirs, ours):
    ref = theirs.put(BIG)
    gate = asyncio.Event()
    async with nodes(tmp_path, "a", "b") as (a, b):
        requests = serve(b, theirs, gate=gate)
        await connect(a, b)
        fetching = fetcher(a, ours)
        with pytest.raises(TimedOut):
            await fetching.fetch(ref, 2)
        assert ours.begun_bytes(ref.sha256) >= 3 * CHUNK_BYTES
        gate.set()
        await fetching.fetch(ref, 60)
        assert ours.get(ref.sha256) == BIG
        assert requests[0] <= 2


async def test_what_nobody_has_is_a_sentence(tmp_path, theirs, ours):
    ref = theirs.put(BIG)
    async with nodes(tmp_path, "a", "b") as (a, b):
        with pytest.raises(NotFound, match="no peer is connected"):
            await fetcher(a, ours).fetch(ref, 60)
        serve(b, ours)
        await connect(a, b)
        with pytest.raises(NotFound, match="none of 1 connected peer has it"):
            await fetcher(a, ours).fetch(ref, 60)


async def test_small_files_of_records_come_by_themselves_also_later(tmp_path, theirs, ours):
    refs = [theirs.put(b"source %d" % number) for number in range(20)]
    large = theirs.put(BIG)
    async with nodes(tmp_path, "a", "b") as (a, b):
        serve(b, theirs)
        wishes = Prefetch(fetcher(a, ours), ours)
        keeping = asyncio.create_task(wishes.keep())
        wishes.want([*refs, large])
        await connect(a, b)
        wishes.retry()
        await until(lambda: all(ours.has(ref.sha256) for ref in refs))
        assert not ours.has(large.sha256)
        keeping.cancel()
