"""What this machine shows of its owner: mains, heat, memory, programs on its cards, use. Each answer has a deadline."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import psutil
from jeepney import DBusAddress, Properties
from jeepney.io.asyncio import open_dbus_router
from jeepney.wrappers import unwrap_msg

from autoresearch.run.sandbox.cards import are_awake
from autoresearch.settings import Work
from autoresearch_daemon.events import now_ms as clock
from autoresearch_daemon.owner import idle
from autoresearch_daemon.owner.rules import Heat, Reading, Use

A = TypeVar("A")

DEADLINE_SECONDS = 2.0
# While nothing runs, a card is asked no more often: asking wakes it.
CARDS_MS = 30_000
# The drivers of processors' sensors. A disk or a battery is allowed another heat.
PROCESSOR_SENSORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "x86_pkg_temp"})
IS_MAC = sys.platform == "darwin"
CAN_BIND = hasattr(os, "sched_setaffinity")
# The link is looked at no more often.
METERED_MS = 60_000
METERED_YES = 1
NETWORK_MANAGER = DBusAddress(
    "/org/freedesktop/NetworkManager",
    bus_name="org.freedesktop.NetworkManager",
    interface="org.freedesktop.NetworkManager",
)
COMPUTING = ("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader")


class Source(Generic[A]):
    """What may hang: it is asked in a thread of its own, and never again before it has answered."""

    def __init__(self, ask: Callable[[], A | None]) -> None:
        self._ask = ask
        self._asked: asyncio.Future[A | None] | None = None

    async def answer(self) -> A | None:
        """The answer within the deadline; None: there is none."""
        if self._asked is None:
            loop = asyncio.get_running_loop()
            self._asked = loop.create_future()
            # No thread of the pool: a daemon that ends waits for those.
            threading.Thread(target=self._answer, args=(loop, self._asked), daemon=True).start()
        await asyncio.wait([self._asked], timeout=DEADLINE_SECONDS)
        if not self._asked.done():
            return None
        pending, self._asked = self._asked, None
        return pending.result()

    def _answer(self, loop: asyncio.AbstractEventLoop, pending: asyncio.Future[A | None]) -> None:
        answer = None
        with suppress(OSError, ValueError, IndexError, subprocess.SubprocessError, psutil.Error):
            answer = self._ask()
        with suppress(RuntimeError):  # the daemon has ended meanwhile
            loop.call_soon_threadsafe(pending.set_result, answer)


class LocalMachine:
    """This machine; ``root`` is where its files are."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._mains = Source(lambda: mains(root / "sys/class/power_supply"))
        self._heat = Source(lambda: heat(root / "sys/class"))
        self._free = Source(lambda: free_memory(root / "proc/meminfo"))
        self._pressure = Source(lambda: pressure(root / "proc/pressure/memory"))
        self._others = Source(others)
        self._terminals = Source(lambda: (idle.terminals(root / "dev"),))
        self._detected = Source(lambda: (idle.detected(root / "run/event_detect/last_active_time.dat"),))
        self._inputs = Source(lambda: (idle.input_devices(clock()),))
        self._sessions = idle.LoginSessions()
        self._answers: dict[str, tuple[int, Use | None]] = {}  # by source of use: when it answered last, and what
        self._others_ms = 0
        self._metered_ms, self._metered = 0, False
        self._programs: tuple[str, ...] = ()

    async def read(self, work: Work, now_ms: int, *, running: bool, card_heats: Sequence[Heat] = ()) -> Reading:
        """What the settings ask about; ``running``: runs are in hand."""
        is_on_mains = await self._mains.answer() if work.only_on_mains else None
        processor = await self._heat.answer() if work.max_temperature else None
        heats = [*card_heats, *([processor] if processor else [])]
        if work.only_free_card and (running or now_ms - self._others_ms >= CARDS_MS):
            self._others_ms, self._programs = now_ms, await self._others.answer() or ()
        use, answered_ms, unanswered = await self._used(now_ms) if work.only_idle else (None, None, "")
        return Reading(
            now_ms=now_ms,
            use=use,
            answered_ms=answered_ms,
            unanswered=unanswered,
            on_mains=is_on_mains,
            free_bytes=await self._free.answer() if work.pause_memory_mib else None,
            pressure=await self._pressure.answer() if work.pause_memory_mib else None,
            heat=max(heats, key=lambda heat: heat.celsius, default=None),
            others=self._programs if work.only_free_card else (),
        )

    async def is_metered(self, now_ms: int) -> bool:
        """Whether NetworkManager calls the link metered; what it guesses, and what nobody tells, is not."""
        if now_ms - self._metered_ms >= METERED_MS:
            self._metered_ms, self._metered = now_ms, False
            with suppress(*idle.UNANSWERED):
                async with asyncio.timeout(DEADLINE_SECONDS):
                    self._metered = await metered()
        return self._metered

    async def _used(self, now_ms: int) -> tuple[Use | None, int | None, str]:
        """The newest use that a source told, when all of them had answered last, and which does not answer now."""
        silent = []
        for name, answer in (
            ("the terminals' folder", await self._terminals.answer()),
            ("idle_detect's file", await self._detected.answer()),
            ("ioreg", await self._inputs.answer()) if IS_MAC else ("systemd-logind", await self._logind(now_ms)),
        ):
            if answer:
                self._answers[name] = (now_ms, *answer)
            else:
                silent.append(name)
                self._answers.setdefault(name, (0, None))
        times, uses = zip(*self._answers.values(), strict=True)
        use = max((use for use in uses if use), key=lambda use: use.last_ms, default=None)
        return use, min(times), f"{' and '.join(silent)} did not answer" if silent else ""

    async def _logind(self, now_ms: int) -> tuple[Use | None] | None:
        own_idle_ms = None
        with suppress(*idle.UNANSWERED):
            async with asyncio.timeout(DEADLINE_SECONDS):
                own_idle_ms = await idle.desktop_idle_ms()
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                return (await self._sessions.used(now_ms, own_idle_ms),)
        except idle.UNANSWERED:
            return None


async def metered() -> bool:
    """What NetworkManager says of the link. Raises what ``UNANSWERED`` names.

    See https://networkmanager.dev/docs/api/latest/nm-dbus-types.html#NMMetered.
    """
    async with open_dbus_router("SYSTEM") as router:
        [(_, value)] = unwrap_msg(await router.send_and_get_reply(Properties(NETWORK_MANAGER).get("Metered")))
        return bool(value == METERED_YES)


def keep_to_cores(workers: Iterable[int], cores: int) -> None:
    """Bind workers, given as process ids, and all that they started to so many cores; 0: to all of the daemon's.

    A program in the sandbox can undo that for itself, until the next look.
    """
    usable = sorted(os.sched_getaffinity(0))
    cpus = set(usable[-cores:] if cores else usable)
    for worker in workers:
        with suppress(psutil.Error):
            for process in (psutil.Process(worker), *psutil.Process(worker).children(recursive=True)):
                for thread in process.threads():
                    with suppress(OSError):  # ended meanwhile
                        if os.sched_getaffinity(thread.id) != cpus:
                            os.sched_setaffinity(thread.id, cpus)


def mains(supplies: Path) -> bool | None:
    """Whether the machine is on mains; None where nothing tells. A machine without a battery is.

    See https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-power.
    """
    if not supplies.is_dir():
        battery = psutil.sensors_battery()
        return battery.power_plugged if battery else None
    batteries, plugs = [], []
    for supply in supplies.iterdir():
        if _text(supply / "scope") == "Device":  # of a mouse, a keyboard
            continue
        if _text(supply / "type") in {"Battery", "UPS"}:
            batteries.append(_text(supply / "status"))
        elif online := _text(supply / "online"):
            plugs.append(online != "0")
    if not batteries:
        return True
    if "Discharging" in batteries:
        return False
    return any(plugs) if plugs else "Charging" in batteries or None


def heat(folder: Path) -> Heat | None:
    """The hottest sensor of the processor; None where there is none. The files are those of hwmon and thermal zones."""
    sensors = []
    for sensor in folder.glob("hwmon/hwmon*/temp*_input"):
        name = _text(sensor.with_name("name"))
        label = _text(sensor.with_name(sensor.name.replace("_input", "_label")))
        sensors.append((name, f"{name} {label}".strip(), _text(sensor)))
    for zone in folder.glob("thermal/thermal_zone*"):
        name = _text(zone / "type")
        sensors.append((name, name, _text(zone / "temp")))
    heats = [
        Heat(label, int(degrees) / 1000)
        for name, label, degrees in sensors
        if name in PROCESSOR_SENSORS and degrees.isdecimal()
    ]
    return max(heats, key=lambda heat: heat.celsius, default=None)


def free_memory(file: Path) -> int:
    """Bytes of memory that programs can have without swapping."""
    for line in _text(file).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return psutil.virtual_memory().available


def pressure(file: Path) -> float | None:
    """Percent of the last ten seconds in which some program waited for memory; None where the kernel does not tell."""
    for line in _text(file).splitlines():
        kind, *fields = line.split()
        figures = dict(field.partition("=")[::2] for field in fields)
        if kind == "some" and "avg10" in figures:
            return float(figures["avg10"])
    return None


def others() -> tuple[str, ...]:
    """The programs that compute on the cards and are not this node's: "python (1234)". A card that sleeps has none."""
    if not are_awake():
        return ()
    lines = subprocess.run(COMPUTING, capture_output=True, text=True, timeout=10, check=False).stdout.splitlines()
    me = psutil.Process()
    ours = {me.pid, *(child.pid for child in me.children(recursive=True))}
    programs = []
    for line in lines:
        pid, _, program = line.partition(",")
        # A container does not see the processes of others by their numbers.
        if pid.strip().isdecimal() and int(pid) not in ours and psutil.pid_exists(int(pid)):
            programs.append(f"{Path(program.strip()).name} ({int(pid)})")
    return tuple(sorted(programs))


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
