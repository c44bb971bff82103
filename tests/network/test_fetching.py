"""Blobs over real hosts: from several peers at once, resumed after a cut, and never a wrong byte."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from autoresearch_daemon.fetching import Fetcher

from autoresearch.errors import NotFound
from autoresearch.log import CHUNK_BYTES, BlobStore
from tests.network.networks import Node, nodes, until

pytestmark = pytest.mark.slow

BIG = os.urandom(12 * CHUNK_BYTES + 12_345)


def serve(node: Node, store: BlobStore) -> dict[str, int]:
    """Let a node serve a store; returns the count of what it was asked for."""
    asked = {"count": 0}

    async def on_blob(digest: bytes, offset: int, length: int) -> bytes | None:
        asked["count"] += 1
        try:
            return store.part(digest, offset, length)
        except NotFound:
            return None

    node.network._handlers = type(node.network._handlers)(
        on_record=node.on_record, on_sync=node.on_sync, on_blob_request=on_blob
    )
    return asked


async def connect(asking: Node, *others: Node) -> None:
    for other in others:
        await asking.network.dial(other.address)
    await until(lambda: all(asking.is_connected(other) for other in others))


def test_a_large_blob_comes_from_several_peers_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        with BlobStore(tmp_path / "theirs") as theirs, BlobStore(tmp_path / "ours") as ours:
            ref = theirs.put(BIG)
            async with nodes(tmp_path, "a", "b", "c", "d") as (a, b, c, d):
                counts = [serve(node, theirs) for node in (b, c)]
                serve(d, ours)  # connected, and has nothing
                await connect(a, b, c, d)
                await Fetcher(a.network, ours).fetch(ref, 60)
            assert ours.get(ref.sha256) == BIG
            assert ours.find(ref.sha256) == ref
            assert all(count["count"] >= 4 for count in counts)

    asyncio.run(scene())


def test_a_liar_is_shut_out_and_named_and_the_blob_comes_from_another(tmp_path: Path) -> None:
    async def scene() -> None:
        with BlobStore(tmp_path / "theirs") as theirs, BlobStore(tmp_path / "ours") as ours:
            ref = theirs.put(BIG)
            async with nodes(tmp_path, "a", "b", "c") as (a, honest, liar):
                serve(honest, theirs)
                liar.blobs = {ref.sha256: bytes(len(BIG)), ref.manifest: theirs.get(ref.manifest)}
                await connect(a, honest, liar)
                await Fetcher(a.network, ours).fetch(ref, 60)
                assert ours.get(ref.sha256) == BIG
                await until(lambda: not a.is_connected(liar))
                await until(lambda: any("other bytes" in peer.shut_out for peer in a.network.peers()))
                named = next(peer for peer in a.network.peers() if peer.shut_out)
                assert named.peer == liar.peer
                assert a.is_connected(honest)

    asyncio.run(scene())


def test_a_cut_costs_no_chunk_that_arrived(tmp_path: Path) -> None:
    async def scene() -> None:
        with BlobStore(tmp_path / "theirs") as theirs:
            ref = theirs.put(BIG)
            async with nodes(tmp_path, "a", "b", "c") as (a, b, c):
                counts = serve(b, theirs)
                with BlobStore(tmp_path / "ours") as ours:
                    await connect(a, b)
                    fetcher = Fetcher(a.network, ours)
                    work = asyncio.create_task(fetcher.fetch(ref, 60))
                    folder = ours.root / "partial" / ref.sha256.hex()
                    await until(lambda: folder.exists() and len(list(folder.glob("[0-9]*"))) >= 5)
                    await b.network.stop()
                    with pytest.raises(NotFound, match="no connected peer"):
                        await work
                    arrived = len([path for path in folder.iterdir() if path.suffix != ".new"])
                with BlobStore(tmp_path / "ours") as ours:  # as after a restart
                    counts = serve(c, theirs)
                    await connect(a, c)
                    await Fetcher(a.network, ours).fetch(ref, 60)
                    assert ours.get(ref.sha256) == BIG
                    assert counts["count"] <= 13 - arrived

    asyncio.run(scene())


def test_what_nobody_has_is_a_sentence(tmp_path: Path) -> None:
    async def scene() -> None:
        with BlobStore(tmp_path / "theirs") as theirs, BlobStore(tmp_path / "ours") as ours:
            ref = theirs.put(BIG)
            async with nodes(tmp_path, "a", "b") as (a, b):
                await connect(a, b)
                with pytest.raises(NotFound, match="no connected peer has the blob"):
                    await Fetcher(a.network, ours).fetch(ref, 60)

    asyncio.run(scene())
