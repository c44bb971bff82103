"""The daemon's side: what goes over the link between two daemons, and how the network process is kept alive."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from autoresearch_daemon.children import ChildLimits
from autoresearch_daemon.net.host.streams import frame
from autoresearch_daemon.net.model import FRAME_BYTES_MAX, device_statement

from autoresearch.errors import AutoresearchError, NotFound, Refused, UsageError
from autoresearch.log.sync.messages import FRAME_BYTES
from autoresearch.words import NetworkState
from tests.daemon.net.hosts import record
from tests.daemon.net.networks import BUSY_SECONDS, Node, echo, nodes, until
from tests.record.making import NETWORK, key

pytestmark = pytest.mark.slow
MISBEHAVING = Path(__file__).parent / "misbehaving.py"


async def test_a_peer_shows_which_device_it_has_and_a_liar_shows_none(tmp_path):
    honest, liar = key(1), key(2)

    def introduces(who):
        return lambda peer: who.sign(device_statement(NETWORK.id, peer))

    a = Node(tmp_path / "a", introduce=introduces(honest), device_key=honest.public)
    b = Node(tmp_path / "b", introduce=introduces(liar), device_key=honest.public)
    try:
        for node in (a, b):
            node.network.start()
        for node in (a, b):
            async with asyncio.timeout(BUSY_SECONDS):
                await node.network.ready()
        await b.network.dial(a.address)

        def greeted(node, other):
            return [peer for peer in node.network.peers() if peer.peer == other.peer and peer.agent]

        await until(lambda: greeted(a, b) and greeted(b, a))
        assert greeted(b, a)[0].device_key == honest.public
        assert greeted(a, b)[0].device_key == b"", "it names a device whose key it has not"
        peer = a.peer
        await a.network.stop()
        await until(lambda: not any(entry.connected for entry in b.network.peers()))
        entry = {entry.peer: entry for entry in b.network.peers()}[peer]
        assert (entry.agent, entry.device_key) == ("", honest.public), "who it was is not forgotten"
    finally:
        for node in (a, b):
            await node.network.stop()


async def test_two_daemons_exchange_records_streams_and_blobs(tmp_path):
    async with nodes(tmp_path, "a", "b") as (a, b):
        await b.network.dial(a.address)
        await until(lambda: a.is_connected(b) and b.is_connected(a))
        made = record()
        await until_heard(a, b, made)
        assert b.records[0] == (made.raw, made.signature, a.peer)

        await echo(a, b)
        await echo(b, a)
        async with await b.network.open_sync(a.peer) as stream:
            for size in (0, 127, 128, 100_000, FRAME_BYTES_MAX):
                await stream.send(frame(bytes(size)))
            for size in (0, 127, 128, 100_000, FRAME_BYTES_MAX):
                assert await stream.receive() == frame(bytes(size))

        a.blobs[b"d" * 32] = os.urandom(1_200_000)
        assert await b.network.fetch_blob(a.peer, b"d" * 32, 200_000, 1 << 20) == a.blobs[b"d" * 32][200_000:]
        with pytest.raises(NotFound):
            await b.network.fetch_blob(a.peer, b"?" * 32, 0, 1)

        info = b.network.info()
        assert (info.state, info.connected, info.restarts) == (NetworkState.RUNNING, 1, 0)
        await until(lambda: b.network.info().bytes_today > 1_000_000)


async def until_heard(sender, receiver, made):
    await until(lambda: receiver.is_connected(sender))
    async with asyncio.timeout(BUSY_SECONDS):
        # Best effort: what is gossiped before the subscriptions are exchanged may be lost.
        while not receiver.records:
            await sender.network.publish(made)
            await asyncio.sleep(0.2)


async def test_mistakes_are_told_in_words(tmp_path):
    async with nodes(tmp_path, "a") as (a,):
        for wrong in ("", "/ip4/127.0.0.1/tcp/1", "/ip4/127.0.0.1/udp/1/quic-v1/p2p/x", a.address):
            with pytest.raises(UsageError):
                await a.network.dial(wrong)
        with pytest.raises(Refused):
            await a.network.block("nobody")
        with pytest.raises(AutoresearchError, match="not connected"):
            await a.network.open_sync(a.peer)
        with pytest.raises(UsageError):
            await a.network.fetch_blob(a.peer, b"d" * 32, 0, 2 << 20)
    with pytest.raises(AutoresearchError, match="no network"):
        await a.network.dial("/")


async def test_a_handler_that_raises_ends_its_stream_alone(tmp_path):
    async with nodes(tmp_path, "a", "b") as (a, b):
        await b.network.dial(a.address)
        stream = await b.network.open_sync(a.peer)
        await stream.send(frame(b"raise"))
        with pytest.raises(AutoresearchError):
            assert await stream.receive() is not None
        with pytest.raises(AutoresearchError):
            await stream.send(frame(b"more"))
        await echo(b, a)


async def test_records_wait_for_a_slow_daemon(tmp_path):
    async with nodes(tmp_path, "a", "b") as (a, b):
        await b.network.dial(a.address)
        first = record(1)
        await until_heard(a, b, first)
        b.taking.clear()
        for number in range(2, 30):
            await a.network.publish(record(number))
        await until(lambda: b.network.info().figures.records_heard >= 29)
        # The first was sent until it was heard, so on a busy machine more than once.
        assert {raw for raw, _, _ in b.records} == {first.raw}
        b.taking.set()
        await until(lambda: len({raw for raw, _, _ in b.records}) == 29)


async def test_a_network_rests_and_goes_on_and_says_why(tmp_path):
    async with nodes(tmp_path, "a", "b") as (a, b):
        await b.network.dial(a.address)
        await until(lambda: a.is_connected(b) and b.is_connected(a))
        process = b.network.info().process
        await b.network.rest("it is night")
        assert (b.network.info().state, b.network.info().reason) == (NetworkState.RESTING, "it is night")
        assert not psutil.pid_exists(process)
        await until(lambda: not a.is_connected(b))
        with pytest.raises(AutoresearchError, match="no network: it is night"):
            await b.network.open_sync(a.peer)
        await b.network.rest("")
        await until(lambda: a.is_connected(b) and b.is_connected(a))
        assert b.network.info().restarts == 0


async def test_while_blobs_rest_none_is_fetched_and_none_served(tmp_path):
    async with nodes(tmp_path, "a", "b") as (a, b):
        await b.network.dial(a.address)
        a.blobs[b"d" * 32] = b"blob"
        assert await b.network.fetch_blob(a.peer, b"d" * 32, 0, 4) == b"blob"
        b.network.move_blobs("the link is dear")
        with pytest.raises(Refused, match="the link is dear"):
            await b.network.fetch_blob(a.peer, b"d" * 32, 0, 4)
        b.network.move_blobs("")
        assert await b.network.fetch_blob(a.peer, b"d" * 32, 0, 4) == b"blob"
        a.network.move_blobs("the link is dear")
        await echo(a, b)  # what was said before is heard
        with pytest.raises(NotFound):
            await b.network.fetch_blob(a.peer, b"d" * 32, 0, 4)
        await until_heard(a, b, record())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_killed_or_frozen_process_is_replaced_and_connects_again(tmp_path, number):
    async with nodes(tmp_path, "a", "b") as (a, b):
        await b.network.dial(a.address)
        peer, before = b.peer, b.network.info().process
        stream = await b.network.open_sync(a.peer)
        waiting = asyncio.create_task(stream.receive())
        calling = asyncio.create_task(b.network.dial("/ip4/192.0.2.1/tcp/9/p2p/" + a.peer[:-1] + "x"))
        os.kill(before, number)

        with pytest.raises(AutoresearchError):
            await waiting
        with pytest.raises(AutoresearchError):
            await calling
        await until(lambda: b.network.info().state == NetworkState.RESTARTING or b.network.info().restarts)
        await until(lambda: b.network.info().state == NetworkState.RUNNING and b.is_connected(a))
        assert b.peer == peer
        assert b.network.info().restarts == 1
        assert not psutil.pid_exists(before)
        await echo(b, a)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("spin", "kept a processor busy"),
        ("eat", "MiB of memory"),
        ("rubbish", "could not handle"),
    ],
)
async def test_a_process_that_misbehaves_is_replaced_and_the_reason_told(tmp_path, how, reason):
    limits = ChildLimits(
        memory_bytes=300 << 20, look_seconds=0.1, spin_share=0.01,
        spin_seconds=1.0 if how == "spin" else 600.0,  # filling memory keeps a processor busy too
        restart_seconds=600.0, restart_seconds_max=600.0,
    )  # fmt: skip
    node = Node(tmp_path / "a", limits, (sys.executable, str(MISBEHAVING), how))
    node.network.start()
    try:
        await until(lambda: node.network.info().state == NetworkState.RESTARTING)
        assert reason in node.network.info().reason
        assert node.network.info().process is None
    finally:
        await node.network.stop()


async def test_a_killed_daemon_leaves_no_process(tmp_path):
    program = (
        "import asyncio, sys; from pathlib import Path; from tests.daemon.net.networks import Node\n"
        "async def main():\n"
        "    node = Node(Path(sys.argv[1])); node.network.start(); await node.network.ready()\n"
        "    print(node.network.info().process, flush=True); await asyncio.sleep(3600)\n"
        "asyncio.run(main())\n"
    )
    command = (sys.executable, "-c", program, str(tmp_path / "a"))
    project = Path(__file__).parents[3]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=project)  # noqa: ASYNC220 - nothing else is in the loop
    child = int(await asyncio.to_thread(daemon.stdout.readline))
    assert psutil.pid_exists(child)
    daemon.kill()
    daemon.wait()
    await until(lambda: not psutil.pid_exists(child))
    daemon.stdout.close()


async def test_stopping_ends_the_process_and_frees_the_port(tmp_path):
    async with nodes(tmp_path, "a") as (a,):
        process, address = a.network.info().process, a.address
    assert not psutil.pid_exists(process)
    assert a.network.info().state == NetworkState.STOPPED
    async with nodes(tmp_path, "a") as (again,):
        assert again.address == address


def test_a_frame_of_the_wire_holds_one_of_the_exchange():
    assert FRAME_BYTES_MAX == FRAME_BYTES
