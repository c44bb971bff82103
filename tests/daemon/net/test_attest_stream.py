"""The attestors' stream: offered by attestors alone, small, and not for ever."""

import pytest
import trio
from autoresearch_daemon.net.host.dialling import Unreachable
from autoresearch_daemon.net.host.serving import QUESTIONS as PROTOCOLS
from autoresearch_daemon.net.host.serving import QUESTIONS_SERVED_PER_PEER
from autoresearch_daemon.net.host.streams import QUESTIONS, StreamBroken, frame, varint
from libp2p.custom_types import TProtocol
from libp2p.peer.id import ID

from autoresearch.trust.attestation import MESSAGE_BYTES_MAX
from tests.daemon.net.hosts import in_trio, running, stranger, until, works

# The stream is reset, sometimes before both have agreed what it is.
SENT_AWAY = (StreamBroken, Unreachable)


@in_trio
async def test_an_attestor_answers_and_who_is_none_offers_nothing(tmp_path):
    async with running(tmp_path / "a", attest=True) as attestor, running(tmp_path / "b") as peer:
        await peer.dial(attestor.addresses()[0])
        assert await peer.ask(attestor.peer, "attest", b"abc") == b"cba"
        with pytest.raises(Unreachable):
            await attestor.ask(peer.peer, "attest", b"abc")


@in_trio
async def test_a_question_that_is_too_long_is_no_question(tmp_path):
    async with running(tmp_path / "a", attest=True) as attestor, running(tmp_path / "b") as peer:
        await peer.dial(attestor.addresses()[0])
        with pytest.raises(SENT_AWAY):
            await peer.ask(attestor.peer, "attest", bytes(MESSAGE_BYTES_MAX + 1))
        assert await peer.ask(attestor.peer, "attest", bytes(MESSAGE_BYTES_MAX)) == bytes(MESSAGE_BYTES_MAX)


@pytest.mark.slow
@in_trio
async def test_whoever_asks_without_end_is_not_heard_any_more_and_others_are(tmp_path):
    async with running(tmp_path / "a", attest=True) as attestor, running(tmp_path / "b") as flooder:
        await flooder.dial(attestor.addresses()[0])
        for _ in range(int(QUESTIONS[1])):
            await flooder.ask(attestor.peer, "attest", b"abc")
        with pytest.raises(SENT_AWAY):
            await flooder.ask(attestor.peer, "attest", b"abc")
        async with running(tmp_path / "c") as peer:
            await peer.dial(attestor.addresses()[0])
            assert await peer.ask(attestor.peer, "attest", b"abc") == b"cba"


@in_trio
async def test_a_peer_has_two_questions_at_a_time(tmp_path):
    async with (
        running(tmp_path / "a", attest=True) as attestor,
        running(tmp_path / "b") as peer,
        trio.open_nursery() as nursery,
    ):
        await peer.dial(attestor.addresses()[0])
        for _ in range(QUESTIONS_SERVED_PER_PEER):
            nursery.start_soon(peer.ask, attestor.peer, "attest", b"wait")
        await until(lambda: attestor.serving._questions.by_peer.get(peer.peer) == QUESTIONS_SERVED_PER_PEER)
        with pytest.raises(SENT_AWAY):
            await peer.ask(attestor.peer, "attest", b"abc")
        nursery.cancel_scope.cancel()


@in_trio
async def test_who_opens_streams_and_says_nothing_keeps_nobody_from_asking(tmp_path):
    async with running(tmp_path / "a", attest=True) as attestor, running(tmp_path / "b") as peer:
        await peer.dial(attestor.addresses()[0])
        for _ in range(QUESTIONS_SERVED_PER_PEER):
            await peer._open(attestor.peer, PROTOCOLS["attest"], MESSAGE_BYTES_MAX)
        assert await peer.ask(attestor.peer, "attest", b"abc") == b"cba"
        assert attestor.serving._questions.by_peer == {}


@pytest.mark.parametrize("wire", [b"", varint(2**27), frame(b"abc")[:2], bytes(1000), b"\xff" * 64])
def test_rubbish_on_the_stream_leaves_the_attestor_whole(tmp_path, wire):
    @in_trio
    async def check():
        async with running(tmp_path / "a", attest=True) as attestor:
            async with stranger(attestor) as other:
                stream = await other.new_stream(ID.from_string(attestor.peer), [TProtocol(PROTOCOLS["attest"])])
                await stream.write(wire)
                await stream.close()
            await works(attestor, tmp_path / "b")

    check()
