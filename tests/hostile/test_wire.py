"""Strangers that send what no peer sends. The host stays up, stays small, and honest records keep flowing."""

import contextlib
import random
import socket

import pytest
import trio
from autoresearch_daemon.net.host import guards, streams
from autoresearch_daemon.net.host.serving import BLOB, PEERS, SYNC
from autoresearch_daemon.net.host.streams import varint
from libp2p.peer.id import ID
from libp2p.pubsub.pb import rpc_pb2
from libp2p.utils.varint import encode_uvarint
from multiaddr import Multiaddr

from autoresearch.record.record import Network
from tests.daemon.net.hosts import RecordingHandlers, in_mesh, in_trio, now_ms, record, running, stranger, until, works

GOSSIP = "/meshsub/1.1.0"
HANDSHAKE = b"\x13/multistream/1.0.0\n\x07/noise\n"


def port_of(host):
    return int(host.addresses()[0].split("/")[4])


@in_trio
@pytest.mark.parametrize(
    "opening",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\xff" * 10,
        b"\x13/multistream/1.0.0\n\x0b/plaintext\n",
        b"\x13/multistream/1.0.0\n" + b"\x03ls\n" * 500,
        HANDSHAKE + b"\x00\x20" + b"k" * 32,
        HANDSHAKE + b"\xff\xff" + b"k" * 65_535,
    ],
)
async def test_garbage_instead_of_a_handshake(tmp_path, opening):
    async with running(tmp_path / "a") as a:
        for _ in range(10):
            stream = await trio.open_tcp_stream("127.0.0.1", port_of(a))
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_all(opening)
            await stream.aclose()
        await works(a, tmp_path / "b")


@pytest.mark.slow
@in_trio
async def test_garbage_instead_of_the_muxer(tmp_path):
    dice = random.Random(2)
    async with running(tmp_path / "a") as a:
        for _ in range(10):
            async with stranger(a) as other:
                muxed = other.get_network().get_connections()[0].muxed_conn
                with contextlib.suppress(Exception):
                    for _ in range(20):
                        # some with a header that is nearly right
                        head = bytes((0, dice.randrange(4), 0, dice.randrange(16)))
                        await muxed.secured_conn.write(head + dice.randbytes(dice.randrange(200)))
        await works(a, tmp_path / "b")


@pytest.mark.slow
@in_trio
@pytest.mark.parametrize(
    "protocol", [SYNC, BLOB, PEERS, GOSSIP, "/ipfs/ping/1.0.0", "/ipfs/id/1.0.0", "/ipfs/id/push/1.0.0", "/none/1"]
)
async def test_garbage_in_every_protocol(tmp_path, protocol):
    dice = random.Random(protocol)
    async with running(tmp_path / "a") as a:
        for size in (0, 1, 3, 17, 48, 300, 70_000):
            async with stranger(a) as other:
                with contextlib.suppress(Exception):
                    stream = await other.new_stream(ID.from_string(a.peer), [protocol])
                    await stream.write(dice.randbytes(size))
                    await (stream.close() if size % 2 else stream.reset())
        await works(a, tmp_path / "b")


@pytest.mark.slow
@in_trio
@pytest.mark.parametrize("protocol", [SYNC, BLOB, GOSSIP])
async def test_a_length_beyond_the_limit_ends_the_stream_before_the_bytes_come(tmp_path, protocol):
    async with running(tmp_path / "a") as a, stranger(a) as other:
        stream = await other.new_stream(ID.from_string(a.peer), [protocol])
        await stream.write(varint(50 << 20) + bytes(1000))
        with contextlib.suppress(Exception):
            assert not await stream.read(1)
        held = a._host.get_network().get_connections()
        assert sum(connection.muxed_conn.buffered() for connection in held) < 2000
        await works(a, tmp_path / "b")


@pytest.mark.slow
@in_trio
@pytest.mark.parametrize("length", [b"\x80", b"\xff\xff\xff\xff\xff", b"\x81\x00"])
async def test_lengths_that_are_no_numbers(tmp_path, length):
    async with running(tmp_path / "a") as a, stranger(a) as other:
        stream = await other.new_stream(ID.from_string(a.peer), [SYNC])
        await stream.write(length)
        await stream.close()
        await works(a, tmp_path / "b")


@pytest.mark.slow
@in_trio
async def test_a_frame_that_drips_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "FRAME_SECONDS", 0.5)
    async with running(tmp_path / "a") as a, stranger(a) as other:
        stream = await other.new_stream(ID.from_string(a.peer), [SYNC])
        await stream.write(varint(1000))
        with trio.move_on_after(10) as endless, contextlib.suppress(Exception):
            while True:
                await stream.write(b"x")
                await trio.sleep(0.05)
        assert not endless.cancelled_caught
        await works(a, tmp_path / "b")


@pytest.mark.slow
@in_trio
async def test_a_thousand_connections_of_one_address_take_so_many_places(tmp_path):
    async with running(tmp_path / "a", connections_per_address=8) as a:
        held, most = [], 0

        async def hold(count):
            nonlocal most
            for _ in range(count):
                sock = trio.socket.socket()
                await sock.bind(("127.0.0.2", 0))
                with contextlib.suppress(OSError):
                    await sock.connect(("127.0.0.1", port_of(a)))
                held.append(sock)
                most = max(most, a.gate.places())

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(hold, 100)
        assert len(held) == 1000
        assert most <= 8 + 10
        await until(lambda: a.gate.places() <= 8)
        await works(a, tmp_path / "b")  # it comes from 127.0.0.1
        for sock in held:
            sock.close()
        await until(lambda: a.gate.places() == 0)


def message(other, host, data, number, topics=None):
    made = rpc_pb2.Message(
        from_id=other.get_id().to_bytes(),
        seqno=number.to_bytes(8, "big"),
        data=data,
        topicIDs=topics or [host.options.topic],
    )
    made.signature = other.get_private_key().sign(b"libp2p-pubsub:" + made.SerializeToString())
    made.key = other.get_public_key().serialize()
    return made


async def gossip(other, host, messages):
    stream = await other.new_stream(ID.from_string(host.peer), [GOSSIP])
    for part in range(0, len(messages), 50):
        data = rpc_pb2.RPC(publish=messages[part : part + 50]).SerializeToString()
        await stream.write(encode_uvarint(len(data)) + data)
    return stream


def spoilt(made):
    return made.signature[:-1] + bytes((made.signature[-1] ^ 1,)) + made.raw


@pytest.mark.slow
@in_trio
@pytest.mark.parametrize(
    "make",
    [
        lambda: b"",
        lambda: b"junk" * 1000,
        lambda: bytes(64) + b"junk",
        lambda: record().signature + record(network=Network(name="another")).raw,
        lambda: (made := record(network=Network(name="another"))).signature + made.raw,
        lambda: spoilt(record()),
        lambda: record(author=2).signature + record(author=1).raw,
        lambda: (made := record()).signature + made.raw + b"\x00",
        lambda: bytes(20_000),
    ],
    ids=["empty", "junk", "no record", "mixed", "another network", "signature", "author", "tail", "oversize"],
)
async def test_what_is_no_record_is_neither_taken_nor_relayed(tmp_path, make):
    heard_a, heard_b = RecordingHandlers(), RecordingHandlers()
    async with (
        running(tmp_path / "a", heard_a) as a,
        running(tmp_path / "b", heard_b) as b,
        stranger(a) as other,
    ):
        await b.dial(a.addresses()[0])
        await in_mesh(a, b)
        good = record(9, author=9)
        bad = [message(other, a, make(), number) for number in range(1, 6)]
        await gossip(other, a, [*bad, message(other, a, good.signature + good.raw, 99)])
        await until(lambda: heard_b.records)

        assert [raw for raw, _, _ in heard_a.records] == [good.raw]
        assert [raw for raw, _, _ in heard_b.records] == [good.raw]
        assert a.watch.offences == 5


@pytest.mark.slow
@in_trio
async def test_who_goes_on_sending_rubbish_is_shut_out(tmp_path):
    async with running(tmp_path / "a") as a, stranger(a) as other:
        with contextlib.suppress(Exception):
            await gossip(other, a, [message(other, a, b"junk", number) for number in range(1, 60)])
        await until(lambda: not a.watch.is_connected(str(other.get_id())))
        assert a.figures().peers_banned >= 1
        await works(a, tmp_path / "b")
        with contextlib.suppress(Exception):
            await other.connect(a._host.get_id(), [Multiaddr(a.addresses()[0])])
        await until(lambda: not a.watch.is_connected(str(other.get_id())))


@in_trio
async def test_early_records_are_not_taken_but_nobody_is_blamed(tmp_path):
    handlers = RecordingHandlers()
    async with running(tmp_path / "a", handlers) as a, stranger(a) as other:
        early, good = record(1, time_ms=now_ms() + 3_600_000), record(2)
        sent = [message(other, a, made.signature + made.raw, number) for number, made in enumerate((early, good), 1)]
        await gossip(other, a, sent)
        await until(lambda: handlers.records)

        assert [raw for raw, _, _ in handlers.records] == [good.raw]
        assert a.watch.offences == 0


@in_trio
async def test_a_message_sent_again_is_taken_once(tmp_path):
    handlers = RecordingHandlers()
    async with running(tmp_path / "a", handlers) as a, stranger(a) as other:
        made, last = record(1), record(2)
        again = [message(other, a, made.signature + made.raw, 1)] * 40
        await gossip(other, a, [*again, message(other, a, last.signature + last.raw, 2)])
        await until(lambda: last.raw in [raw for raw, _, _ in handlers.records])
        assert len(handlers.records) == 2


@pytest.mark.slow
@in_trio
async def test_a_flood_of_one_peer_is_slowed_and_others_are_heard_meanwhile(tmp_path, monkeypatch):
    handlers = RecordingHandlers()
    monkeypatch.setattr("autoresearch_daemon.net.host.streams.MESSAGES", (10.0, 50.0))
    async with running(tmp_path / "a", handlers) as a, stranger(a) as other, trio.open_nursery() as nursery:
        records = [record(number) for number in range(1, 401)]
        flood = [message(other, a, made.signature + made.raw, number) for number, made in enumerate(records, 1)]

        async def send():
            with contextlib.suppress(Exception):
                await gossip(other, a, flood)

        nursery.start_soon(send)
        await until(lambda: len(handlers.records) >= 50)
        await works(a, tmp_path / "b")
        assert len(handlers.records) < 400
        nursery.cancel_scope.cancel()


@in_trio
async def test_addresses_of_strangers_are_taken_only_if_they_can_be_dialled(tmp_path):
    junk = [
        b"",
        b"\xff\xfe",
        b"/ip4/1.2.3.4/tcp/1",
        b"/dns/example.org/tcp/1/p2p/12D3KooW",
        b"/ip4/0.0.0.0/tcp/1/p2p/x",
    ]

    async def tell(stream):
        for entry in junk * 3:
            await stream.write(varint(len(entry)) + entry)
        await stream.close()

    async with running(tmp_path / "a") as a, stranger() as other:
        other.set_stream_handler(PEERS, tell)
        await a.dial(str(other.get_addrs()[0]))
        await a._exchange(str(other.get_id()))
        assert set(a.book.contacts) == {str(other.get_id())}


@pytest.mark.slow
@in_trio
async def test_many_peers_that_flood_hold_little_memory_together(tmp_path):
    """Each ignores its window; what they hold together is bounded, not what they send."""

    class Deaf(RecordingHandlers):
        async def on_sync(self, stream):
            if stream.peer in floods:
                await trio.sleep_forever()
            await super().on_sync(stream)

    floods: set[str] = set()
    most = 0
    async with running(tmp_path / "a", Deaf()) as a, trio.open_nursery() as nursery:

        async def flood():
            async with stranger(a) as other:
                floods.add(str(other.get_id()))
                with contextlib.suppress(Exception):
                    stream = await other.new_stream(ID.from_string(a.peer), [SYNC])
                    stream.muxed_stream.send_window = 1 << 40
                    for _ in range(128):
                        await stream.write(bytes(256 * 1024))

        for _ in range(12):
            nursery.start_soon(flood)
        with trio.move_on_after(3):
            while True:
                held = [c.muxed_conn.buffered() for c in a._host.get_network().get_connections()]
                most = max(most, sum(held))
                await trio.sleep(0.01)
        assert 0 < most <= 12 * guards.CONNECTION_BUFFER_BYTES
        nursery.cancel_scope.cancel()
        await works(a, tmp_path / "b")


def test_a_port_that_somebody_listens_on_is_not_free():
    from autoresearch_daemon.net.host.guards import port_is_free

    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not port_is_free("127.0.0.1", server.getsockname()[1])
