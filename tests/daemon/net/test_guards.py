"""What ends a stock host, one test each. They decide whether another version of libp2p may be used."""

import contextlib

import pytest
import trio
from autoresearch_daemon.net.host import guards
from autoresearch_daemon.net.host.serving import BLOB, SYNC
from autoresearch_daemon.net.host.streams import StreamBroken
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.crypto.rsa import create_new_key_pair as create_rsa_key_pair
from libp2p.host.exceptions import StreamFailure
from libp2p.peer.id import ID
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.pubsub.pb import rpc_pb2
from libp2p.security.insecure.transport import PLAINTEXT_PROTOCOL_ID, InsecureTransport
from libp2p.security.noise.transport import PROTOCOL_ID as NOISE
from libp2p.utils.varint import encode_uvarint
from multiaddr import Multiaddr

from tests.daemon.net.hosts import RecordingHandlers, in_mesh, in_trio, record, running, stranger, until, works

GOSSIP = "/meshsub/1.1.0"


async def send_rpc(other, host, rpc):
    stream = await other.new_stream(ID.from_string(host.peer), [GOSSIP])
    data = rpc if isinstance(rpc, bytes) else rpc.SerializeToString()
    await stream.write(encode_uvarint(len(data)) + data)
    return stream


@pytest.mark.slow
@in_trio
async def test_seventeen_bytes_on_a_gossip_stream(tmp_path):
    async with running(tmp_path / "a") as a, stranger(a) as other:
        await send_rpc(other, a, b"\xff" * 16)
        await until(lambda: a.watch.offences == 1)
        await works(a, tmp_path / "b")


@pytest.mark.slow
@in_trio
async def test_a_gossip_message_with_a_junk_key(tmp_path):
    """The sender's id is a hash, so that the key in the message is looked at."""
    sender = ID.from_pubkey(create_rsa_key_pair(2048).public_key).to_bytes()
    async with running(tmp_path / "a") as a, stranger(a) as other:
        message = rpc_pb2.Message(from_id=sender, seqno=b"1" * 8, data=b"x", topicIDs=[a.options.topic])
        message.key, message.signature = b"junk", b"junk"
        stream = await send_rpc(other, a, rpc_pb2.RPC(publish=[message]))
        await until(lambda: a.watch.offences == 1)
        await stream.write(b"\x00" * 3)  # three empty messages: the stream is still read
        await stream.write(b"\x01\xff")
        await until(lambda: a.watch.offences == 2)
        await works(a, tmp_path / "b")


@in_trio
async def test_a_handler_that_raises(tmp_path):
    class Raising(RecordingHandlers):
        async def on_sync(self, stream):
            if await stream.receive() == b"raise":
                raise RuntimeError("a handler's mistake")
            await super().on_sync(stream)

        async def on_blob(self, *request):
            raise RuntimeError("a handler's mistake")

    async with running(tmp_path / "a", Raising()) as a, running(tmp_path / "b") as b:
        await b.dial(a.addresses()[0])
        stream = await b.open_sync(a.peer)
        await stream.send(b"raise")
        with contextlib.suppress(Exception):
            assert await stream.receive() is None
        with pytest.raises(Exception):  # noqa: B017 - whatever a broken answer looks like
            await b.fetch_blob(a.peer, b"d" * 32, 0, 1)
        again = await b.open_sync(a.peer)  # on the same connection
        await again.send(b"fine")
        await again.send(b"ab")
        assert await again.receive() == b"ba"


@pytest.mark.slow
@in_trio
async def test_more_connections_over_a_lifetime_than_there_are_places(tmp_path):
    async with running(tmp_path / "a", connections_max=6) as a:
        for _ in range(20):
            async with stranger(a):
                pass
        await until(lambda: not a._host.get_network().get_connections())
        assert a._host.get_network()._inbound_limiter.borrowed_tokens == 0
        await works(a, tmp_path / "b")


@in_trio
async def test_plaintext_is_refused_so_nobody_can_pose_as_another(tmp_path):
    victim = create_new_key_pair()
    options = {PLAINTEXT_PROTOCOL_ID: InsecureTransport(victim)}
    async with running(tmp_path / "a") as a, stranger(key_pair=victim, sec_opt=options) as other:
        with pytest.raises(Exception):  # noqa: B017 - libp2p raises one of several errors
            await other.connect(info_from_p2p_addr(Multiaddr(a.addresses()[0])))
        assert list(a._host.get_network().upgrader.security_multistream.transports) == [NOISE]
        assert not a.watch.connected_peers()


@in_trio
async def test_a_dial_ends_where_another_key_answers(tmp_path):
    wrong = ID.from_pubkey(create_new_key_pair().public_key)
    async with running(tmp_path / "a") as a, running(tmp_path / "b") as b:
        with pytest.raises(Exception):  # noqa: B017
            await b.dial(a.addresses()[0].replace(a.peer, str(wrong)))
        assert not b.watch.connected_peers()


@pytest.mark.slow
@in_trio
async def test_a_peer_that_ignores_the_window_is_put_out(tmp_path):
    class Deaf(RecordingHandlers):
        async def on_sync(self, stream):
            if stream.peer == str(flooder.get_id()):
                await trio.sleep_forever()
            await super().on_sync(stream)

    async with running(tmp_path / "a", Deaf()) as a, stranger(a) as flooder:
        held = []
        stream = await flooder.new_stream(ID.from_string(a.peer), [SYNC])
        stream.muxed_stream.send_window = 1 << 40
        with pytest.raises(Exception):  # noqa: B017, PT012 - one of many writes fails
            for _ in range(1024):
                await stream.write(bytes(256 * 1024))
                held += [c.muxed_conn.buffered() for c in a._host.get_network().get_connections()]
        assert max(held) <= guards.CONNECTION_BUFFER_BYTES
        await until(lambda: not a.watch.connected_peers())
        await works(a, tmp_path / "b")


@pytest.mark.slow
@in_trio
async def test_streams_that_a_peer_opens_and_never_closes_are_capped(tmp_path):
    async with running(tmp_path / "a") as a, stranger(a) as other:
        a.meters.stream_delay = lambda peer: 0.0
        connection = a._host.get_network().get_connections()[0].muxed_conn
        for _ in range(200):
            with contextlib.suppress(Exception):
                stream = await other.get_network().new_stream(ID.from_string(a.peer))
                await stream.write(b"\x13/multistream/1.0.0\n")
        # Those that are being negotiated have ten seconds.
        await until(lambda: len(connection.streams) <= guards.STREAMS_PER_CONNECTION + 2, 5)
        await works(a, tmp_path / "b")


@pytest.mark.slow
@in_trio
async def test_a_write_that_is_cancelled_leaves_the_connection_whole(tmp_path):
    """Stock, half a frame stays on the connection, and everything after it is noise."""
    async with running(tmp_path / "a") as a, running(tmp_path / "b") as b:
        await b.dial(a.addresses()[0])
        for number in range(20):
            stream = await b.open_sync(a.peer)
            with trio.move_on_after(0.0002 * number):
                for _ in range(4):
                    await stream.send(bytes(250_000))
            await stream.reset()
        stream = await b.open_sync(a.peer)
        await stream.send(b"ab")
        assert await stream.receive() == b"ba"
        assert len(a._host.get_network().get_connections()) == 1


@in_trio
async def test_a_list_of_one_message_six_thousand_times_is_answered_once(tmp_path):
    async with running(tmp_path / "a") as a, stranger(a) as other:
        made = record()
        await a.publish(made.raw, made.signature)
        message_id = next(iter(a._router.mcache.msgs))
        sent = []
        a._router.send_rpc = lambda peer, rpc, priority=False: sent.append(rpc)
        await a._router.handle_iwant(rpc_pb2.ControlIWant(messageIDs=[message_id] * 6000), other.get_id())

        assert [len(rpc.publish) for rpc in sent] == [1]


@pytest.mark.slow
@in_trio
async def test_a_peer_that_got_no_gossip_stream_when_it_connected_gets_one_later(tmp_path):
    """Stock, one whose first negotiation timed out is never gossiped with."""
    handlers = RecordingHandlers()
    failed = []

    async def fail(peer):
        failed.append(peer)
        raise StreamFailure("timed out")

    async with running(tmp_path / "a", handlers) as a, running(tmp_path / "b") as b:
        for host in (a, b):
            host._pubsub._handle_new_peer = fail
        await b.dial(a.addresses()[0])
        await until(lambda: len(set(failed)) == 2)
        for host in (a, b):
            del host._pubsub._handle_new_peer
        await in_mesh(a, b)
        made = record()
        await b.publish(made.raw, made.signature)
        await until(lambda: handlers.records)


@in_trio
async def test_half_an_answer_is_not_taken_for_a_whole_one(tmp_path):
    """Stock, a reset stream and a lost connection read like a regular end."""

    async def half(stream):
        await stream.read(49)
        await stream.write(bytes((1, 0)) + bytes((3,)) + b"abc")
        await trio.sleep(0.05)
        await ends.pop()(stream)

    ends = [lambda stream: stream.reset(), lambda stream: stream.muxed_conn.close()]
    async with running(tmp_path / "a") as a:
        while ends:
            async with stranger(a) as other:
                other.set_stream_handler(BLOB, half)
                with pytest.raises(StreamBroken):
                    await a.fetch_blob(str(other.get_id()), b"d" * 32, 0, 10)


@in_trio
async def test_a_peer_that_reads_nothing_is_cut_off_all_the_same(tmp_path):
    """Stock, closing waits until the goodbye is written; cut off meanwhile, it has closed nothing and never does."""

    async def never(size: int | None = None) -> bytes:
        await trio.sleep_forever()

    async with running(tmp_path / "a") as a, stranger() as other, trio.open_nursery() as nursery:
        await a.dial(str(other.get_addrs()[0]))
        peer, swarm = other.get_id(), a._host.get_network()
        (their_connection,) = other.get_network().get_connections()
        their_connection.muxed_conn.secured_conn.read = never
        (connection,) = swarm.get_connections(peer)

        async def fill() -> None:
            with contextlib.suppress(Exception):
                while True:
                    await connection.muxed_conn._write_frame(bytes(1 << 16))

        nursery.start_soon(fill)
        written = -1
        while written != connection.muxed_conn.bytes_out:
            written = connection.muxed_conn.bytes_out
            await trio.sleep(0.2)
        assert not connection.is_closed
        a.shut_out(str(peer), "reads nothing")
        await until(lambda: not swarm.get_connections(peer), 5)
        nursery.cancel_scope.cancel()


@pytest.mark.slow
@in_trio
async def test_a_frozen_peer_is_dropped(tmp_path):
    """Stock, a peer that answers nothing stays connected, and every call to it costs ten seconds."""
    async with running(tmp_path / "a", health_seconds=1.0) as a, stranger(a) as other:
        assert a.watch.is_connected(str(other.get_id()))

        async def never(stream):
            await trio.sleep_forever()

        # Its connection stands, its kernel acknowledges, and no stream is ever answered.
        other.get_network().set_stream_handler(never)
        await until(lambda: not a.watch.is_connected(str(other.get_id())), 30)


@in_trio
async def test_the_place_of_a_host_that_closes_is_free_even_if_its_goodbye_takes_too_long(tmp_path, monkeypatch):
    async with running(tmp_path / "a") as a:
        async with running(tmp_path / "b") as b:
            await b.dial(a.addresses()[0])
            await until(lambda: a.gate.places() == 1)
            monkeypatch.setattr(guards, "CLOSE_SECONDS", 0)
        await until(lambda: a.gate.places() == 0, seconds=10)  # without its socket closed, more than twenty
