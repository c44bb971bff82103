"""What a machine shows: files as the kernel has them, a login manager on a real bus, and sources that hang."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from autoresearch_daemon.owner import host as host_module
from autoresearch_daemon.owner import sleep as sleep_module
from autoresearch_daemon.owner.host import LocalMachine, Source, heat, mains
from autoresearch_daemon.owner.idle import MUTTER, input_devices
from autoresearch_daemon.owner.rules import Heat, Reading, Use, refusals
from autoresearch_daemon.owner.sleep import Sleep
from autoresearch_daemon.owner.watch import OwnerWatch
from autoresearch_daemon.service.effects import Cancel
from autoresearch_daemon.service.inputs import Blocked, Finished, Proposed

from autoresearch.settings import Settings, Work
from autoresearch.words import WHY_SENTENCES, Why, WorkState
from tests.daemon.net.networks import until
from tests.daemon.owner.fake_host import (
    FakeLogind,
    FakeMutter,
    FakeNetworkManager,
    Session,
    fake_logind,
    serve,
    typed,
    write_files,
)
from tests.daemon.service_nodes import RUN, assignment_of, key, of, started

NOW = 1_800_000_000_000
IDLE = Work(only_idle=10)


@pytest.fixture
def logind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLogind]:
    (tmp_path / "dev").mkdir()
    with fake_logind(tmp_path) as manager:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", manager.address)
        yield manager


async def sentence(host: LocalMachine, now_ms: int = NOW, work: Work = IDLE) -> str:
    reading = await host.read(work, now_ms, running=False)
    return next((refusal.sentence for refusal in refusals(work, reading, {}).values()), "")


BATTERY = {"bat/type": "Battery", "bat/status": "Discharging"}


@pytest.mark.parametrize(
    ("files", "is_on_mains"),
    [
        ({}, True),  # a machine without a battery
        ({"mouse/type": "Battery", "mouse/scope": "Device", "mouse/status": "Discharging"}, True),
        ({**BATTERY, "ac/type": "Mains", "ac/online": "0"}, False),
        ({**BATTERY, "ac/type": "Mains", "ac/online": "1"}, False),  # the plug is too weak
        (
            {**BATTERY, "bat/status": "Full", "ac/type": "Mains", "ac/online": "0", "c/type": "USB", "c/online": "1"},
            True,
        ),
        ({"bat/type": "Battery", "bat/status": "Not charging", "ac/type": "Mains", "ac/online": "0"}, False),
        ({"bat/type": "Battery", "bat/status": "Charging"}, True),
        ({"bat/type": "Battery", "bat/status": "Unknown"}, None),
    ],
)
def test_mains(tmp_path: Path, files: dict[str, object], is_on_mains: bool | None) -> None:
    tmp_path.joinpath("supplies").mkdir()
    write_files(tmp_path / "supplies", files)
    assert mains(tmp_path / "supplies") is is_on_mains


def test_the_hottest_sensor_of_the_processor_and_not_that_of_a_disk(tmp_path: Path) -> None:
    chip, disk = "hwmon/hwmon1", "hwmon/hwmon2"
    write_files(tmp_path, {f"{disk}/name": "nvme", f"{disk}/temp1_input": "99000"})
    assert heat(tmp_path) is None
    write_files(tmp_path, {f"{chip}/name": "coretemp", f"{chip}/temp1_input": "71000", f"{chip}/temp2_input": "83500"})
    write_files(tmp_path, {f"{chip}/temp2_label": "Core 0", "thermal/thermal_zone0/type": "acpitz"})
    assert heat(tmp_path) == Heat("coretemp Core 0", 83.5)


async def test_memory_and_what_waits_for_it(tmp_path: Path) -> None:
    waits = "some avg10=31.40 avg60=2.00 avg300=0.10 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0"
    write_files(tmp_path, {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:  2048 kB", "proc/pressure/memory": waits})
    reading = await LocalMachine(tmp_path).read(Work(pause_memory_mib=1), NOW, running=False)
    assert (reading.free_bytes, reading.pressure) == (2 << 20, 31.4)


async def test_only_what_the_settings_name_is_asked(tmp_path: Path) -> None:
    assert await LocalMachine(tmp_path).read(Work(), NOW, running=True) == Reading(NOW)


async def test_sessions_of_people_at_a_seat_count_until_they_are_idle(logind: FakeLogind, tmp_path: Path) -> None:
    host = LocalMachine(tmp_path)
    assert await sentence(host) == "", "nobody is logged in"
    logind.sessions = {"1": Session(), "c1": Session(user="gdm", kind="greeter"), "2": Session(seat="")}
    assert "by the session of anna on seat0" in await sentence(host)
    logind.sessions["1"].idle_since_ms = NOW - 599_000
    assert "10 min without use" in await sentence(host)
    logind.sessions["1"].idle_since_ms = NOW - 600_000
    assert await sentence(host) == ""
    logind.inhibitors = [("sleep", "UPower", "Pause", "delay", 0, 1)]
    assert await sentence(host) == ""
    logind.inhibitors.append(("idle:sleep", "mpv", "playing a film", "block", 1000, 7))
    assert "mpv, which keeps the screen on (playing a film)" in await sentence(host)


async def test_a_locked_screen_is_the_last_use_of_a_desktop_that_never_says_that_it_is_idle(
    logind: FakeLogind, tmp_path: Path
) -> None:
    host, minute = LocalMachine(tmp_path), 60_000
    logind.sessions = {"1": Session(locked=True)}
    assert "by the session of anna" in await sentence(host)
    assert "by the session of anna" in await sentence(host, NOW + 9 * minute)
    assert await sentence(host, NOW + 10 * minute) == ""
    logind.sessions["1"].locked = False
    assert "by the session of anna" in await sentence(host, NOW + 11 * minute)
    logind.sessions["1"].locked = True
    assert "by the session of anna" in await sentence(host, NOW + 12 * minute), "it was used in between"


async def test_the_desktop_of_gnome_says_of_itself_when_it_was_used(
    logind: FakeLogind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", logind.address)
    host, mutter = LocalMachine(tmp_path), serve(FakeMutter(logind.address), MUTTER.bus_name)
    logind.sessions = {"1": Session(uid=os.getuid())}
    mutter.idle_ms = 599_000
    assert "10 min without use" in await sentence(host)
    mutter.idle_ms = 600_000
    assert await sentence(host) == "", "logind never says that this session is idle"
    logind.inhibitors = [("idle", "mpv", "playing a film", "block", 1000, 7)]
    assert "mpv, which keeps the screen on" in await sentence(host)
    logind.inhibitors = []
    logind.sessions["2"] = Session(user="ben", uid=os.getuid() + 1)
    assert "by the session of ben" in await sentence(host), "of another's desktop it says nothing"
    del logind.sessions["2"]
    mutter.silent = True
    assert "by the session of anna" in await sentence(host)


def test_keyboard_and_mouse_of_a_mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ioreg"
    program.write_text("#!/bin/sh\nprintf '    | |   \"HIDIdleTime\" = 61000000000\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert input_devices(NOW) == Use(NOW - 61_000, "keyboard or mouse")
    program.write_text("#!/bin/sh\n")
    assert input_devices(NOW) is None


async def test_a_terminal_shows_who_works_by_ssh(logind: FakeLogind, tmp_path: Path) -> None:
    typed(tmp_path, "pts/3", NOW - 30_000)
    typed(tmp_path, "tty", NOW)  # no terminal: the one of the process that opens it
    typed(tmp_path, "null", NOW)
    assert "by terminal pts/3 " in await sentence(LocalMachine(tmp_path))
    typed(tmp_path, "pts/3", NOW - 600_000)
    assert await sentence(LocalMachine(tmp_path)) == ""


@pytest.mark.slow
async def test_no_answer_for_a_minute_is_unknown_and_never_idle(logind: FakeLogind, tmp_path: Path) -> None:
    host, began = LocalMachine(tmp_path), time.monotonic()
    assert await sentence(host) == ""
    logind.silent = True
    assert await sentence(host, NOW + 60_000) == "", "the answer of a minute ago"
    text = await sentence(host, NOW + 61_000)
    assert "unknown: systemd-logind did not answer" in text
    assert time.monotonic() - began < 2 * host_module.DEADLINE_SECONDS + 3
    logind.silent = False
    assert await sentence(host, NOW + 62_000) == ""


async def test_without_a_bus_use_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/nothing")
    text = await sentence(LocalMachine(tmp_path))
    assert "unknown: the terminals' folder and systemd-logind did not answer" in text
    assert "node config set work.idle_unknown work" in text


async def test_a_source_that_hangs_is_asked_once_and_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "DEADLINE_SECONDS", 0.05)
    questions, may_answer = list[int](), threading.Event()

    def ask() -> int:
        questions.append(1)
        may_answer.wait()
        return 7

    source = Source(ask)
    assert [await source.answer() for _ in range(3)] == [None] * 3
    may_answer.set()
    monkeypatch.setattr(host_module, "DEADLINE_SECONDS", 10)
    assert await source.answer() == 7
    assert questions == [1]


async def test_a_link_is_metered_when_the_networks_manager_says_so_and_not_when_it_guesses(
    logind: FakeLogind, tmp_path: Path
) -> None:
    host = LocalMachine(tmp_path)
    assert not await host.is_metered(NOW)  # nobody answers to that name
    manager = serve(FakeNetworkManager(logind.address, metered=1), "org.freedesktop.NetworkManager")
    assert not await host.is_metered(NOW + 1)  # asked once a minute
    answers = []
    for number in range(5):
        manager.metered = number
        answers.append(await host.is_metered(NOW + (1 + number) * host_module.METERED_MS))
    assert answers == [False, True, False, False, False]  # unknown, yes, no, perhaps, perhaps not
    manager.metered, manager.silent = 1, True
    began = time.monotonic()
    assert not await host.is_metered(NOW + 9 * host_module.METERED_MS)
    assert time.monotonic() - began < host_module.DEADLINE_SECONDS + 5


async def test_a_machine_waits_with_its_sleep_until_runs_have_stopped(logind: FakeLogind) -> None:
    calls: list[str] = []
    stopped = asyncio.Event()

    async def going() -> None:
        calls.append("going")
        await stopped.wait()

    keeping = asyncio.create_task(Sleep(going, lambda: calls.append("woke")).keep())
    for _ in range(2):  # each night anew
        await until(logind.is_delayed)
        logind.sleep(going=True)
        await until(lambda: calls[-1:] == ["going"])
        assert logind.is_delayed()
        stopped.set()
        await until(lambda: not logind.is_delayed())
        logind.sleep(going=False)
        await until(lambda: calls[-1:] == ["woke"])
        stopped.clear()
    await until(logind.is_delayed)
    keeping.cancel()
    assert calls == ["going", "woke"] * 2


async def test_a_run_that_does_not_stop_holds_up_no_sleep(logind: FakeLogind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sleep_module, "DELAY_SECONDS", 0.1)
    keeping = asyncio.create_task(Sleep(asyncio.Event().wait, lambda: None).keep())
    await until(logind.is_delayed)
    logind.sleep(going=True)
    await until(lambda: not logind.is_delayed())
    keeping.cancel()


async def test_before_a_sleep_runs_are_stopped_and_after_it_workers_are_new(logind: FakeLogind, tmp_path: Path) -> None:
    node, renewed = started(1), list[str]()
    node.handle(Proposed("w1", assignment_of(node, "w1"), key(1), RUN), 0)
    cancelled = asyncio.Event()

    def take(blocked: Blocked) -> None:
        if of(Cancel, node.handle(blocked, 0)):
            cancelled.set()

    watch = OwnerWatch(
        Settings,
        node.status,
        lambda: None,
        take=take,
        workers=list,
        rest=lambda _: None,
        woke=lambda: renewed.append("w1"),
        host=LocalMachine(tmp_path),
    )
    keeping = asyncio.create_task(watch.keep())
    await until(logind.is_delayed)
    logind.sleep(going=True)
    await cancelled.wait()
    assert logind.is_delayed()
    node.handle(Finished("w1", counted=False), 1)
    await until(lambda: not logind.is_delayed())
    await watch.look()
    assert node.status().reason == WHY_SENTENCES[Why.GOING_TO_SLEEP]
    logind.sleep(going=False)
    await until(lambda: renewed)
    assert node.status().state is WorkState.WORKING
    keeping.cancel()


async def test_what_idle_detect_saw_counts_and_a_file_that_is_none_is_unknown(
    logind: FakeLogind, tmp_path: Path
) -> None:
    host, file = LocalMachine(tmp_path), tmp_path / "run/event_detect/last_active_time.dat"
    assert await sentence(host) == ""
    file.parent.mkdir(parents=True)
    file.write_text(f"{NOW // 1000 - 60}\n")
    assert "a mouse, a terminal or a desktop, as idle_detect saw" in await sentence(host)
    file.write_text("?")
    later = NOW + 30 * 60_000
    assert "unknown: idle_detect's file did not answer" in await sentence(host, later)
