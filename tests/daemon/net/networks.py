"""Networks with real child processes, as a daemon has them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from autoresearch_daemon.children import ChildLimits
from autoresearch_daemon.net.host.streams import first_frame, frame
from autoresearch_daemon.net.model import FRAME_BYTES_MAX, HostOptions
from autoresearch_daemon.net.network import Handlers, NetworkClient, SyncStream

from tests.record.making import NETWORK

# Many times what anything here takes alone: the machine may do twenty other things.
BUSY_SECONDS = 300.0
QUICK = ChildLimits(look_seconds=0.1, restart_seconds=0.1, silence_seconds=5.0)


class Node:
    """A network and what it was told. Sync streams are answered with the reversed data."""

    def __init__(
        self,
        folder: Path,
        limits: ChildLimits = QUICK,
        command: tuple[str, ...] = (),
        introduce: Callable[[str], bytes] | None = None,
        **options: Any,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "network": NETWORK,
            "listen": ("/ip4/127.0.0.1/tcp/0",),
            "lan": False,
            "retry_seconds": 0.1,
        } | options
        self.records: list[tuple[bytes, bytes, str]] = []
        self.blobs: dict[bytes, bytes] = {}
        self.taking = asyncio.Event()
        self.taking.set()
        self.network = NetworkClient(
            HostOptions(folder=str(folder), **settings),
            Handlers(on_record=self.on_record, on_sync=self.on_sync, on_blob_request=self.on_blob, introduce=introduce),
            limits=limits,
            **({"command": command} if command else {}),
        )

    async def on_record(self, raw: bytes, signature: bytes, peer: str) -> None:
        await self.taking.wait()
        self.records.append((raw, signature, peer))

    async def on_sync(self, stream: SyncStream) -> None:
        while (received := await stream.receive()) is not None:
            data = received[first_frame(bytearray(received), FRAME_BYTES_MAX)[0] :]
            if data == b"raise":
                raise RuntimeError("a handler's mistake")
            await stream.send(frame(data[::-1]))

    async def on_blob(self, digest: bytes, offset: int, length: int) -> bytes | None:
        data = self.blobs.get(digest)
        return None if data is None else data[offset : offset + length]

    @property
    def peer(self) -> str:
        return self.network.info().peer

    @property
    def address(self) -> str:
        return self.network.info().addresses[0]

    def is_connected(self, other: Node) -> bool:
        return any(peer.peer == other.peer and peer.connected for peer in self.network.peers())


@asynccontextmanager
async def nodes(folder: Path, *names: str, limits: ChildLimits = QUICK, **options: Any) -> AsyncIterator[list[Node]]:
    made = [Node(folder / name, limits, **options) for name in names]
    try:
        for node in made:
            node.network.start()
        for node in made:
            async with asyncio.timeout(BUSY_SECONDS):
                await node.network.ready()
        yield made
    finally:
        for node in made:
            await node.network.stop()


async def until(condition: Callable[[], object], seconds: float = BUSY_SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - waits for whatever the condition looks at
            await asyncio.sleep(0.02)


async def echo(node: Node, other: Node) -> None:
    async with asyncio.timeout(BUSY_SECONDS), await node.network.open_sync(other.peer) as stream:
        await stream.send(frame(b"abc"))
        assert await stream.receive() == frame(b"cba")
