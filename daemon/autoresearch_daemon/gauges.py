"""What this machine is busy with: processor, memory and energy by the kernel's counters, cards by their driver."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import psutil

from autoresearch.ask.node import CardStatus, MachineStatus
from autoresearch.run.sandbox.cards import are_awake, figure

# Source: https://www.kernel.org/doc/html/latest/power/powercap/powercap.html. Often only root may read the counters.
POWERCAP = Path("/sys/class/powercap")
NVIDIA_SMI = (
    "nvidia-smi",
    "--query-gpu=name,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu",
    "--format=csv,noheader,nounits",
)
NVIDIA_SECONDS = 10.0
MIB = 1 << 20


class Gauges:
    """Looks again and again; ``status`` is what the last look found, of the time since the one before it."""

    def __init__(self, powercap: Path = POWERCAP) -> None:
        self.status: MachineStatus | None = None
        self._counters = [_Counter(folder) for folder in sorted(powercap.glob("intel-rapl:?"))]
        self._looked = time.monotonic()
        self._joules: float | None = None
        psutil.cpu_percent()  # the first is of no time

    def look(self, *, cards: bool) -> None:
        """Look; with ``cards`` at these too. Blocks."""
        now, used = time.monotonic(), [counter.joules() for counter in self._counters]
        joules = sum(each for each in used if each is not None) if None not in used and used else None
        if joules is not None:
            self._joules = joules + (self._joules or 0.0)
        memory = psutil.virtual_memory()
        self.status = MachineStatus(
            processors=psutil.cpu_count() or 1,
            busy=psutil.cpu_percent() / 100,
            memory_bytes=memory.total - memory.available,
            memory_total_bytes=memory.total,
            watts=None if joules is None else joules / max(now - self._looked, 1e-3),
            joules=self._joules,
            cards=_cards() if cards else [],
        )
        self._looked = now


class _Counter:
    """The energy that one part of the processor took, which begins at 0 again where the counter ends."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "energy_uj"
        self._end = _number(folder / "max_energy_range_uj") or 0
        # The whole platform has the processor's packages in it.
        self._counts = not _text(folder / "name").startswith("psys")
        self._before = _number(self._file)

    def joules(self) -> float | None:
        """Since the last time; None where it can't be read."""
        if not self._counts:
            return 0.0
        before, self._before = self._before, _number(self._file)
        if before is None or self._before is None:
            return None
        used = self._before - before
        return (used + self._end if used < 0 else used) / 1e6


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None


def _cards() -> list[CardStatus]:
    """NVIDIA's cards; none where there is no driver, it does not answer, or all of them sleep."""
    if not are_awake():
        return []
    try:
        output = subprocess.run(NVIDIA_SMI, capture_output=True, text=True, timeout=NVIDIA_SECONDS, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [card for line in output.splitlines() if (card := card_of(line))]


def card_of(line: str) -> CardStatus | None:
    """A card as a line of nvidia-smi tells it, where what a card can't tell is "[N/A]"; None for another line."""
    name, *figures = (part.strip() for part in line.split(","))
    if len(figures) != 5:
        return None
    busy, memory, total, watts, celsius = map(figure, figures)
    return CardStatus(
        name=name,
        busy=None if busy is None else busy / 100,
        memory_bytes=None if memory is None else round(memory * MIB),
        memory_total_bytes=None if total is None else round(total * MIB),
        watts=watts,
        celsius=celsius,
    )
