"""A machine that a test scripts: a system bus by dbus-daemon with a login manager on it, and a folder of files."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from jeepney import DBusErrorResponse, HeaderFields, Message, MessageType, message_bus, new_error, new_method_return
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
    seat: str = "seat0"
    kind: str = "user"
    state: str = "active"
    idle_since_ms: int = 0
    locked: bool = False


@dataclass
class FakeLogind:
    """The login manager: a test changes ``sessions`` and ``inhibitors``; while ``silent``, nothing is answered."""

    address: str
    sessions: dict[str, Session] = field(default_factory=dict)
    inhibitors: list[tuple[str, str, str, str, int, int]] = field(default_factory=list)
    silent: bool = False

    def serve(self, connection: DBusConnection) -> None:
        try:
            while True:
                message = connection.receive()
                if message.header.message_type is MessageType.method_call and not self.silent:
                    connection.send(self._reply(message))
        except (OSError, ConnectionError, DBusErrorResponse):
            return

    def _reply(self, message: Message) -> Message:
        fields = message.header.fields
        match fields[HeaderFields.member]:
            case "ListSessions":
                rows = [(name, 1000, one.user, one.seat, PATH + name) for name, one in self.sessions.items()]
                return new_method_return(message, "a(susso)", (rows,))
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


@contextmanager
def fake_logind(folder: Path) -> Iterator[FakeLogind]:
    """A bus with a login manager. Its address is for ``DBUS_SYSTEM_BUS_ADDRESS``."""
    if shutil.which("dbus-daemon") is None:
        pytest.skip("the system's bus is a dbus-daemon of this test: apt install dbus")
    configuration, socket = folder / "bus.conf", folder / "bus"
    configuration.write_text(CONFIGURATION.format(socket=socket))
    command = ["dbus-daemon", f"--config-file={configuration}", "--nofork", "--print-address"]
    bus = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert bus.stdout
        address = bus.stdout.readline().strip()
        connection = open_dbus_connection(address)
        Proxy(message_bus, connection).RequestName("org.freedesktop.login1")
        manager = FakeLogind(address)
        threading.Thread(target=manager.serve, args=(connection,), daemon=True).start()
        yield manager
    finally:
        bus.terminate()
        bus.wait()


def write_files(root: Path, files: dict[str, object]) -> None:
    """Files below ``root``, as the kernel has them."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{content}\n")


def typed(root: Path, terminal: str, at_ms: int) -> None:
    """Somebody types at a terminal."""
    write_files(root, {f"dev/{terminal}": ""})
    os.utime(root / "dev" / terminal, (at_ms / 1000, at_ms / 1000))
