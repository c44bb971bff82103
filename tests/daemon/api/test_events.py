"""Events as they happen, after a gap, and under load."""

import asyncio
import json
from collections import Counter
from contextlib import asynccontextmanager

import aiohttp
import msgspec
import pytest
from autoresearch_daemon import local_state
from autoresearch_daemon.api import events
from autoresearch_daemon.events import LISTENER_QUEUE

from autoresearch.ask import client as asking
from autoresearch.ask.node import Event
from autoresearch.errors import NotFound
from tests.daemon.api.conftest import served


class Stream:
    """A listener: the events as a browser's EventSource would see them."""

    def __init__(self, response):
        self.response = response

    async def block(self):
        lines = []
        async for raw in self.response.content:
            line = raw.decode().rstrip("\r\n")
            if not line and lines:
                return lines
            if line:
                lines.append(line)
        return None

    async def next(self):
        """The fields of the next event, or None at the end of the stream."""
        while (lines := await self.block()) is not None:
            if not lines[0].startswith(":"):
                fields = dict(line.split(": ", 1) for line in lines)
                return fields | {"data": json.loads(fields["data"])}
        return None

    async def take(self, count):
        return [await self.next() for _ in range(count)]


@asynccontextmanager
async def listen(client, query="", **headers):
    async with client.session.get(f"{client.base}/v1/events{query}", headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        yield Stream(response)


async def test_a_listener_hears_what_happens(client, node):
    async with listen(client) as stream:
        await node.listened_by(1)
        event = node.events.tell("best", "new best\nin two lines", 5, value=1.25)
        message = await stream.next()
    assert message["id"] == str(event.id)
    assert message["event"] == "best"
    assert message["data"] == {
        "id": event.id,
        "kind": "best",
        "time_ms": 5,
        "text": "new best\nin two lines",
        "data": {"value": 1.25},
    }


async def test_without_a_cursor_the_past_is_not_repeated(client, node):
    node.events.tell("state", "past", 1)
    async with listen(client) as stream:
        await node.listened_by(1)
        node.events.tell("state", "present", 2)
        assert (await stream.next())["data"]["text"] == "present"


@pytest.mark.parametrize("how", ["query", "header", "both"])
async def test_after_a_gap_what_was_missed_comes_first(client, node, how):
    stored = [node.events.tell("state", str(number), number) for number in range(5)]
    query = {"query": f"?since={stored[1].id}", "both": "?since=0"}.get(how, "")
    headers = {} if how == "query" else {"Last-Event-ID": str(stored[1].id)}
    async with listen(client, query, **headers) as stream:
        await node.listened_by(1)
        node.events.tell("state", "5", 5)
        assert [event["data"]["text"] for event in await stream.take(4)] == ["2", "3", "4", "5"]


async def test_what_happens_during_the_replay_comes_once(client, node, monkeypatch):
    node.events.tell("state", "before", 1)
    since = node.events.since

    def replay(number):
        node.events.tell("state", "meanwhile", 2)
        return since(number)

    monkeypatch.setattr(node.events, "since", replay)
    async with listen(client, "?since=0") as stream:
        await node.listened_by(1)
        node.events.tell("state", "after", 3)
        assert [event["data"]["text"] for event in await stream.take(3)] == ["before", "meanwhile", "after"]


async def test_a_cursor_too_old_is_told_so_and_then_hears_what_happens(client, node, monkeypatch):
    monkeypatch.setattr(local_state, "EVENTS_KEPT", 10)
    for number in range(1000):
        node.events.tell("state", str(number), number)
    async with listen(client, "?since=5") as stream:
        stale = await stream.next()
        assert stale["event"] == "stale"
        assert "id" not in stale
        await node.listened_by(1)
        node.events.tell("state", "now", 1)
        assert (await stream.next())["data"]["text"] == "now"


async def test_a_cursor_from_another_life_of_the_daemon_does_not_make_deaf(client, node):
    async with listen(client, "?since=99999") as stream:
        await node.listened_by(1)
        node.events.tell("state", "now", 1)
        assert (await stream.next())["data"]["text"] == "now"


async def test_progress_does_not_move_the_cursor(client, node):
    async with listen(client) as stream:
        await node.listened_by(1)
        node.events.pass_on("progress", "", 1, fraction=0.5)
        message = await stream.next()
    assert message["event"] == "progress"
    assert "id" not in message


async def test_a_listener_that_falls_behind_is_told_so_and_let_go(client, node):
    async with listen(client) as stream:
        await node.listened_by(1)
        for number in range(LISTENER_QUEUE + 2):  # without a pause: nothing can be sent in between
            node.events.tell("state", str(number), number)
        messages = []
        while (event := await stream.next()) is not None:
            messages.append(event)
    assert messages[-1]["event"] == "stale"
    assert "id" not in messages[-1]
    await node.listened_by(0)


@pytest.mark.parametrize("header", ["", "-1", "x", "1.5", "٣", "9" * 17])
async def test_a_cursor_that_is_no_number_is_refused(client, header):
    failure = await client.get("/v1/events", 400, headers={"Last-Event-ID": header})
    assert failure["exit_status"] == 2


async def test_a_listener_that_leaves_is_forgotten(client, node):
    async with listen(client):
        await node.listened_by(1)
    await node.listened_by(0)


async def test_who_waits_for_runs_again_and_again_leaves_no_listener(client, node, tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "REPLAY_SECONDS", 0.01)
    person = asking.Client(tmp_path / "run" / "api.sock")
    for _ in range(events.MAXIMUM_LISTENERS + 1):
        with pytest.raises(NotFound, match="no proposal proposal-9 waits"):
            await asyncio.to_thread(person.ended, "proposal-9")
    await node.listened_by(0)


async def test_an_idle_stream_shows_signs_of_life(client, monkeypatch):
    monkeypatch.setattr(events, "PING_SECONDS", 0.01)
    async with listen(client) as stream:
        assert await stream.block() == [": ping"]


@pytest.mark.slow
async def test_a_thousand_listeners_are_refused_above_the_cap(client, node, tmp_path):
    connecting = asyncio.Semaphore(100)  # fewer than the socket's backlog

    async def connection():
        async with connecting:
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "run" / "api.sock"))
        writer.write(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return await reader.readline(), reader, writer

    held = await asyncio.gather(*(connection() for _ in range(1000)))
    statuses = Counter(status.split()[1] for status, _, _ in held)
    assert statuses == {b"200": events.MAXIMUM_LISTENERS, b"503": 1000 - events.MAXIMUM_LISTENERS}
    failure = await client.get("/v1/events", 503)
    assert failure["error"]
    assert (await client.get("/v1/status"))["state"] == "idle"
    node.events.tell("state", "still here", 1)
    for status, reader, writer in held:
        if status.split()[1] == b"200":
            assert b"still here" in await reader.readuntil(b"}\r\n")
        writer.close()
    await node.listened_by(0)
    async with listen(client):
        await node.listened_by(1)


async def test_stopping_ends_the_streams_cleanly(node, tmp_path):
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(tmp_path / "run" / "api.sock"))) as session:
        async with served(node, tmp_path / "run" / "api.sock"):
            response = await session.get("http://localhost/v1/events")
            await node.listened_by(1)
        assert await response.content.read() == b""
    await node.listened_by(0)


def test_an_event_fits_on_one_line_whatever_it_says():
    event = Event(id=1, kind="state", time_ms=1, text="a\r\nid: 9\n\ndata: x\u2028")
    assert b"\n" not in msgspec.json.encode(event)
