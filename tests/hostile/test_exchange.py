"""Peers that lie in an exchange of records, well-formed, to a real daemon: nothing false is kept, the node stays up."""

from __future__ import annotations

import contextlib
import secrets
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio
from autoresearch_daemon.net.host.serving import SYNC
from libp2p import new_host
from libp2p.peer.peerinfo import info_from_p2p_addr
from multiaddr import Multiaddr

from autoresearch.log.log import Log
from autoresearch.log.sync.index import NONCE_BYTES, KeyIndex
from autoresearch.log.sync.messages import Pair, Type, frame
from autoresearch.log.sync.session import Fetch, Opener, Send, Session, Store
from autoresearch.record.kinds import Note
from autoresearch.record.record import DAY_MS, DEFAULT_NETWORK, Network, Record, seal
from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.net.hosts import LOOPBACK, in_trio, now_ms
from tests.daemon.net.test_daemons import address_of, ids, peers_of
from tests.record.making import key

pytestmark = pytest.mark.slow

MEMORY_BYTES_MAX = 512 << 20
HONEST = count(1000)
Supply = Callable[[Sequence[bytes]], list[Pair]]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One for all that is tried here: it has to bear one thing after the other."""
    settings = {"ENABLED": "true", "LAN": "false", "LISTEN": LOOPBACK}
    names = {f"AUTORESEARCH_NETWORK_{name}": value for name, value in settings.items()}
    made = Daemon(tmp_path_factory.mktemp("exchange") / "home", names).start()
    wait_for(lambda: bool(peers_of(made).addresses))
    yield made
    made.stop()


def note(author: int, seq: int = 1, *, time_ms: int | None = None, network: Network = DEFAULT_NETWORK) -> Record:
    body = Note(topic="insight", text=f"{author} {seq}")
    prev = b"" if seq == 1 else bytes(32)
    return seal(key(author), network, "note", body, seq=seq, prev=prev, time_ms=time_ms or now_ms())


def index_of(records: Sequence[Record]) -> KeyIndex:
    return KeyIndex((record.time, record.id) for record in records)


@asynccontextmanager
async def sync_stream(address: str) -> AsyncIterator[Any]:
    """A stream of the exchange from a plain libp2p host."""
    other = new_host(listen_addrs=[Multiaddr(LOOPBACK)], disable_identify_address_discovery=True)
    info = info_from_p2p_addr(Multiaddr(address))
    async with other.run([Multiaddr(LOOPBACK)]):
        await other.connect(info)
        yield await other.new_stream(info.peer_id, [SYNC])
        with trio.move_on_after(3):
            await other.close()


async def drive(stream: Any, session: Session, supply: Supply) -> int:
    """Play a session to its end, giving whatever ``supply`` gives; returns how many records came."""
    came = 0
    waiting = list(session.start())
    while True:
        while waiting:
            match waiting.pop(0):
                case Send(data):
                    await stream.write(data)
                case Fetch(record_ids):
                    waiting = [*session.supply(supply(record_ids)), *waiting]
                case Store(records):
                    came += len(records)
        if session.over or not (chunk := await stream.read(1 << 16)):
            return came
        waiting = list(session.receive(chunk))


async def play(address: str, index: KeyIndex, supply: Supply) -> None:
    """One session with an index and records that need not fit; being thrown out is an end, too."""
    async with sync_stream(address) as stream:
        with contextlib.suppress(Exception):
            await drive(stream, Opener(DEFAULT_NETWORK, index, secrets.token_bytes(NONCE_BYTES)), supply)


def peak_bytes(process: psutil.Process) -> int:
    """The most resident memory it ever had."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


async def still_well(daemon: Daemon, family: Sequence[psutil.Process]) -> None:
    """The same processes run, never held much, and take an honest peer's record."""
    assert all(process.is_running() for process in family)
    assert sum(peak_bytes(process) for process in family) < MEMORY_BYTES_MAX
    honest = note(next(HONEST))
    await play(address_of(daemon), index_of([honest]), lambda _: [(honest.raw, honest.signature)])
    await trio.to_thread.run_sync(wait_for, lambda: honest.id in ids(daemon))


def forged() -> tuple[Record, Pair]:
    """A record of one key with the signature of another."""
    made = note(1)
    return made, (made.raw, key(2).sign(made.raw))


def foreign() -> tuple[Record, Pair]:
    """A record that is valid in another network."""
    made = note(1, network=Network(name="another"))
    return made, (made.raw, made.signature)


def early() -> tuple[Record, Pair]:
    """A record of next year."""
    made = note(1, time_ms=now_ms() + 365 * DAY_MS)
    return made, (made.raw, made.signature)


def cut_short() -> tuple[Record, Pair]:
    """A record without its last byte."""
    made = note(1)
    return made, (made.raw[:-1], made.signature)


@in_trio
@pytest.mark.parametrize(("make", "times"), [(forged, 3), (foreign, 1), (early, 1), (cut_short, 3)])
async def test_what_an_exchange_brings_is_admitted_like_everything_else(daemon, make, times):
    """What is early waits, and is asked for once; so is what no signature makes a record. Each caller is a new peer."""
    before, family = ids(daemon), daemon.tree()
    record, pair = make()
    fetches: list[Sequence[bytes]] = []

    def supply(record_ids: Sequence[bytes]) -> list[Pair]:
        fetches.append(record_ids)
        return [pair]

    for _ in range(3):
        await play(address_of(daemon), index_of([record]), supply)
    assert len(fetches) == times
    await still_well(daemon, family)
    assert len(ids(daemon) - before) == 1, "the honest one alone"


@in_trio
async def test_records_that_are_listed_and_never_given(daemon):
    before, family = ids(daemon), daemon.tree()
    phantoms = KeyIndex((now_ms() + number, secrets.token_bytes(32)) for number in range(20_000))
    fetches: list[Sequence[bytes]] = []
    for _ in range(3):
        await play(address_of(daemon), phantoms, lambda record_ids: fetches.append(record_ids) or [])
    assert sum(map(len, fetches)) == 3 * 20_000
    await still_well(daemon, family)
    assert len(ids(daemon) - before) == 1


@in_trio
async def test_others_than_those_that_were_wanted(daemon):
    before, family = ids(daemon), daemon.tree()
    listed, others = note(1), [note(author) for author in range(2, 30)]
    await play(address_of(daemon), index_of([listed]), lambda _: [(other.raw, other.signature) for other in others])
    await still_well(daemon, family)
    assert not {other.id for other in others} & ids(daemon)
    assert len(ids(daemon) - before) == 1


@in_trio
async def test_fingerprints_that_never_agree(daemon):
    """Each answer differs from what the question was about: the descent ends all the same."""
    family = daemon.tree()
    answers = 0
    async with sync_stream(address_of(daemon)) as stream:
        hello = b"\x01" + DEFAULT_NETWORK.id + secrets.token_bytes(NONCE_BYTES) + b"\x00\x00"
        with contextlib.suppress(Exception):
            await stream.write(frame(Type.HELLO, hello))
            while await stream.read(1 << 16):
                answers += 1
                await stream.write(frame(Type.RECONCILE, b"\x40" + secrets.token_bytes(16)))
    assert 0 < answers < 100
    await still_well(daemon, family)


@in_trio
async def test_a_batch_that_unpacks_without_end(daemon):
    family = daemon.tree()
    bomb = b"\x01" + zlib.compress(bytes(200 << 20), 9)
    for _ in range(3):
        async with sync_stream(address_of(daemon)) as stream:
            with contextlib.suppress(Exception):
                hello = b"\x01" + DEFAULT_NETWORK.id + secrets.token_bytes(NONCE_BYTES) + b"\x00\x00"
                await stream.write(frame(Type.HELLO, hello))
                await stream.read(1 << 16)
                await stream.write(frame(Type.RECORDS, bomb))
                assert not await stream.read(1 << 16)
    await still_well(daemon, family)


@in_trio
async def test_a_flood_of_one_key_keeps_within_its_quota_and_others_are_heard(daemon):
    """17,000 valid records at once, more than one key may write in a day."""
    family, yesterday = daemon.tree(), now_ms() - DAY_MS
    flood = {made.id: made for made in (note(1, seq, time_ms=yesterday) for seq in range(1, 17_001))}

    def supply(record_ids: Sequence[bytes]) -> list[Pair]:
        return [(flood[record_id].raw, flood[record_id].signature) for record_id in record_ids]

    await play(address_of(daemon), index_of(list(flood.values())), supply)
    await still_well(daemon, family)
    with Log.open(daemon.paths.log, DEFAULT_NETWORK, read_only=True) as log:
        assert log.records.count(author=key(1).public) == DEFAULT_NETWORK.per_day
