"""Records of others are stored away from the event loop: together, once, and whoever waits learns how it went."""

import asyncio
import hashlib
import sqlite3
from contextlib import asynccontextmanager

import pytest
from autoresearch_daemon.log_thread import LogThread
from autoresearch_daemon.peers import ingest
from autoresearch_daemon.peers.ingest import Ingester, RefusedRecords

from autoresearch.errors import AutoresearchError, Refused
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from tests.record.making import NETWORK, NOW_MS, key, pairs, run_body, sealed


class Place:
    """An ingester over a log, and what it told."""

    def __init__(self, folder):
        self.log = Log.open(folder / "log.sqlite", NETWORK)
        self.thread = LogThread(self.log)
        self.keys = []
        self.thread.on_change = lambda came, went: self.keys.extend(came)
        self.arrived = []
        self.ingester = Ingester(self.thread, self.arrived.append)
        self.file = folder / "log.sqlite"


@asynccontextmanager
async def place(folder):
    made = Place(folder)
    keeping = asyncio.create_task(made.ingester.keep())
    try:
        async with asyncio.timeout(250):
            yield made
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        made.thread.close()
        made.log.close()


def made(author, count):
    return pairs([sealed(key(author), run_body(float(seq)), seq=seq) for seq in range(1, count + 1)])


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    monkeypatch.setattr(ingest, "now_ms", lambda: NOW_MS)


async def test_what_an_exchange_brings_is_one_transaction_and_in_the_log_when_it_has_settled(tmp_path):
    async with place(tmp_path) as node:
        first, second = made(1, 40), made(2, 30)
        await node.ingester.gather(first, "a")
        await node.ingester.gather(second, "b")
        assert node.log.records.count() == 0
        await node.ingester.settle()
        assert node.log.records.count() == len(node.keys) == 70
        assert [(delivery.peer, delivery.pairs) for delivery in node.arrived] == [("a", first), ("b", second)]
        assert {verdict.state for delivery in node.arrived for verdict in delivery.verdicts} == {State.STORED}


async def test_more_than_a_batch_waits_for_no_end(tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "BATCH_RECORDS", 50)
    monkeypatch.setattr(ingest, "GATHER_SECONDS", 1e6)
    async with place(tmp_path) as node:
        records = made(1, 90)
        for start in range(0, 90, 10):
            await node.ingester.gather(records[start : start + 10], "a")
        while node.log.records.count() < 50:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert len(node.keys) <= 50
        await node.ingester.settle()
        assert node.log.records.count() == 90


async def test_an_announced_record_is_stored_at_once(tmp_path):
    async with place(tmp_path) as node:
        await node.ingester.take(made(1, 1), "a")
        while not node.arrived:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert node.log.records.count() == 1


async def test_whoever_waits_learns_that_nothing_can_be_written_and_the_next_are_stored(tmp_path, monkeypatch):
    async with place(tmp_path) as node:
        with monkeypatch.context() as patched:
            patched.setattr(type(node.log.writer), "ingest", full)
            for _ in range(3):
                with pytest.raises(Refused, match="disk is full"):
                    await node.ingester.store(made(1, 3), "a")
        [condition] = node.thread.failures.conditions()
        assert condition.detail.startswith("storing records of others failed 3 times since ")
        assert (condition.detail.endswith("nothing was written"), condition.fix) == (True, "make room and try again")
        await node.ingester.store(made(1, 3), "a")
        assert node.log.records.count() == 3
        assert node.thread.failures.conditions() == []


async def test_an_error_that_nobody_foresaw_is_a_condition_too(tmp_path, monkeypatch):
    async with place(tmp_path) as node:
        with monkeypatch.context() as patched:
            patched.setattr(type(node.log.writer), "ingest", lambda *_, **__: 1 / 0)
            with pytest.raises(AutoresearchError):
                await node.ingester.store(made(1, 3), "a")
        [condition] = node.thread.failures.conditions()
        assert "a fault of autoresearch, ZeroDivisionError" in condition.sentence
        assert "autoresearch node logs" in condition.fix


def full(*_, **__):
    raise Refused("The disk is full; nothing was written.", hint="make room and try again")


async def test_a_record_that_cannot_be_stored_costs_no_other_and_is_asked_of_nobody_again(tmp_path):
    async with place(tmp_path) as node:
        trigger = "CREATE TRIGGER one BEFORE INSERT ON run WHEN NEW.value = 7 BEGIN SELECT RAISE(ABORT, 'no'); END"
        node.log.reader.connection.execute(trigger)
        first, second = made(1, 20), made(2, 5)
        await node.ingester.gather(first, "a")
        await node.ingester.gather(second, "b")
        await node.ingester.settle()
        assert node.log.records.count() == 24
        refused = RefusedRecords()
        for delivery in node.arrived:
            refused.add(delivery.peer, delivery.verdicts)
        assert refused.of("a") == refused.of("b") == {hashlib.sha256(first[6][0]).digest()}


async def test_the_loop_goes_on_while_another_writes(tmp_path):
    async with place(tmp_path) as node:
        other = sqlite3.connect(node.file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        storing = asyncio.create_task(node.ingester.store(made(1, 5), "a"))
        for _ in range(100):
            await asyncio.sleep(0)
        assert node.log.records.count() == 0
        assert not storing.done()
        other.execute("COMMIT")
        other.close()
        await storing
        assert node.log.records.count() == 5
