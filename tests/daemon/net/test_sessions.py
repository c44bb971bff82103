"""Which exchanges run with whom: over streams in memory, between real logs."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from autoresearch_daemon.peers import sync_sessions
from autoresearch_daemon.peers.ingest import RefusedRecords
from autoresearch_daemon.peers.sync_sessions import Sessions

from autoresearch.errors import AutoresearchError
from autoresearch.log.log import Log
from autoresearch.log.sync.index import KeyIndex
from autoresearch.record.record import Network
from tests.record.making import NETWORK, NOW_MS, key, pairs, run_body, sealed


class Stream:
    """One end of a stream in memory."""

    def __init__(self, peer, incoming, outgoing):
        self.peer = peer
        self._in, self._out = incoming, outgoing
        self.reason = None
        self.passed = asyncio.Event()
        self.passed.set()

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, error, trace):
        self.abandon("broken off" if kind else "")

    async def send(self, data):
        await self.passed.wait()
        await self._out.put(data)
        await asyncio.sleep(0)

    async def receive(self):
        data = await self._in.get()
        if isinstance(data, str):
            if data:
                raise AutoresearchError(data)
            return None
        return data

    def abandon(self, reason):
        if self.reason is None:
            self.reason = reason
            self._out.put_nowait(reason)


class Node:
    """Sessions over a log; its streams reach the nodes it knows."""

    def __init__(self, folder, name):
        self.name = name
        self.log = Log.open(folder / f"{name}.sqlite", NETWORK)
        self.index = KeyIndex()
        self.log.writer.on_change = lambda came, _: self.index.update(came)
        self.lies = {}
        self.peers = {}
        self.taken = []
        self.gathered = []
        self.refused = RefusedRecords()
        self.streams = []
        self.finished = []
        self.refusals = []
        self.tasks = []
        self.sessions = Sessions(
            self.log,
            lambda: self.index,
            self.raw,
            self,
            refused=self.refused.of,
            on_finished=lambda peer, _: self.finished.append(peer),
            open_stream=self.open_stream,
            me=lambda: self.name,
        )

    def raw(self, ids):
        return [*self.log.records.raw(ids), *(self.lies[record_id] for record_id in ids if record_id in self.lies)]

    def offer(self, record, pair):
        """Give peers these bytes and this signature in a record's place."""
        self.lies[record.id] = pair
        self.index.update([(record.time, record.id)])

    async def gather(self, records, peer):
        """As the daemon does: what comes is in the log, and its keys in the index, later."""
        self.taken += [(raw, peer) for raw, _ in records]
        self.gathered.append((records, peer))

    async def settle(self):
        for records, peer in self.gathered:
            self.refused.add(peer, self.log.writer.ingest(records, now_ms=NOW_MS))
        self.gathered.clear()

    async def open_stream(self, peer):
        outbound, inbound = asyncio.Queue(), asyncio.Queue()
        mine, theirs = Stream(peer, inbound, outbound), Stream(self.name, outbound, inbound)
        self.streams.append(mine)
        other = self.peers[peer]
        self.tasks.append(asyncio.create_task(other.serve(theirs)))
        return mine

    async def serve(self, stream):
        await self.sessions.answer(stream)
        if stream.reason:
            self.refusals.append(stream.reason)
        stream.abandon("")

    def fill(self, author, count):
        made = [sealed(key(author), run_body(float(seq)), seq=seq) for seq in range(1, count + 1)]
        self.log.writer.ingest(pairs(made), now_ms=NOW_MS)


@asynccontextmanager
async def nodes(folder, *names):
    made = {name: Node(folder, name) for name in names}
    for node in made.values():
        node.peers = made
    try:
        async with asyncio.timeout(250):
            yield list(made.values())
    finally:
        for node in made.values():
            await asyncio.gather(*node.tasks, return_exceptions=True)
            node.log.close()


async def quietly(work):
    try:
        await work
    except AutoresearchError:
        return


@pytest.mark.slow
async def test_two_that_call_each_other_at_once_send_everything_once(tmp_path):
    async with nodes(tmp_path, "a", "b") as (a, b):
        a.fill(1, 300)
        b.fill(2, 200)
        await asyncio.gather(quietly(a.sessions.open("b")), quietly(b.sessions.open("a")))
        assert (len(a.taken), len(b.taken)) == (200, 300)
        assert a.refusals == ["a session with this peer is under way"]


@pytest.mark.slow
async def test_an_empty_node_takes_everything_from_one_of_many(tmp_path, monkeypatch):
    monkeypatch.setattr(sync_sessions, "CATCHING_UP_RECORDS", 100)
    async with nodes(tmp_path, "a", "b", "c", "empty") as (a, b, c, empty):
        for node in (a, b, c):
            node.fill(1, 600)
        await asyncio.gather(*(empty.sessions.open(name) for name in "abc"))
        assert len(empty.taken) == 600
        assert len({peer for _, peer in empty.taken}) == 1
        assert sorted(empty.finished) == ["a", "b", "c"]


@pytest.mark.slow
async def test_a_node_that_catches_up_sends_others_away_and_serves_them_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(sync_sessions, "CATCHING_UP_RECORDS", 100)
    async with nodes(tmp_path, "a", "b", "empty") as (a, b, empty):
        for node in (a, b):
            node.fill(1, 3_000)
        catching_up = asyncio.create_task(empty.sessions.open("a"))
        while len(empty.taken) <= 100:  # noqa: ASYNC110
            await asyncio.sleep(0)
        with pytest.raises(AutoresearchError, match="catching up"):
            await b.sessions.open("empty")
        await catching_up
        await b.sessions.open("empty")
        assert len(empty.taken) == 3_000


async def test_a_peer_that_drips_holds_nobody_up_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(sync_sessions, "TURN_SECONDS", 0.05)
    async with nodes(tmp_path, "a", "b", "c") as (a, b, c):
        b.fill(1, 10)
        c.fill(1, 10)
        slow = asyncio.create_task(quietly(a.sessions.open("c")))
        await asyncio.sleep(0)
        a.streams[0].passed.clear()
        await a.sessions.open("b")
        assert len(a.taken) == 10
        a.streams[0].passed.set()
        await slow


async def test_a_peer_gets_one_session_at_a_time(tmp_path):
    async with nodes(tmp_path, "a", "b") as (a, b):
        b.fill(1, 300)
        first = await a.open_stream("b")
        await asyncio.sleep(0)
        second = await a.open_stream("b")
        with pytest.raises(AutoresearchError, match="under way"):
            await second.receive()
        first.abandon("")


async def test_a_record_that_is_none_is_asked_of_nobody_again(tmp_path):
    foreign = sealed(key(1), run_body(), network=Network(name="another"))
    async with nodes(tmp_path, "a", "b", "c") as (a, b, c):
        for node in (a, b):
            node.offer(foreign, (foreign.raw, foreign.signature))
        for node in (a, a, b):
            await node.sessions.open("c")
            await asyncio.gather(*node.tasks)
        assert c.taken == [(foreign.raw, "a")]
        assert (a.finished, b.finished) == (["c", "c"], ["c"])


async def test_a_record_with_a_wrong_signature_is_still_asked_of_others(tmp_path):
    good = sealed(key(1), run_body())
    async with nodes(tmp_path, "a", "b", "c") as (a, b, c):
        a.offer(good, (good.raw, key(2).sign(good.raw)))
        b.log.writer.ingest(pairs([good]), now_ms=NOW_MS)
        for node in (a, a, b):
            await node.sessions.open("c")
            await asyncio.gather(*node.tasks)
        assert c.taken == [(good.raw, "a"), (good.raw, "b")]
        assert c.log.records.has([good.id])
