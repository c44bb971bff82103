"""A daemon under attack: its memory, its processor time, and how many records of an honest peer still arrive.

An honest host publishes four records a second while an attacker does one thing as fast as it can; both are connected
to a real daemon with its network process. The attackers run in a process of their own.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import msgspec
import psutil
import trio
from autoresearch_daemon.net.host.host import Host
from autoresearch_daemon.net.host.serving import SYNC
from autoresearch_daemon.net.host.streams import frame
from autoresearch_daemon.net.model import HostOptions
from libp2p import new_host
from libp2p.custom_types import TProtocol
from libp2p.peer.id import ID
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.pubsub.pb import rpc_pb2
from libp2p.utils import encode_uvarint
from multiaddr import Multiaddr

from autoresearch.ask.node import PeersAnswer
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.kinds import Note
from autoresearch.record.record import DEFAULT_NETWORK, Record, seal
from autoresearch.trust.keys import KeyPair
from benchmarks.gossip import Ear, hearers

COMPARED = "the first row, the same without an attacker; 512 MiB, where the network process is replaced"
ATTACKS = ("nobody", "records", "rubbish", "lies", "connections", "drip")
QUICK_ATTACKS = ("records",)
SECONDS = {True: 3.0, False: 30.0}
HONEST_PER_SECOND = 4
GOSSIP = TProtocol("/meshsub/1.1.0")
LOOPBACK = "/ip4/127.0.0.1/tcp/0"
HONEST = KeyPair.from_seed(bytes(31) + b"h")
HOSTILE = KeyPair.from_seed(bytes(31) + b"x")
MIB = 1 << 20


def measure(*, quick: bool) -> dict[str, float]:
    """For each attack: the peak of resident MiB of daemon and network process, percent of one processor, delivered."""
    figures: dict[str, float] = {}
    for attack in QUICK_ATTACKS if quick else ATTACKS:
        with tempfile.TemporaryDirectory() as home:
            found = attacked(Path(home), attack, SECONDS[quick])
        figures |= {f"{name}_{attack}": value for name, value in found.items()}
    return figures


def attacked(home: Path, attack: str, seconds: float) -> dict[str, float]:
    """One daemon, one honest peer, one attacker."""
    settings = {"ENABLED": "true", "LAN": "false", "LISTEN": LOOPBACK}
    environment = os.environ | {"AUTORESEARCH_HOME": str(home)}
    environment |= {f"AUTORESEARCH_NETWORK_{name}": value for name, value in settings.items()}
    daemon = subprocess.Popen([sys.executable, "-m", "autoresearch_daemon"], env=environment, stderr=subprocess.DEVNULL)
    try:
        paths = Paths.from_environment(environment)
        address = address_of(paths)
        actors = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.hostile", role, address, str(seconds)],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            for role in ("honest", attack)
            if role != "nobody"
        ]
        family = [psutil.Process(daemon.pid), *psutil.Process(daemon.pid).children()]
        before, began, peak = spent(family), time.monotonic(), 0
        while any(actor.poll() is None for actor in actors):
            peak = max(peak, sum(process.memory_info().rss for process in family if process.is_running()))
            time.sleep(0.1)
        used = spent(family) - before
        published = int((actors[0].communicate()[0] or b"0").split()[-1])
        with Log.open(paths.log, DEFAULT_NETWORK, read_only=True) as log:
            arrived = log.records.count(author=HONEST.public)
        return {
            "rss_mib": peak / MIB,
            "cpu_percent": 100 * used / (time.monotonic() - began),
            "delivered": arrived / max(published, 1),
        }
    finally:
        daemon.terminate()
        daemon.wait(20)


def address_of(paths: Paths) -> str:
    """Where the daemon listens, as soon as it does."""
    for _ in range(300):
        with (
            contextlib.suppress(httpx.TransportError),
            httpx.Client(transport=httpx.HTTPTransport(uds=str(paths.socket)), base_url="http://daemon") as client,
        ):
            answer = msgspec.json.decode(client.get("/v1/peers").content, type=PeersAnswer)
            if answer.addresses:
                return answer.addresses[0]
        time.sleep(0.1)
    raise RuntimeError("the daemon does not listen")


def spent(family: list[psutil.Process]) -> float:
    """Processor seconds of some processes."""
    return sum(sum(process.cpu_times()[:2]) for process in family if process.is_running())


def note(author: KeyPair, number: int) -> Record:
    """A valid record."""
    prev = b"" if number == 1 else bytes(32)
    now_ms = time.time_ns() // 1_000_000
    return seal(
        author, DEFAULT_NETWORK, "note", Note(topic="insight", text="x" * 200), seq=number, prev=prev, time_ms=now_ms
    )


async def honest(address: str, seconds: float) -> None:
    """Publish steadily; print how many."""
    with tempfile.TemporaryDirectory() as folder:
        options = HostOptions(
            folder=folder, network=DEFAULT_NETWORK, listen=(LOOPBACK,), lan=False, bootstrap=(address,)
        )
        async with Host(options, Ear([])).run() as host:
            with trio.fail_after(30):
                while not hearers(host):  # noqa: ASYNC110 - libp2p has no event for it
                    await trio.sleep(0.05)
            await trio.sleep(1)
            count = 0
            until = trio.current_time() + seconds
            while trio.current_time() < until:
                count += 1
                record = note(HONEST, count)
                await host.publish(record.raw, record.signature)
                await trio.sleep(1 / HONEST_PER_SECOND)
            await trio.sleep(2)
    print(count)


@contextlib.asynccontextmanager
async def stranger(address: str) -> AsyncIterator[tuple[object, ID]]:
    """A plain libp2p host that keeps to nothing, connected to the address."""
    host = new_host(listen_addrs=[Multiaddr(LOOPBACK)], disable_identify_address_discovery=True)
    info = info_from_p2p_addr(Multiaddr(address))
    async with host.run([Multiaddr(LOOPBACK)]):
        await host.connect(info)
        yield host, info.peer_id


async def gossiping(address: str, make: Callable[[int], bytes]) -> None:
    """Send gossip messages, fifty at a time, without end."""
    async with stranger(address) as (host, peer):
        stream = await host.new_stream(peer, [GOSSIP])  # type: ignore[attr-defined]
        topic = HostOptions(folder="", network=DEFAULT_NETWORK).topic
        for first in range(1, 1 << 30, 50):
            messages = [signed(host, make(number), number, topic) for number in range(first, first + 50)]
            data = rpc_pb2.RPC(publish=messages).SerializeToString()
            await stream.write(encode_uvarint(len(data)) + data)


def signed(host: object, data: bytes, number: int, topic: str) -> rpc_pb2.Message:
    """A gossip message as gossipsub wants it."""
    sender = host.get_id().to_bytes()  # type: ignore[attr-defined]
    made = rpc_pb2.Message(from_id=sender, seqno=number.to_bytes(8, "big"), data=data, topicIDs=[topic])
    made.signature = host.get_private_key().sign(b"libp2p-pubsub:" + made.SerializeToString())  # type: ignore[attr-defined]
    made.key = host.get_public_key().serialize()  # type: ignore[attr-defined]
    return made


async def records(address: str) -> None:
    """Valid records of one key, as many as it can sign."""

    def make(number: int) -> bytes:
        record = note(HOSTILE, number)
        return record.signature + record.raw

    await gossiping(address, make)


async def rubbish(address: str) -> None:
    """Messages that are no records."""
    await gossiping(address, lambda number: os.urandom(16_000) + number.to_bytes(8, "big"))


async def lies(address: str) -> None:
    """Exchanges of records that answer with noise."""
    async with stranger(address) as (host, peer):
        while True:
            with contextlib.suppress(Exception), trio.move_on_after(1):
                stream = await host.new_stream(peer, [TProtocol(SYNC)])  # type: ignore[attr-defined]
                for _ in range(20):
                    await stream.write(frame(os.urandom(1) + os.urandom(60_000)))
                await stream.reset()


async def connections(address: str) -> None:
    """A thousand connections at a time that say nothing."""
    parts = address.split("/")
    while True:
        held = []
        for _ in range(1000):
            with contextlib.suppress(OSError):
                held.append(await trio.open_tcp_stream(parts[2], int(parts[4])))
        await trio.sleep(1)
        for stream in held:
            await stream.aclose()


async def drip(address: str) -> None:
    """As many streams as there may be, a byte a second on each."""
    async with stranger(address) as (host, peer), trio.open_nursery() as nursery:

        async def one() -> None:
            while True:
                with contextlib.suppress(Exception):
                    stream = await host.new_stream(peer, [TProtocol(SYNC)])  # type: ignore[attr-defined]
                    for byte in frame(bytes(60_000)):
                        await stream.write(bytes([byte]))
                        await trio.sleep(1)
                await trio.sleep(0.1)

        for _ in range(64):
            nursery.start_soon(one)


async def act(role: str, address: str, seconds: float) -> None:
    """Play one role: honest for as long as it takes, an attacker a little longer than the honest one publishes."""
    if role == "honest":
        await honest(address, seconds)
        return
    attack = {"records": records, "rubbish": rubbish, "lies": lies, "connections": connections, "drip": drip}[role]
    with trio.move_on_after(seconds + 3):
        while True:
            with contextlib.suppress(Exception):  # it was thrown out: it comes again
                await attack(address)
            await trio.sleep(0.2)


if __name__ == "__main__":
    trio.run(act, sys.argv[1], sys.argv[2], float(sys.argv[3]))
