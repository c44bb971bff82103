"""What each setting did, from pairs of a run and its parent: a table that everybody computes alike.

A pair counts for a setting when it differs in that setting and in few others: what these did is noise here. Changes of
the value are taken in one direction: a part added, a constant raised. Of these the median is told, so that one value
that exploded moves nothing, and the runs that failed are counted apart. Medians are of differences in the metric's
unit: their sign, and whether their interval has zero in it, would be the same of ratios.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from autoresearch.log.log import Log
from autoresearch.log.rows import PairRow
from autoresearch.log.standing.bases import is_possible
from autoresearch.log.standing.cache import cached
from autoresearch.log.standing.context import trust_context
from autoresearch.text import difference

# How sure the interval of a median is at least.
CONFIDENCE = 0.95
_EVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Effect:
    """What raising a setting, or adding a part (``+name``), did to the metric in pairs of a run and its parent."""

    parameter: str
    pairs: int
    """Those in which both have a value."""
    better: int
    """Pairs in which it helped."""
    worse: int
    median: float | None
    """Median change of the metric, in its own unit and sign; None without pairs."""
    low: float | None
    high: float | None
    """Its 95 % interval; None from fewer than six pairs."""
    raised: int
    """Runs that raised or added it, those that failed too."""
    raised_failed: int
    lowered: int
    lowered_failed: int
    failed_as: str = ""
    """How the failed ones ended, where all ended in one way: ``diverged``."""


def effect_of(parameter: str, tried: Iterable[PairRow], *, sign: float) -> Effect | None:
    """The effect of a setting by the pairs that changed it, in any order; None without any.

    ``sign`` makes smaller values better.
    """
    raised, failed, ends = [0, 0], [0, 0], set[str]()
    changes: list[float] = []
    for pair in tried:
        raised[pair.raised < 0] += 1
        if pair.delta is None:
            failed[pair.raised < 0] += 1
            ends.add(pair.status)
        else:
            changes.append(difference(pair.parent_value + pair.delta, pair.parent_value) and pair.delta * pair.raised)
    if not sum(raised):
        return None
    low, high = median_interval(changes)
    return Effect(
        parameter,
        pairs=len(changes),
        better=sum(sign * change < 0 for change in changes),
        worse=sum(sign * change > 0 for change in changes),
        median=statistics.median(changes) if changes else None,
        low=low,
        high=high,
        raised=raised[0],
        raised_failed=failed[0],
        lowered=raised[1],
        lowered_failed=failed[1],
        failed_as=min(ends) if len(ends) == 1 else "",
    )


def median_interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The 95 % interval of the median, whatever the distribution: two of the values in order (Conover, 1999, 3.2)."""
    rank = _rank(len(values))
    if rank is None:
        return None, None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[-rank]


@lru_cache(1024)
def _rank(count: int) -> int | None:
    """Between which of so many values, counted from both ends, their median lies; None where they are too few."""
    outside, rank = 0, 0
    while 2 * (outside + math.comb(count, rank)) <= (1 - CONFIDENCE) * 2**count:
        outside, rank = outside + math.comb(count, rank), rank + 1
    return rank or None


def ranked(effects: Iterable[Effect], *, sign: float) -> list[Effect]:
    """Effects, the surest improvement first; those from few pairs after them, by their median."""

    def order(effect: Effect) -> tuple[float, float, str]:
        bounds = [math.inf if bound is None else sign * bound for bound in (effect.low, effect.high)]
        return max(bounds), math.inf if effect.median is None else sign * effect.median, effect.parameter

    return sorted(effects, key=order)


@dataclass(frozen=True)
class Comparisons:
    """What was compared on a task, read when it is asked. ``me`` is the device that asks: its own runs count."""

    log: Log
    task: bytes
    me: bytes | None = None

    @cached_property
    def sign(self) -> float:
        """What makes smaller values better."""
        return self.log.tasks.sign(self.task)

    @cached_property
    def _is_possible(self) -> Callable[[float], bool]:
        return is_possible(self.log, self.task)

    @cached_property
    def _own(self) -> frozenset[bytes]:
        return trust_context(self.log, self.me).mine | ({self.me} if self.me else set())

    @property
    def effects(self) -> list[Effect]:
        """What each setting did in its newest pairs, the surest improvement first."""
        with self.log.reader.snapshot():
            effects = [self.of(name) for name in self.log.pairs.settings(self.task)]
        return ranked(filter(None, effects), sign=self.sign)

    def of(self, name: str, before_ms: int | None = None) -> Effect | None:
        """What the newest pairs say of a setting: those whose run is older than a time; None without any."""
        before_ms = _EVER if before_ms is None else before_ms
        # A board and its rows tell the same runs.
        place = ("effect", self.task, self.me, name, before_ms)
        return cached(self.log, place, lambda: self._of(name, before_ms))

    def _of(self, name: str, before_ms: int) -> Effect | None:
        pairs = self.log.pairs.of_setting(self.task, name, before_ms=before_ms, own=self._own)
        possible = self._is_possible
        tried = [pair for pair in pairs if possible(pair.parent_value) and (pair.value is None or possible(pair.value))]
        return effect_of(name, tried, sign=self.sign)
