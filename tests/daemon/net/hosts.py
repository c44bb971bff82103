"""Real libp2p hosts on loopback, inside one trio loop: what the tests of guards and host stand on."""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from autoresearch_daemon.net.host.host import Host
from autoresearch_daemon.net.host.streams import FrameStream
from autoresearch_daemon.net.model import HostOptions
from libp2p import new_host
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.peer.id import ID
from libp2p.peer.peerinfo import info_from_p2p_addr
from multiaddr import Multiaddr

from tests.record.making import NETWORK, key, run_body, sealed

LOOPBACK = "/ip4/127.0.0.1/tcp/0"
TEST_SECONDS = 180


def in_trio(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test in trio, within three minutes."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        async def bounded() -> None:
            with trio.fail_after(TEST_SECONDS):
                await test(**fixtures)

        trio.run(bounded)

    return run


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def record(number=1, *, author=1, network=NETWORK, time_ms=None):
    return sealed(key(author), run_body(float(number)), seq=number, time_ms=time_ms or now_ms(), network=network)


class RecordingHandlers:
    """Handlers that note what they are given; ``blob`` and ``sync`` may be replaced."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes, str]] = []
        self.blobs: dict[bytes, bytes] = {}
        self.syncs: list[str] = []
        self.room = 10_000

    def on_record(self, raw: bytes, signature: bytes, peer: str) -> bool:
        if len(self.records) >= self.room:
            return False
        self.records.append((raw, signature, peer))
        return True

    async def on_sync(self, stream: FrameStream) -> None:
        self.syncs.append(stream.peer)
        while (frame := await stream.receive()) is not None:
            await stream.send(frame[::-1])

    async def on_blob(self, peer: str, digest: bytes, offset: int, length: int) -> bytes | None:
        data = self.blobs.get(digest)
        return None if data is None else data[offset : offset + length]

    async def on_question(self, peer: str, topic: str, data: bytes) -> bytes | None:
        if data == b"wait":
            await trio.sleep_forever()
        return data[::-1]

    def on_change(self) -> None:
        """Nothing."""


@asynccontextmanager
async def running(folder: Path, handlers: Any = None, *, listen: str = LOOPBACK, **options: Any) -> AsyncIterator[Host]:
    settings = {"network": NETWORK, "lan": False, "retry_seconds": 0.1} | options
    host = Host(
        HostOptions(folder=str(folder), listen=(listen,) if listen else (), **settings),
        handlers or RecordingHandlers(),
        now_ms=now_ms,
    )
    async with host.run():
        yield host


@asynccontextmanager
async def stranger(host: Host | None = None, **options: Any) -> AsyncIterator[Any]:
    """A plain libp2p host, connected to ``host``, that keeps to nothing."""
    keys = options.pop("key_pair", None) or create_new_key_pair()
    other = new_host(
        key_pair=keys, listen_addrs=[Multiaddr(LOOPBACK)], disable_identify_address_discovery=True, **options
    )
    async with other.run([Multiaddr(LOOPBACK)]):
        try:
            if host is not None:
                await other.connect(info_from_p2p_addr(Multiaddr(host.addresses()[0])))
            yield other
        finally:
            with trio.move_on_after(3) as scope:
                scope.shield = True
                await other.close()


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 - waits for whatever the condition looks at
            await trio.sleep(0.01)


async def in_mesh(first: Host, second: Host) -> None:
    """Until each sends the other what it publishes: knowing that it listens to the topic is not enough."""
    topic = first.options.topic
    for host, peer in ((first, second), (second, first)):
        peer_id = ID.from_string(peer.peer)
        await until(lambda host=host, peer_id=peer_id: peer_id in host._pubsub.router.mesh.get(topic, ()))


async def works(host: Host, folder: Path) -> None:
    """An honest newcomer connects, syncs and is heard."""
    handlers: RecordingHandlers = host._handlers
    async with running(folder) as newcomer:
        await newcomer.dial(host.addresses()[0])
        stream = await newcomer.open_sync(host.peer)
        await stream.send(b"abc")
        assert await stream.receive() == b"cba"
        await stream.close()
        await in_mesh(newcomer, host)
        made = record(len(handlers.records) + 1, author=77)
        await newcomer.publish(made.raw, made.signature)
        await until(lambda: made.raw in [raw for raw, _, _ in handlers.records])
