"""The graphics cards of this machine: which there are, and which one a run gets. A card is bound by its UUID.

Numbers are as ``nvidia-smi`` gives them, by the place on the bus; they change when a card is added. In a job of Slurm
there are the cards that the job was given, and no others.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autoresearch.errors import CannotRunHere, UsageError

DRIVER, NODES, BUS = Path("/proc/driver/nvidia"), Path("/dev"), Path("/sys/bus/pci/devices")
PROCESSOR = "cpu"
DEVICE = r"cpu|cuda(:[0-9]+)?|GPU-[0-9a-fA-F-]+"
"""How a device is named: the processor, any card, a card by its number, a card by its UUID or a beginning of that."""
NO_CARD = "programs get no graphics card at sandbox level S1: CUDA writes below /proc, which landlock closes"
SHARED_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
"""The device files that all cards share."""
_NODE_SECONDS = 20
_SMI_SECONDS = 10.0
_FIGURES = ("memory.used", "memory.total", "power.limit")
# What holds a card's clock back, and the driver's counters of microseconds; drivers before 580 lack some.
_SLOWED_BY = {
    "clocks_event_reasons_counters.sw_power_cap": "the power limit",
    "clocks_event_reasons_counters.hw_power_brake_slowdown": "the power supply",
    "clocks_event_reasons_counters.sw_thermal_slowdown": "heat",
    "clocks_event_reasons_counters.hw_thermal_slowdown": "heat",
}
# Of a card's memory, so much more than before a run is not what the run has left there.
_SLACK = 0.05


@dataclass(frozen=True, slots=True)
class Card:
    """A card: its UUID and model, the number of its device file, its address on the bus."""

    uuid: str
    model: str
    minor: int
    bus: str

    @property
    def node(self) -> Path:
        """Its own device file."""
        return NODES / f"nvidia{self.minor}"

    @property
    def place(self) -> Path:
        """Its link in the list of the bus."""
        return BUS / self.bus

    @property
    def nodes(self) -> tuple[Path, ...]:
        """Its own device file, and those that all cards share."""
        return tuple(node for name in (self.node.name, *SHARED_NODES) if (node := NODES / name).exists())


@dataclass(frozen=True, slots=True)
class CardReading:
    """What the driver says of a card: MiB of its memory, in use and in all, and the watts that it may take.

    ``slowed`` has the seconds for which its clock was held back since the driver was loaded, by cause; without what
    this driver does not count.
    """

    used_mib: float
    total_mib: float
    watts: float | None
    slowed: Mapping[str, float]


def read_card(card: Card) -> CardReading | None:
    """Ask the driver; None where nvidia-smi is missing or does not answer."""
    for counters in (tuple(_SLOWED_BY), ()):  # one field that it does not know, and it answers none
        query = f"--query-gpu={','.join((*_FIGURES, *counters))}"
        command = ("nvidia-smi", "-i", card.uuid, query, "--format=csv,noheader,nounits")
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        words = [word.strip() for word in result.stdout.split(",")]
        if result.returncode or len(words) != len(_FIGURES) + len(counters):
            continue
        used, total, watts, *microseconds = (figure(word) for word in words)
        if used is None or total is None:
            return None
        slowed: dict[str, float] = {}
        for counter, count in zip(counters, microseconds, strict=True):
            slowed[_SLOWED_BY[counter]] = max(slowed.get(_SLOWED_BY[counter], 0.0), (count or 0.0) / 1e6)
        return CardReading(used, total, watts, slowed)
    return None


def conditions(before: CardReading | None, after: CardReading | None) -> dict[str, str]:
    """How fast a card could be between two readings: its power limit, and for how long which cause held it back."""
    if before is None or after is None:
        return {}
    limits = {} if after.watts is None else {"power_limit": f"{after.watts:.0f} W"}
    times = {cause: seconds - before.slowed.get(cause, 0.0) for cause, seconds in after.slowed.items()}
    if slowed := ", ".join(f"{cause} {seconds:.0f} s" for cause, seconds in times.items() if seconds >= 1):
        limits["slowed_by"] = slowed
    return limits


def wait_for_memory(card: Card, before: CardReading | None, most_seconds: float) -> CardReading | None:
    """Wait until a run's memory on its card is free again, but not longer than this; the last reading.

    A driver frees it a moment after the process has ended. What is not free then belongs to another program.
    """
    deadline = time.monotonic() + most_seconds
    while (now := read_card(card)) is not None and before is not None:
        if now.used_mib <= before.used_mib + _SLACK * now.total_mib or time.monotonic() >= deadline:
            break
        time.sleep(0.2)
    return now


def figure(word: str) -> float | None:
    """A number of nvidia-smi; None for what a card can't tell, which is "[N/A]"."""
    try:
        return float(word)
    except ValueError:
        return None


def cards() -> list[Card]:
    """The cards here, by their place on the bus."""
    present = [card for folder in sorted(DRIVER.glob("gpus/*")) if (card := _card(folder)) and card.node.exists()]
    if "SLURM_JOB_ID" not in os.environ:
        return present
    numbers = os.environ.get("SLURM_JOB_GPUS", "").split(",")
    usable = [card for card in present if _opens(card.node)]
    allocated = [card for card in usable if str(card.minor) in numbers]
    # Where the job can open as many as it was given, Slurm keeps it from the others, whatever it numbers them by.
    return usable if len(usable) == len([number for number in numbers if number]) else allocated


def are_awake() -> bool:
    """Whether the driver may be asked: there is a card, and not all of them sleep. A question wakes a card.

    See https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-devices-power.
    """
    return any(_text(card.place / "power/runtime_status").strip() != "suspended" for card in cards())


def card_of(device: str) -> Card | None:
    """The card that a device names; None for the processor. Raises CannotRunHere where there is none."""
    if device == PROCESSOR:
        return None
    present = cards()
    if device.startswith("cuda"):
        fitting = present[int(device.partition(":")[2] or 0) :][:1]
    else:
        fitting = [card for card in present if card.uuid.lower().startswith(device.lower())]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise CannotRunHere(
            f"{device} is the beginning of {len(fitting)} cards' UUIDs", hint="nvidia-smi -L lists them"
        )
    if "SLURM_JOB_ID" in os.environ:
        have = ", ".join(card.uuid for card in present) or "no card"
        sentence = f"there is no {device} in the Slurm job {os.environ['SLURM_JOB_ID']}: it was given {have}"
        raise CannotRunHere(sentence, hint="autoresearch node config set executor.device cuda")
    raise CannotRunHere(f"there is no {device} on this machine", hint="autoresearch node config set work.device auto")


def named_devices(text: str) -> list[str]:
    """The devices that ``work.device`` names; "auto" is all cards, or else the processor.

    Raises:
        UsageError: a name is no device.
    """
    if text == "auto":
        return [f"cuda:{number}" for number, _ in enumerate(cards())] or [PROCESSOR]
    devices = [part.strip() for part in text.split(",")]
    for device in devices:
        if not re.fullmatch(DEVICE, device):
            hint = 'use "auto", "cpu", "cuda:0", or a UUID from nvidia-smi -L'
            raise UsageError(f"work.device: {device!r} is no device", hint=hint)
    return devices


def driver_version() -> str:
    """The version of the cards' driver; empty where there is none."""
    match = re.search(r"\b[0-9]{3,}\.[0-9]+(\.[0-9]+)?\b", _text(DRIVER / "version"))
    return match.group() if match else ""


def make_nodes() -> None:
    """Have the driver make the device file that CUDA needs and that is there only after a first use.

    No sandbox can: the program that makes it is setuid. Raises CannotRunHere where it is missing all the same.
    """
    if (NODES / "nvidia-uvm").exists():
        return
    if program := shutil.which("nvidia-modprobe"):
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run([program, "-u", "-c=0"], capture_output=True, timeout=_NODE_SECONDS, check=False)
    if not (NODES / "nvidia-uvm").exists():
        raise CannotRunHere(
            f"{NODES / 'nvidia-uvm'} is missing, and CUDA needs it", hint="sudo nvidia-modprobe -u -c=0"
        )


def libraries() -> tuple[Path, ...]:
    """The folders of ``LD_LIBRARY_PATH`` that hold CUDA's driver, where the system's own folders don't."""
    folders = [Path(part) for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part.startswith("/")]
    return tuple(folder for folder in folders if (folder / "libcuda.so.1").exists())


def _card(folder: Path) -> Card | None:
    lines = _lines(folder)
    # The driver asks a card for its UUID when that is first used.
    if "?" in lines.get("GPU UUID", "") and _opens(NODES / f"nvidia{lines.get('Device Minor')}"):
        lines = _lines(folder)
    try:
        return Card(lines["GPU UUID"], lines["Model"], int(lines["Device Minor"]), folder.name)
    except (KeyError, ValueError):
        return None


def _lines(folder: Path) -> dict[str, str]:
    parts = (line.partition(":") for line in _text(folder / "information").splitlines())
    return {name.strip(): value.strip() for name, _, value in parts}


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _opens(node: Path) -> bool:
    try:
        os.close(os.open(node, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True
