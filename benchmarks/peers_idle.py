"""What the network costs while nothing happens: the network process with ten peers, its memory and processor time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
import trio
from autoresearch_daemon.net.model import HostOptions
from autoresearch_daemon.net.network import Handlers, NetworkClient, SyncStream

from benchmarks.gossip import NETWORK, Ear

COMPARED = "the bounds of a background service: 200 MB and 2 % of one processor, for the network process alone"
PEERS = 10
SETTLE_SECONDS = 5.0
MEASURE_SECONDS = {True: 3.0, False: 3600.0}
CONNECT_SECONDS = 60.0


def measure(*, quick: bool) -> dict[str, float]:
    """Resident megabytes at the end and percent of one processor, of the network process."""
    return asyncio.run(idle(MEASURE_SECONDS[quick]))


async def idle(seconds: float) -> dict[str, float]:
    """One real network process, ten hosts in another process that connect to it."""
    with tempfile.TemporaryDirectory() as folder:
        options = HostOptions(folder=folder, network=NETWORK, listen=("/ip4/127.0.0.1/tcp/0",), lan=False)
        network = NetworkClient(options, Handlers(take_record, take_stream, no_blob))
        network.start()
        await network.ready()
        peers = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.peers_idle", network.info().addresses[0]), stdin=subprocess.PIPE
        )
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                while network.info().connected < PEERS:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            await asyncio.sleep(SETTLE_SECONDS)
            pid = network.info().process
            assert pid is not None
            process = psutil.Process(pid)
            before = sum(process.cpu_times()[:2])
            await asyncio.sleep(seconds)
            used = sum(process.cpu_times()[:2]) - before
            memory = process.memory_info().rss
            return {"rss_mb": memory / 1e6, "cpu_percent": 100 * used / seconds, "peers": network.info().connected}
        finally:
            peers.kill()
            await peers.wait()
            await network.stop()


async def take_record(raw: bytes, signature: bytes, peer: str) -> None:
    """Nobody publishes here."""


async def take_stream(stream: SyncStream) -> None:
    """Nobody opens streams here."""


async def no_blob(digest: bytes, offset: int, length: int) -> bytes | None:  # noqa: ARG001
    """There are none."""
    return None


async def serve_peers(address: str) -> None:
    """Ten hosts that stay connected to the address until standard input ends."""
    from autoresearch_daemon.net.host.host import Host

    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for number in range(PEERS):
            options = HostOptions(
                folder=str(folder / str(number)),
                network=NETWORK,
                listen=("/ip4/127.0.0.1/tcp/0",),
                lan=False,
                bootstrap=(address,),
                peers_wanted=3,
            )
            await stack.enter_async_context(Host(options, Ear([])).run())
        async with trio.lowlevel.FdStream(0) as stdin:
            await stdin.receive_some(1)


if __name__ == "__main__":
    trio.run(serve_peers, sys.argv[1])
