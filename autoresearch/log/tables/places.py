"""The place of a run among all of its task by time: its number, and the processor time up to it.

A run that comes late moves all later ones, so that places are not stored. Each is the sum of the slots of time before
it and of what its own slot has before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain
from typing import Literal, NamedTuple

from autoresearch.log.connection import Reader, in_parts

Place = tuple[int, bytes]
# A slot of time: so many bits of milliseconds, by level.
SLOT_BITS = (21, 27)
_FINE, _COARSE = SLOT_BITS
_SLOTS = "SELECT slot, runs, cpu_ms FROM slot WHERE task = ? AND level = ? AND slot >= ? AND slot < ? ORDER BY slot"
_BETWEEN = """
WITH span(number, after_ms, after_run, to_ms, to_run) AS (VALUES {})
SELECT count(n), coalesce(sum(cpu_ms), 0) FROM span LEFT JOIN run INDEXED BY run_task_time
ON task = ? AND time >= after_ms AND time <= to_ms
AND (time, id) > (after_ms, after_run) AND (time, id) <= (to_ms, to_run)
GROUP BY number ORDER BY number
"""
_IN_SLOT = """
SELECT time, id, cpu_ms FROM run INDEXED BY run_task_time WHERE task = ? AND time >= ? AND time < ? ORDER BY time, id
"""
_FOR_EVER = 1 << 62


class Sums(NamedTuple):
    """The number of runs up to a place, and their processor time."""

    number: int
    cost_ms: int


class _Slots(NamedTuple):
    """Slots in order of time, each with the sums before it; then the sums of all."""

    slots: list[int]
    before: list[Sums]

    def up_to(self, slot: int) -> Sums:
        """The sums of all slots before this one."""
        return self.before[bisect_left(self.slots, slot)]


class Places:
    """The places of a task's runs, for one question."""

    def __init__(self, reader: Reader, task: bytes) -> None:
        self._reader = reader
        self._task = task
        self._coarse = self._slots(1, 0, _FOR_EVER)
        self._fine: dict[int, _Slots] = {}

    @property
    def total(self) -> int:
        """How many runs there are."""
        return self._coarse.before[-1].number

    def of(self, runs: Iterable[Place]) -> list[Sums]:
        """The sums up to runs, these included; of a place that no run has up to the run before it.

        Of runs in order of time each counts on from the one before: what lies between two is read once.
        """
        spans: list[tuple[int, bytes, int, bytes]] = []
        begins: list[Sums | None] = []
        last: Place = (0, b"")
        for place in runs:
            slot, begin = place[0] >> _FINE, None
            if not (last[0] >> _FINE == slot and last <= place):
                coarse, fine = self._coarse.up_to(place[0] >> _COARSE), self._in(place[0] >> _COARSE).up_to(slot)
                last, begin = (slot << _FINE, b""), Sums(coarse.number + fine.number, coarse.cost_ms + fine.cost_ms)
            spans.append((*last, *place))
            begins.append(begin)
            last = place
        sums, before = list[Sums](), Sums(0, 0)
        for (runs_between, cost_ms), begin in zip(self._between(spans), begins, strict=True):
            before = begin or before
            before = Sums(before.number + runs_between, before.cost_ms + cost_ms)
            sums.append(before)
        return sums

    def _between(self, spans: list[tuple[int, bytes, int, bytes]]) -> Iterator[tuple[int, int]]:
        """The runs after one place up to another, and their processor time."""
        for part in in_parts(spans):
            places = ", ".join(f"({number}, ?, ?, ?, ?)" for number in range(len(part)))
            yield from self._reader.read(_BETWEEN.format(places), [*chain.from_iterable(part), self._task])

    def at(self, axis: Literal["number", "cost"], least: int) -> Place | None:
        """The first run whose number, or the processor time up to it, is not smaller; None where there is none."""
        field = Sums._fields.index("number" if axis == "number" else "cost_ms")

        def holding(slots: _Slots, amount: int) -> int:
            """Which of the slots reaches an amount."""
            return bisect_left([sums[field] for sums in slots.before], amount, lo=1) - 1

        coarse = holding(self._coarse, least)
        if coarse == len(self._coarse.slots):
            return None
        least -= self._coarse.before[coarse][field]
        slots = self._in(self._coarse.slots[coarse])
        fine = holding(slots, least)
        least -= slots.before[fine][field]
        start_ms = slots.slots[fine] << _FINE
        for time_ms, run, cpu_ms in self._reader.read(_IN_SLOT, (self._task, start_ms, start_ms + (1 << _FINE))):
            least -= 1 if axis == "number" else cpu_ms
            if least <= 0:
                return time_ms, run
        return None

    def _in(self, coarse: int) -> _Slots:
        """The fine slots of a coarse one."""
        if coarse not in self._fine:
            bits = _COARSE - _FINE
            self._fine[coarse] = self._slots(0, coarse << bits, (coarse + 1) << bits)
        return self._fine[coarse]

    def _slots(self, level: int, first: int, end: int) -> _Slots:
        rows = self._reader.read(_SLOTS, (self._task, level, first, end))
        sums = accumulate(rows, lambda sum_, row: Sums(sum_[0] + row[1], sum_[1] + row[2]), initial=Sums(0, 0))
        return _Slots([slot for slot, _, _ in rows], list(sums))
