"""Whether somebody uses this machine: evidence with a source, from terminals, login manager and desktop."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from jeepney import DBusAddress, DBusErrorResponse, MessageFlag, Properties, new_method_call
from jeepney.io.asyncio import DBusRouter, open_dbus_router
from jeepney.wrappers import unwrap_msg

from autoresearch.paths import session_bus
from autoresearch_daemon.owner.rules import Use

NAME = "org.freedesktop.login1"
MANAGER = DBusAddress("/org/freedesktop/login1", bus_name=NAME, interface=f"{NAME}.Manager")
# GNOME's compositor. Others are not asked: KDE's gives no idle time under Wayland, and programs disagree
# about its unit.
MUTTER = DBusAddress(
    "/org/gnome/Mutter/IdleMonitor/Core",
    bus_name="org.gnome.Mutter.IdleMonitor",
    interface="org.gnome.Mutter.IdleMonitor",
)
# macOS: since when neither keyboard nor mouse was touched, in ns.
_INPUT_IDLE = re.compile(r'"HIDIdleTime" = (\d+)')
# What a question to a bus raises when nobody answers.
UNANSWERED = (OSError, EOFError, RuntimeError, ValueError, DBusErrorResponse)


def terminals(devices: Path) -> Use | None:
    """When a program read from a terminal last, which is when somebody typed; also those of SSH. None: there is none.

    The kernel notes it every eight seconds. Raises OSError where the folder can't be read.
    """
    uses = []
    for file in [*devices.iterdir(), *(devices / "pts").glob("[0-9]*")]:
        if file.parent == devices and not (
            file.name.startswith("tty") and file.name[3:].isdecimal() and file.name != "tty0"
        ):
            continue
        with suppress(OSError):  # closed meanwhile
            uses.append(Use(round(file.stat().st_atime * 1000), f"terminal {file.relative_to(devices)}"))
    return max(uses, key=lambda use: use.last_ms, default=None)


def detected(file: Path) -> Use | None:
    """When idle_detect saw a mouse, a terminal or a desktop used last; None where it does not run.

    It writes Unix seconds as text. See https://github.com/jamescowens/idle_detect. Raises ValueError for other text.
    """
    with suppress(FileNotFoundError):
        return Use(int(file.read_text()) * 1000, "a mouse, a terminal or a desktop, as idle_detect saw")
    return None


async def desktop_idle_ms() -> int | None:
    """For how many ms nobody has used this user's desktop, as GNOME's compositor says; None: nobody says.

    Raises what ``UNANSWERED`` names.
    """
    async with open_dbus_router(session_bus()) as router:
        question = new_method_call(MUTTER, "GetIdletime")
        question.header.flags |= MessageFlag.no_auto_start
        (idle_ms,) = unwrap_msg(await router.send_and_get_reply(question))
        return int(idle_ms)


def input_devices(now_ms: int) -> Use | None:
    """When keyboard or mouse were touched last, on macOS. Raises OSError, SubprocessError where nothing tells."""
    output = subprocess.run(
        ("ioreg", "-c", "IOHIDSystem", "-d", "4"), capture_output=True, text=True, check=True
    ).stdout
    times = [int(match[1]) // 1_000_000 for match in _INPUT_IDLE.finditer(output)]
    return Use(now_ms - min(times), "keyboard or mouse") if times else None


class LoginSessions:
    """The desktops and consoles of people who are logged in at a seat, by logind.

    See https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.login1.html.
    """

    def __init__(self) -> None:
        self._locked_ms: dict[str, int] = {}  # since when a session is seen with its screen locked

    async def used(self, now_ms: int, own_idle_ms: int | None = None) -> Use | None:
        """When somebody used one last. None: nobody is logged in at a seat.

        A session counts as used while it is neither idle nor locked: also one whose desktop never tells. So does a
        program that keeps the screen on, such as a film. ``own_idle_ms`` is what this user's desktop says of itself.

        Raises OSError, EOFError or DBusErrorResponse where logind does not answer.
        """
        async with open_dbus_router("SYSTEM") as router:
            uses, locked = [], set()
            for session, uid, user, seat, path in (await _ask(router, "ListSessions"))[0]:
                if not seat:  # by SSH: its terminal tells
                    continue
                with suppress(DBusErrorResponse):  # ended meanwhile
                    address = DBusAddress(path, bus_name=NAME, interface=f"{NAME}.Session")
                    [properties] = unwrap_msg(await router.send_and_get_reply(Properties(address).get_all()))
                    facts = {name: value for name, (_, value) in properties.items()}
                    if not str(facts.get("Class", "")).startswith("user") or facts.get("State") == "closing":
                        continue
                    last_ms = facts.get("IdleSinceHint", 0) // 1000 if facts.get("IdleHint") else now_ms
                    if own_idle_ms is not None and uid == os.getuid():
                        last_ms = now_ms - own_idle_ms
                    if facts.get("LockedHint"):
                        locked.add(session)
                        last_ms = min(last_ms, self._locked_ms.setdefault(session, now_ms))
                    uses.append(Use(last_ms, f"the session of {user} on {seat}"))
            self._locked_ms = {session: at_ms for session, at_ms in self._locked_ms.items() if session in locked}
            for what, program, reason, mode, *_ in (await _ask(router, "ListInhibitors"))[0]:
                if "idle" in what.split(":") and mode == "block":
                    uses.append(Use(now_ms, f"{program}, which keeps the screen on ({reason})"))
            return max(uses, key=lambda use: use.last_ms, default=None)


async def _ask(router: DBusRouter, method: str) -> tuple[list[tuple[Any, ...]], ...]:
    body: tuple[list[tuple[Any, ...]], ...] = unwrap_msg(
        await router.send_and_get_reply(new_method_call(MANAGER, method))
    )
    return body
