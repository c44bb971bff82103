"""A person elsewhere is told what happened here, by messages to a real server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from autoresearch_daemon import webhook as webhook_module
from autoresearch_daemon.events import Events
from autoresearch_daemon.local import LocalState
from autoresearch_daemon.webhook import Webhook

from autoresearch.log.standing.answers import ParticipantView
from autoresearch.settings import Notify


@dataclass
class Listener:
    """What was posted, and how it answers next."""

    heard: list[dict[str, object]] = field(default_factory=list)
    status: int = 200
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def post(self, request: web.Request) -> web.Response:
        async with self.came:
            self.heard.append(await request.json())
            self.came.notify_all()
        return web.Response(status=self.status)

    async def until(self, count: int) -> list[dict[str, object]]:
        async with self.came, asyncio.timeout(60):
            await self.came.wait_for(lambda: len(self.heard) >= count)
        return self.heard


@pytest.fixture
async def listener() -> AsyncIterator[tuple[Listener, str]]:
    made, app = Listener(), web.Application()
    app.router.add_post("/secret", made.post)
    async with TestServer(app) as server:
        yield made, str(server.make_url("/secret"))


@pytest.fixture
async def node(
    listener: tuple[Listener, str], tmp_path: Path
) -> AsyncIterator[tuple[Listener, Events, Webhook, list[Notify]]]:
    local, settings = LocalState(tmp_path / "local.sqlite"), [Notify(webhook=listener[1])]
    events = Events(local)
    told = Webhook(lambda: settings[0], events, lambda: ParticipantView(key="ab" * 32, short="abab", name="anna"))
    keeping = asyncio.create_task(told.keep())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    yield listener[0], events, told, settings
    keeping.cancel()
    local.close()


def stop(events: Events, why: str, time_ms: int, state: str = "waiting") -> None:
    events.tell("state", state, time_ms, state=state, why=why, reason=f"because of {why}")


async def test_what_the_settings_name_is_posted_and_nothing_else(node) -> None:
    listener, events, told, _ = node
    told.greet()
    events.tell("record", "somebody's run", 1)
    events.tell("verdict", "your run abc is refuted", 2, id="abc", state="refuted")
    stop(events, "in_use", 3)
    stop(events, "disk_low", 4)
    stop(events, "asked", 5, state="working")
    stop(events, "disk_low", 6)
    stop(events, "disk_low", 4 + webhook_module.REPEAT_MS)
    stop(events, "runs_done", 7, state="idle")
    heard = await listener.until(5)
    assert [message["event"] for message in heard] == ["hello", "verdict", "stopped", "stopped", "stopped"]
    assert heard[1]["text"] == heard[1]["content"] == "autoresearch of anna, verdict: your run abc is refuted"
    assert (heard[1]["time_ms"], heard[1]["data"]) == (2, {"id": "abc", "state": "refuted"})
    assert [message["text"].rpartition(" ")[2] for message in heard[2:]] == ["disk_low", "disk_low", "runs_done"]


async def test_what_is_not_taken_is_said_and_sent_again_in_order(node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_module, "AGAIN_SECONDS", 0.01)
    listener, events, told, _ = node
    listener.status = 500
    events.tell("best", "first", 1)
    events.tell("best", "second", 2)
    await listener.until(3)
    [condition] = told.conditions()
    assert "it answered 500" in condition.detail
    assert "secret" not in condition.sentence
    listener.status, listener.heard = 204, []
    assert [message["time_ms"] for message in await listener.until(2)][-2:] == [1, 2]
    assert told.conditions() == []


async def test_without_an_address_nobody_is_told(node) -> None:
    listener, events, told, settings = node
    url = settings[0].webhook
    settings[0] = Notify()
    events.tell("best", "unheard", 1)
    await asyncio.sleep(0)
    told.greet()
    settings[0] = Notify(webhook=url, events="demoted")
    events.tell("best", "unwanted", 2)
    events.tell("demoted", "wanted", 3)
    assert [message["time_ms"] for message in await listener.until(1)] == [3]
