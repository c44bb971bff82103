"""A person is told what happened here: by a real web server, a real mail server and a real bus on loopback."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from autoresearch_daemon import notices as notices_module
from autoresearch_daemon.events import Events
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.notices import Notices, in_thread
from autoresearch_notices import mail as mail_module

from autoresearch.log.standing.answers import ParticipantView
from autoresearch.notices import NotTaken
from autoresearch.settings import Notify, Settings, load_settings
from tests.daemon.net.networks import until
from tests.daemon.owner.fake_host import FakeDesktop, fake_bus, serve
from tests.extension_packages import install, install_example
from tests.trust.attesting.postoffice import PostOffice, post_office


@dataclass
class Listener:
    """What was posted, and how it answers next."""

    messages: list[dict[str, object]] = field(default_factory=list)
    status: int = 200
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def post(self, request: web.Request) -> web.Response:
        async with self.came:
            self.messages.append(await request.json())
            self.came.notify_all()
        return web.Response(status=self.status)

    async def until(self, count: int) -> list[dict[str, object]]:
        async with self.came, asyncio.timeout(60):
            await self.came.wait_for(lambda: len(self.messages) >= count)
        return self.messages


@pytest.fixture
async def listener() -> AsyncIterator[tuple[Listener, str]]:
    made, app = Listener(), web.Application()
    app.router.add_post("/secret", made.post)
    async with TestServer(app) as server:
        yield made, str(server.make_url("/secret"))


@pytest.fixture
async def node(
    listener: tuple[Listener, str], tmp_path: Path
) -> AsyncIterator[tuple[Listener, Events, Notices, list[Notify]]]:
    local, settings = LocalState(tmp_path / "local.sqlite"), [Notify(webhook=listener[1])]
    events = Events(local)
    notices = Notices(lambda: Settings(notify=settings[0]), events, me, {})
    async with keeping(notices):
        yield listener[0], events, notices, settings
    local.close()


def me() -> ParticipantView:
    return ParticipantView(key="ab" * 32, short="abab", name="anna")


@asynccontextmanager
async def keeping(notices: Notices) -> AsyncIterator[None]:
    task = asyncio.create_task(notices.keep())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    yield
    task.cancel()


def stop(events: Events, why: str, time_ms: int, state: str = "waiting") -> None:
    events.tell("state", state, time_ms, state=state, why=why, reason=f"because of {why}")


async def test_what_the_settings_name_is_posted_and_nothing_else(node) -> None:
    listener, events, notices, _ = node
    notices.greet("webhook")
    events.tell("record", "somebody's run", 1)
    events.tell("verdict", "your run abc is refuted", 2, id="abc", state="refuted")
    stop(events, "in_use", 3)
    stop(events, "disk_low", 4)
    stop(events, "asked", 5, state="working")
    stop(events, "disk_low", 6)
    stop(events, "disk_low", 4 + notices_module.REPEAT_MS)
    stop(events, "runs_done", 7, state="idle")
    messages = await listener.until(5)
    assert [message["event"] for message in messages] == ["hello", "verdict", "stopped", "stopped", "stopped"]
    assert messages[1]["text"] == messages[1]["content"] == "autoresearch of anna, verdict: your run abc is refuted"
    assert (messages[1]["time_ms"], messages[1]["data"]) == (2, {"id": "abc", "state": "refuted"})
    assert [message["text"].rpartition(" ")[2] for message in messages[2:]] == ["disk_low", "disk_low", "runs_done"]


async def test_what_is_not_taken_is_said_and_sent_again_in_order(node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices_module, "AGAIN_SECONDS", 0.01)
    listener, events, notices, _ = node
    listener.status = 500
    events.tell("best", "first", 1)
    events.tell("best", "second", 2)
    await listener.until(3)
    [condition] = notices.conditions()
    assert "it answered 500" in condition.detail
    assert "secret" not in condition.sentence
    listener.status, listener.messages = 204, []
    assert [message["time_ms"] for message in await listener.until(2)][-2:] == [1, 2]
    assert notices.conditions() == []


async def test_an_error_that_comes_when_nobody_waits_any_more_is_no_fault_of_the_loop() -> None:
    faults: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    end = threading.Event()

    def fail() -> None:
        end.wait()
        raise NotTaken("nobody is there")

    call = in_thread(fail)
    waiting = asyncio.create_task(asyncio.wait({call}))
    await asyncio.sleep(0)
    waiting.cancel()
    end.set()
    await until(call.done)
    del call, waiting
    gc.collect()
    assert faults == []


async def test_without_an_address_nobody_is_told(node) -> None:
    listener, events, notices, settings = node
    url = settings[0].webhook
    settings[0] = Notify()
    events.tell("best", "unheard", 1)
    await asyncio.sleep(0)
    notices.greet("webhook")
    settings[0] = Notify(webhook=url, events="demoted")
    events.tell("best", "unwanted", 2)
    events.tell("demoted", "wanted", 3)
    assert [message["time_ms"] for message in await listener.until(1)] == [3]


@pytest.fixture
def events(tmp_path: Path) -> Iterator[Events]:
    local = LocalState(tmp_path / "local.sqlite")
    yield Events(local)
    local.close()


@pytest.fixture
def office(tmp_path: Path) -> Iterator[PostOffice]:
    with post_office(tmp_path) as made:
        yield made


async def test_one_mail_an_hour_collects_what_happened(
    events: Events, office: PostOffice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail_module, "MAIL_SECONDS", 2.0)
    settings = load_settings(tmp_path / "none", office.settings(tmp_path / "password"))[0]
    notices = Notices(lambda: Settings(notify=Notify(mail="me@example.org"), mail=settings.mail), events, me, {})
    async with keeping(notices):
        notices.greet("mail")
        await until(lambda: office.mails)
        events.tell("best", "a\nBcc: evil@example.org\n\nnew best", 1)
        stop(events, "disk_low", 2)
        await until(lambda: len(office.mails) > 1)
    (to, hello), (_, collected) = office.mails
    assert (to, hello["To"], hello["Auto-Submitted"]) == ("me@example.org", "me@example.org", "auto-generated")
    assert hello["Subject"].startswith("autoresearch of anna, hello: this node tells you here of")
    assert collected["Subject"] == "autoresearch of anna: 2 notices (best, stopped)"
    assert collected["Bcc"] is None
    text = collected.get_body(("plain",)).get_content()
    assert "best: a Bcc: evil@example.org new best" in text
    assert "stopped: because of disk_low" in text
    assert 'autoresearch node config set notify.mail ""' in text


async def test_why_no_mail_goes_out_is_a_condition(
    events: Events, office: PostOffice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = Notices(lambda: Settings(notify=Notify(mail="me@example.org")), events, me, {})
    async with keeping(without):
        without.greet("mail")
        await until(without.conditions)
    assert "this node has no mail account: set mail.host" in without.conditions()[0].detail

    office.refused["gone@example.org"] = "550 5.1.1"
    settings = load_settings(tmp_path / "none", office.settings(tmp_path / "password"))[0]
    refused = Notices(lambda: Settings(notify=Notify(mail="gone@example.org"), mail=settings.mail), events, me, {})
    async with keeping(refused):
        refused.greet("mail")
        await until(refused.conditions)
    detail = refused.conditions()[0].detail
    assert "the mail server refuses that address; 1 notice waits, and will be sent again" in detail


async def test_a_desktop_shows_them_and_their_markup_is_text(
    events: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices_module, "AGAIN_SECONDS", 0.01)
    with fake_bus(tmp_path) as address:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        notices = Notices(lambda: Settings(notify=Notify(desktop=True)), events, me, {})
        async with keeping(notices):
            events.tell("best", "<b>first</b>", 1)
            await until(notices.conditions)  # nobody is logged in
            assert "notify.desktop tells nobody: the desktop refuses" in notices.conditions()[0].detail
            desktop = serve(FakeDesktop(address), "org.freedesktop.Notifications")
            await until(lambda: desktop.notifications)
            events.tell("verdict", "second", 2)
            await until(lambda: len(desktop.notifications) > 1)
            assert notices.conditions() == []
    assert desktop.notifications == [
        ("autoresearch of anna, best: <b>first</b>", "&lt;b&gt;first&lt;/b&gt;"),
        ("autoresearch of anna, verdict: second", "second"),
    ]
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path}/nowhere")
    alone = Notices(lambda: Settings(notify=Notify(desktop=True)), events, me, {})
    async with keeping(alone):
        alone.greet("desktop")
        await until(alone.conditions)
    assert "no desktop of this user answers" in alone.conditions()[0].detail


async def test_the_way_of_the_page_tells_by_its_server(
    events: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_example(tmp_path, monkeypatch, "autoresearch.notices")
    posted: list[str] = []

    async def post(request: web.Request) -> web.Response:
        posted.append(await request.text())
        return web.Response(status=200 if len(posted) > 1 else 500)

    monkeypatch.setattr(notices_module, "AGAIN_SECONDS", 0.01)
    app = web.Application()
    app.router.add_post("/topic", post)
    async with TestServer(app) as server:
        address = str(server.make_url("/topic"))
        notices = Notices(lambda: Settings(notify=Notify(extensions=f"ntfy={address}")), events, me, {})
        async with keeping(notices):
            notices.greet("extensions")
            await until(lambda: len(posted) > 1)
            events.tell("best", "new best", 1)
            await until(lambda: len(posted) > 2)
    assert posted[0] == posted[1]
    assert posted[0].startswith("autoresearch of anna, hello: this node tells you here of")
    assert posted[2] == "autoresearch of anna, best: new best"


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        (None, "no installed package registers broken in autoresearch.notices"),
        ("import no_such_module", "can't be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit(0)", "can't be loaded: SystemExit"),
        ("syntax error", "can't be loaded: SyntaxError"),
        ("", "can't be loaded: AttributeError"),
        ("send = 3", "the extension broken is no function"),
        ("def send(): ...", "the extension broken failed: TypeError"),
        ("def send(*_): raise SystemExit(1)", "the extension broken failed: SystemExit: 1"),
        ("def send(*_): raise KeyboardInterrupt", "the extension broken failed: KeyboardInterrupt"),
        ("def send(*_): raise ValueError('\x1b[31mno')", "the extension broken failed: ValueError: "),
        ("async def send(*_): ...", "the extension broken is an async function, where one with def is called"),
        ("def send(*_): return 1", "the extension broken does not say how many it took"),
        ("from autoresearch.notices import Taken\ndef send(*_): return Taken(5)", "does not say how many it took"),
        ("import time\ndef send(*_):\n    while True: time.sleep(1)", "it has not returned for 0.1 s"),
    ],
)
async def test_a_broken_way_is_named_and_stops_nothing(
    node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str | None, problem: str
) -> None:
    if "returned" in problem:
        monkeypatch.setattr(notices_module, "SILENT_SECONDS", 0.1)
    if module is not None:
        install(tmp_path, monkeypatch, module, "[autoresearch.notices]\nbroken = my_package:send\n")
    listener, events, notices, settings = node
    settings[0] = Notify(webhook=settings[0].webhook, extensions="broken=here")
    events.tell("best", "first", 1)
    await until(lambda: any("by broken" in condition.sentence for condition in notices.conditions()))
    sentence = notices.conditions()[-1].sentence
    assert sentence.startswith("notify.extensions tells nobody by broken: ")
    assert problem in sentence
    assert "\x1b" not in sentence
    events.tell("best", "second", 2)
    assert [message["time_ms"] for message in await listener.until(2)] == [1, 2]
    settings[0] = Notify(webhook=settings[0].webhook)
    await until(lambda: notices.conditions() == [])
