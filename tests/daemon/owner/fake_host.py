"""A machine that a test scripts: a bus by dbus-daemon with services on it, and a folder of files."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from jeepney import (
    DBusAddress,
    DBusErrorResponse,
    HeaderFields,
    Message,
    MessageType,
    message_bus,
    new_error,
    new_method_return,
    new_signal,
)
from jeepney.fds import FileDescriptor
from jeepney.io.blocking import DBusConnection, Proxy, open_dbus_connection

CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>
"""
PATH = "/org/freedesktop/login1/session/"


@dataclass
class Session:
    """A session as logind tells it; ``idle_since_ms`` 0: it is not idle."""

    user: str = "anna"
    uid: int = 1000
    seat: str = "seat0"
    kind: str = "user"
    state: str = "active"
    idle_since_ms: int = 0
    locked: bool = False


@dataclass
class FakeService:
    """A program on a bus, whose address it knows; while ``silent``, nothing is answered."""

    address: str
    silent: bool = False
    connection: DBusConnection | None = None

    def reply(self, message: Message) -> Message:
        raise NotImplementedError

    def serve(self, connection: DBusConnection) -> None:
        self.connection = connection
        try:
            while True:
                message = connection.receive()
                if message.header.message_type is MessageType.method_call and not self.silent:
                    connection.send(self.reply(message))
        except (OSError, ConnectionError, DBusErrorResponse):
            return


@dataclass
class FakeLogind(FakeService):
    """The login manager: a test changes ``sessions`` and ``inhibitors``."""

    sessions: dict[str, Session] = field(default_factory=dict)
    inhibitors: list[tuple[str, str, str, str, int, int]] = field(default_factory=list)
    delays: list[int] = field(default_factory=list)  # the ends of pipes whose others hold up a sleep

    def sleep(self, *, going: bool) -> None:
        """Say that the machine is about to sleep, or that it is awake again."""
        manager = DBusAddress(PATH.removesuffix("/session/"), interface="org.freedesktop.login1.Manager")
        assert self.connection
        self.connection.send(new_signal(manager, "PrepareForSleep", "b", (going,)))

    def is_delayed(self) -> bool:
        """Whether somebody holds up the sleep."""
        return any(not select.select([end], [], [], 0)[0] for end in self.delays)

    def reply(self, message: Message) -> Message:
        fields = message.header.fields
        match fields[HeaderFields.member]:
            case "ListSessions":
                rows = [(name, row.uid, row.user, row.seat, PATH + name) for name, row in self.sessions.items()]
                return new_method_return(message, "a(susso)", (rows,))
            case "Inhibit" if message.body[0] == "sleep" and message.body[3] == "delay":
                ours, theirs = os.pipe()
                self.delays.append(ours)
                return new_method_return(message, "h", (FileDescriptor(theirs),))
            case "ListInhibitors":
                return new_method_return(message, "a(ssssuu)", (self.inhibitors,))
            case "GetAll" if session := self.sessions.get(fields[HeaderFields.path].removeprefix(PATH)):
                facts = {
                    "Class": ("s", session.kind),
                    "State": ("s", session.state),
                    "LockedHint": ("b", session.locked),
                    "IdleHint": ("b", bool(session.idle_since_ms)),
                    "IdleSinceHint": ("t", session.idle_since_ms * 1000),
                }
                return new_method_return(message, "a{sv}", (facts,))
            case _:
                return new_error(message, "org.freedesktop.DBus.Error.UnknownMethod")


@dataclass
class FakeNetworkManager(FakeService):
    """The network's manager, which says how the link is paid."""

    metered: int = 0

    def reply(self, message: Message) -> Message:
        if message.header.fields[HeaderFields.member] == "Get" and message.body[1] == "Metered":
            return new_method_return(message, "v", (("u", self.metered),))
        return new_error(message, "org.freedesktop.DBus.Error.UnknownMethod")


@dataclass
class FakeMutter(FakeService):
    """GNOME's compositor, which knows for how long nobody has touched keyboard or mouse."""

    idle_ms: int = 0

    def reply(self, message: Message) -> Message:
        if message.header.fields[HeaderFields.member] == "GetIdletime":
            return new_method_return(message, "t", (self.idle_ms,))
        return new_error(message, "org.freedesktop.DBus.Error.UnknownMethod")


@dataclass
class FakeDesktop(FakeService):
    """A desktop that shows notices: title and text of each."""

    notifications: list[tuple[str, str]] = field(default_factory=list)

    def reply(self, message: Message) -> Message:
        if message.header.fields[HeaderFields.member] == "Notify":
            self.notifications.append(message.body[3:5])
            return new_method_return(message, "u", (len(self.notifications),))
        return new_error(message, "org.freedesktop.DBus.Error.UnknownMethod")


S = TypeVar("S", bound=FakeService)


@contextmanager
def fake_bus(folder: Path) -> Iterator[str]:
    """A bus's address, for ``DBUS_SYSTEM_BUS_ADDRESS`` or ``DBUS_SESSION_BUS_ADDRESS``."""
    if shutil.which("dbus-daemon") is None:
        pytest.skip("the system's bus is a dbus-daemon of this test: apt install dbus")
    configuration, socket = folder / "bus.conf", folder / "bus"
    configuration.write_text(CONFIGURATION.format(socket=socket))
    command = ["dbus-daemon", f"--config-file={configuration}", "--nofork", "--print-address"]
    bus = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert bus.stdout
        yield bus.stdout.readline().strip()
    finally:
        bus.terminate()
        bus.wait()


def serve(service: S, name: str) -> S:
    """Has a service answer on its bus, under a name there."""
    connection = open_dbus_connection(service.address, enable_fds=True)
    Proxy(message_bus, connection).RequestName(name)
    threading.Thread(target=service.serve, args=(connection,), daemon=True).start()
    return service


@contextmanager
def fake_logind(folder: Path) -> Iterator[FakeLogind]:
    """A bus with a login manager."""
    with fake_bus(folder) as address:
        yield serve(FakeLogind(address), "org.freedesktop.login1")


def write_files(root: Path, files: dict[str, object]) -> None:
    """Files below ``root``, as the kernel has them."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{content}\n")


def typed(root: Path, terminal: str, at_ms: int) -> None:
    """Somebody types at a terminal."""
    write_files(root, {f"dev/{terminal}": ""})
    os.utime(root / "dev" / terminal, (at_ms / 1000, at_ms / 1000))
