"""The pure parts: framing, token buckets, the address book, addresses."""

import random
from types import SimpleNamespace

import msgspec
import pytest
import trio
from autoresearch_daemon.net.host.guards import GuardedYamux, address_group, choose_port, is_peer_id, split_address
from autoresearch_daemon.net.host.streams import FrameError, Meters, TokenBucket, first_frame, frame, varint
from autoresearch_daemon.net.model import (
    ADDRESSES_MAX,
    CONTACTS_MAX,
    RETRY_SECONDS_MAX,
    RETRY_SECONDS_MAX_PERSISTENT,
    AddressBook,
    Greeting,
    decode_greeting,
    device_statement,
    encode_greeting,
    load_book,
    proven_device,
    write_book,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.record.making import key

PEER = "12D3KooWJ3Q6Vxk8nN2e8hyTgSTqvEoN6yQrGrHF5NoNqEDzGnbT"


@given(st.lists(st.binary(max_size=300)), st.integers(1, 50))
def test_frames_come_out_as_they_went_in_however_they_are_cut(data, cut):
    wire = b"".join(map(frame, data))
    buffer, frames = bytearray(), []
    for start in range(0, len(wire), cut):
        buffer += wire[start : start + cut]
        while place := first_frame(buffer, 300):
            frames.append(bytes(buffer[place[0] : place[1]]))
            del buffer[: place[1]]
    assert frames == data
    assert not buffer


@given(st.binary(max_size=20))
def test_any_bytes_are_a_frame_the_beginning_of_one_or_refused(junk):
    try:
        place = first_frame(bytearray(junk), 10)
    except FrameError:
        return
    assert place is None or junk[: place[1]] == frame(junk[place[0] : place[1]])


@pytest.mark.parametrize("wrong", [varint(11), b"\x80\x00", b"\xff\xff\xff\xff\x01"])
def test_lengths_that_break_the_rules_are_refused_at_once(wrong):
    with pytest.raises(FrameError):
        first_frame(bytearray(wrong), 10)


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(0, 200)), max_size=50))
def test_a_bucket_lets_through_its_burst_and_then_its_rate(steps):
    bucket, now, taken = TokenBucket(rate=10, burst=100, now=0), 0.0, 0
    for pause, amount in steps:
        now += pause
        now += bucket.take(amount, now)  # a peer that waits as it is told
        taken += amount
        assert taken <= 100 + 10 * now + 1e-6


def test_a_bucket_makes_nobody_wait_who_stays_below_the_rate():
    bucket = TokenBucket(rate=8, burst=1, now=0)
    assert all(bucket.take(1, number / 8) == 0 for number in range(100))


def test_pauses_double_up_to_a_bound_and_are_never_equal():
    dice, book = random.Random(1), AddressBook()
    book.learn("p", ["/ip4/1.2.3.4/tcp/1"])
    pauses = []
    for _ in range(20):
        book.failed("p", 0, 5.0, dice)
        pauses.append(book.contacts["p"].next_ms / 1000)
    assert 2.5 <= pauses[0] <= 7.5
    assert RETRY_SECONDS_MAX / 2 <= pauses[-1] <= RETRY_SECONDS_MAX * 1.5
    assert len(set(pauses)) == 20
    book.learn("p", [], persistent=True)
    book.failed("p", 0, 5.0, dice)
    assert book.contacts["p"].next_ms <= RETRY_SECONDS_MAX_PERSISTENT * 1500


def test_a_new_address_makes_a_peer_due_at_once():
    book = AddressBook()
    book.learn("p", ["/ip4/1.2.3.4/tcp/1"])
    book.failed("p", 0, 5.0, random.Random(1))
    assert book.due(0, set(), 8) == []
    book.learn("p", ["/ip4/1.2.3.4/tcp/2"])
    assert [contact.addresses[0] for contact in book.due(0, set(), 8)] == ["/ip4/1.2.3.4/tcp/2"]


def test_wanted_peers_are_dialled_even_when_no_place_is_free():
    book = AddressBook()
    book.learn("other", ["/ip4/1.2.3.4/tcp/1"])
    book.learn("wanted", ["/ip4/1.2.3.4/tcp/2"], persistent=True)
    assert [contact.peer for contact in book.due(0, set(), 0)] == ["wanted"]
    assert [contact.peer for contact in book.due(0, {"wanted"}, 1)] == ["other"]


def test_strangers_cannot_push_known_peers_out_of_the_book():
    book = AddressBook()
    book.learn("wanted", ["/ip4/1.2.3.4/tcp/1"], persistent=True)
    book.learn("seen", ["/ip4/1.2.3.4/tcp/2"])
    book.connected("seen", 1)
    for number in range(2 * CONTACTS_MAX):
        book.learn(f"junk{number}", [f"/ip4/1.2.3.4/tcp/{number}" for number in range(20)])
    assert len(book.contacts) == CONTACTS_MAX
    assert {"wanted", "seen"} <= set(book.contacts)
    assert max(len(contact.addresses) for contact in book.contacts.values()) == ADDRESSES_MAX


def test_a_book_keeps_which_device_a_peer_proved_last(tmp_path):
    book, path = AddressBook(), tmp_path / "peers.json"
    book.proved("nobody knows it", key(1).public)
    book.connected("peer", 1)
    for device_key in (key(1).public, key(2).public, b""):
        book.proved("peer", device_key)
    write_book(path, msgspec.json.encode(book))
    assert {contact.peer: contact.device_key for contact in load_book(path).contacts.values()} == {
        "peer": key(2).public
    }


def test_a_damaged_book_is_an_empty_one(tmp_path):
    path = tmp_path / "peers.json"
    assert load_book(path) == AddressBook()
    write_book(path, b'{"contacts": {"p": {"peer": 3}}}')
    assert load_book(path) == AddressBook()
    write_book(path, b'{"port": 4001}')
    assert load_book(path).port == 4001
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "names", "fine"),
    [
        (f"/ip4/192.0.2.1/tcp/4001/p2p/{PEER}", False, True),
        (f"/ip6/2001:db8::1/tcp/4001/p2p/{PEER}", False, True),
        (f"/dns4/example.org/tcp/4001/p2p/{PEER}", True, True),
        (f"/dns4/example.org/tcp/4001/p2p/{PEER}", False, False),
        (f"/ip4/192.0.2.1/udp/4001/p2p/{PEER}", False, False),
        (f"/ip4/0.0.0.0/tcp/4001/p2p/{PEER}", False, False),
        (f"/ip4/224.0.0.1/tcp/4001/p2p/{PEER}", False, False),
        (f"/ip4/192.0.2.1/tcp/0/p2p/{PEER}", False, False),
        (f"/ip4/192.0.2.1/tcp/65536/p2p/{PEER}", False, False),
        (f"/ip4/192.0.2.1/tcp/²/p2p/{PEER}", False, False),
        ("/ip4/192.0.2.1/tcp/4001/p2p/nobody", False, False),
        ("/ip4/192.0.2.1/tcp/4001", False, False),
        (f"/ip4/192.0.2.1/tcp/4001/p2p/{PEER}/p2p-circuit", False, False),
        ("", False, False),
        ("/" * 5000, False, False),
    ],
)
def test_addresses_that_are_dialled(text, names, fine):
    parts = split_address(text, names=names)
    assert parts == tuple(text.split("/p2p/")) if fine else parts is None


@given(st.text(max_size=100))
def test_any_text_is_an_address_or_none(text):
    assert split_address(text) is None or text.startswith("/ip")
    assert is_peer_id(text) in {True, False}


def test_subscribers_of_one_network_count_as_one_address():
    assert address_group("2001:db8::1") == address_group("2001:db8::2:3")
    assert address_group("2001:db8:0:1::1") != address_group("2001:db8::1")
    assert address_group("::ffff:192.0.2.1") == address_group("192.0.2.1") == "192.0.2.1"
    assert address_group("fe80::1%eth0") == address_group("fe80::2")


def test_the_port_of_the_last_start_is_taken_when_it_is_free():
    assert choose_port("/ip4/127.0.0.1/tcp/0", 0) == "/ip4/127.0.0.1/tcp/0"
    assert choose_port("/ip4/127.0.0.1/tcp/0", 39_871) == "/ip4/127.0.0.1/tcp/39871"


def test_exchanges_of_one_peer_are_slowed_and_those_of_others_are_not():
    meters = Meters(SimpleNamespace(get_connections=list), lambda: 0, 0, AddressBook())

    async def ask() -> list[float]:
        return [meters.session_delay("greedy") for _ in range(60)] + [meters.session_delay("other")]

    *greedy, other = trio.run(ask)
    assert greedy[:20] == [0.0] * 20
    assert greedy[-1] > 60
    assert other == 0.0


def test_the_bytes_of_a_day_count_over_a_restart_and_not_over_midnight():
    day_ms, mib = 24 * 3600 * 1000, 1 << 20
    now, book = [20_000 * day_ms], AddressBook()
    muxed = object.__new__(GuardedYamux)

    class Connection:
        muxed_conn = muxed

    connection = Connection()

    def move(moved_in, moved_out):
        muxed.bytes_in, muxed.bytes_out = moved_in, moved_out

    def started():
        move(0, 0)
        swarm = SimpleNamespace(get_connections=lambda: [connection])
        return Meters(swarm, lambda: now[0], 10 * mib, book)

    first = started()
    move(4 * mib, 5 * mib)
    assert first.today() == (4 * mib, 5 * mib)
    move(4 * mib + 100, 5 * mib)
    first.today()
    assert (book.day_in, book.day_out) == (4 * mib, 5 * mib), "the book does not change with each ping"
    assert first.why_no_blobs() == ""
    first.end()
    assert (book.day_in, book.day_out) == (4 * mib + 100, 5 * mib)
    move(4 * mib, 5 * mib)
    first.end()

    again = started()
    assert again.today() == (4 * mib, 5 * mib)
    move(mib, 0)
    assert again.why_no_blobs() == "today's bytes are used up"
    now[0] += day_ms
    assert again.today() == (0, 0)
    assert again.why_no_blobs() == ""
    assert started().today() == (0, 0)


def test_a_peer_proves_which_device_it_has_and_nobody_says_it_of_another_s():
    network, device = b"n" * 16, key(1)
    proof = device.sign(device_statement(network, PEER))

    def decoded(**changes):
        fields = {"agent": "a", "network": network, "time_ms": 0, "device_key": device.public, "device_proof": proof}
        return decode_greeting(encode_greeting(Greeting(**fields | changes)))

    assert proven_device(decoded(), network, PEER) == device.public
    assert proven_device(decoded(), network, "12D3other") == b"", "another peer repeats it"
    assert proven_device(decoded(network=b"m" * 16), network, PEER) == b""
    assert proven_device(decoded(device_key=key(2).public), network, PEER) == b""
    assert proven_device(decoded(device_proof=b""), network, PEER) == b""
    assert proven_device(decoded(device_key=b"short", device_proof=b"x"), network, PEER) == b""
    assert decode_greeting(encode_greeting(Greeting(agent="old", network=network, time_ms=0))).device_key == b""
