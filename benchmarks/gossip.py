"""How fast a record reaches everybody by gossip: hosts in one process on loopback, each dials five others.

All hosts share one processor core, so the figures of larger networks are bounded by it and not by the wire: a record
in a network of 60 is checked and relayed about 300 times on that one core.
"""

from __future__ import annotations

import random
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import trio
from autoresearch_daemon.net.host.host import Host
from autoresearch_daemon.net.host.streams import FrameStream
from autoresearch_daemon.net.model import HostOptions

from autoresearch.record.kinds import Note
from autoresearch.record.record import Network, seal
from autoresearch.trust.keys import KeyPair

COMPARED = "a fresh record everywhere within a second, which is what two proposers need to not try the same thing"
NETWORK = Network(name="benchmark")
DIALS = 5
NOTE_CHARACTERS = 700
# Records a second and how many of them, by network size: below where one core saturates.
LOADS = {10: (4.0, 40), 30: (2.0, 40), 60: (1.0, 30)}
QUICK_RECORDS = 12
SETTLE_SECONDS = 3.0
MEET_SECONDS = 60.0


class Ear:
    """Handlers that note when each record arrived."""

    def __init__(self, arrivals: list[tuple[bytes, float]]) -> None:
        self._arrivals = arrivals

    def on_record(self, raw: bytes, signature: bytes, peer: str) -> bool:  # noqa: ARG002
        """Note it."""
        self._arrivals.append((raw, time.monotonic()))
        return True

    async def on_sync(self, stream: FrameStream) -> None:
        """No streams here."""

    async def on_blob(self, peer: str, digest: bytes, offset: int, length: int) -> bytes | None:  # noqa: ARG002
        """No blobs here."""
        return None

    async def on_question(self, peer: str, topic: str, data: bytes) -> bytes | None:
        """No attestor."""

    def on_change(self) -> None:
        """Nothing."""


def measure(*, quick: bool) -> dict[str, float]:
    """Milliseconds from publishing to arrival, and the share that arrived; without a number, of the largest network."""
    sizes = [10] if quick else [10, 30, 60]
    records = QUICK_RECORDS if quick else None
    figures: dict[str, float] = {}
    for size in sizes:
        delays, expected = trio.run(gossip, size, records)
        delays.sort()
        if not delays:
            raise RuntimeError(f"none of {size} hosts heard anything")
        figures |= {
            f"p50_ms_{size}": 1000 * delays[len(delays) // 2],
            f"p99_ms_{size}": 1000 * delays[len(delays) * 99 // 100],
            f"delivered_{size}": len(delays) / expected,
        }
    largest = {name: figures[f"{name}_{sizes[-1]}"] for name in ("p50_ms", "p99_ms", "delivered")}
    return largest | figures


async def gossip(size: int, records: int | None = None) -> tuple[list[float], int]:
    """Seconds from publishing to each arrival, and how many arrivals there should be."""
    rate, count = LOADS[size]
    count = records or count
    dice = random.Random(size)
    arrivals: list[tuple[bytes, float]] = []
    sent: dict[bytes, float] = {}
    author = KeyPair.from_seed(bytes(32))
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hosts = [await stack.enter_async_context(host(folder / str(n), arrivals).run()) for n in range(size)]
        async with trio.open_nursery() as nursery:
            for one in hosts:
                for other in dice.sample([h for h in hosts if h is not one], DIALS):
                    nursery.start_soon(one.dial, other.addresses()[0])
        with trio.move_on_after(MEET_SECONDS):
            while any(hearers(one) < DIALS for one in hosts):  # noqa: ASYNC110
                await trio.sleep(0.1)
        await trio.sleep(SETTLE_SECONDS)
        for number in range(1, count + 1):
            now_ms = time.time_ns() // 1_000_000
            text = "".join(dice.choices("abcdefgh ", k=NOTE_CHARACTERS))
            body = Note(topic="insight", text=text)
            prev = b"" if number == 1 else bytes(32)
            record = seal(author, NETWORK, "note", body, seq=number, prev=prev, time_ms=now_ms)
            sent[record.raw] = time.monotonic()
            await dice.choice(hosts).publish(record.raw, record.signature)
            await trio.sleep(1 / rate)
        await trio.sleep(SETTLE_SECONDS)
    return [arrived - sent[raw] for raw, arrived in arrivals], count * (size - 1)


def hearers(host: Host) -> int:
    """How many connected peers are known to listen to the network's records."""
    return len(host._pubsub.peer_topics.get(host.options.topic, ()))  # noqa: SLF001 - nothing else asks for it


def host(folder: Path, arrivals: list[tuple[bytes, float]]) -> Host:
    """One host that dials nobody by itself."""
    options = HostOptions(
        folder=str(folder),
        network=NETWORK,
        listen=("/ip4/127.0.0.1/tcp/0",),
        lan=False,
        peers_wanted=0,
        health_seconds=300.0,
    )
    return Host(options, Ear(arrivals))
