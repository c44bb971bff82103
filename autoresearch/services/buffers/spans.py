"""Which indices of a ring belong to which trajectory, and which may be drawn. Pure.

Indices only grow, but for one case: a trajectory that ends too short is dropped, and its indices are used again.
"""

from __future__ import annotations

from typing import Self

import msgspec
import numpy as np

from autoresearch.errors import UsageError
from autoresearch.services.buffers.rows import Array

_OPEN = -1


class SpansState(msgspec.Struct, frozen=True):
    """All of it, to be written. ``lengths`` are the trajectories from ``oldest`` on; the last one is open."""

    capacity: int
    shortest: int
    oldest: int
    newest: int
    following: int
    begin: int
    lengths: list[int]


class Spans:
    """The trajectories of the last ``capacity`` rows.

    ``following`` is the index of the next row. ``oldest`` to before ``newest`` may be drawn.
    """

    def __init__(self, capacity: int, shortest: int) -> None:
        """Raises UsageError where no trajectory of the ``shortest`` length fits."""
        if not 1 <= shortest <= capacity:
            hint = f"min_trajectory_length is {shortest}; it must be positive and at most the capacity"
            raise UsageError(f"a capacity of {capacity} rows holds no trajectory", hint=hint)
        self.capacity, self.shortest = int(capacity), int(shortest)
        self.oldest = self.newest = self.following = self._begin = 0
        self._begins = np.zeros(self.capacity, np.int64)
        self._ends = np.full(self.capacity, _OPEN, np.int64)

    @property
    def certain(self) -> int:
        """The index after the last row that stays, and whose place in its trajectory is known."""
        length = self.following - self._begin
        return self.following - 1 if length >= self.shortest else self._begin

    def add(self) -> None:
        """A row was written at ``following``."""
        place = self.following % self.capacity
        overwritten_end = int(self._ends[place])
        self._begins[place], self._ends[place] = self._begin, _OPEN
        self.following += 1
        self.oldest = max(self.oldest, self.following - self.capacity)
        if overwritten_end != _OPEN and overwritten_end - self.oldest < self.shortest:
            self.oldest = max(self.oldest, overwritten_end)
        if self.following - self._begin >= self.shortest:
            self.newest = self.following

    def end(self) -> None:
        """The trajectory in progress ends; too short, it is dropped."""
        if self.following - self._begin < self.shortest:
            self.following = self._begin
            return
        held = np.arange(max(self._begin, self.following - self.capacity), self.following)
        self._ends[held % self.capacity] = self.following
        self._begin = self.following

    def bounds(self, indices: Array) -> tuple[Array, Array]:
        """Where the trajectory of each index begins and ends, as far as it may be drawn."""
        places = indices % self.capacity
        ends = self._ends[places]
        return np.maximum(self._begins[places], self.oldest), np.where(ends == _OPEN, self.newest, ends)

    def is_last(self, indices: Array) -> Array:
        """Which of the indices end their trajectory."""
        found: Array = self._ends[indices % self.capacity] == indices + 1
        return found

    def draw(self, random: np.random.Generator, count: int, begin: int, end: int) -> Array:
        """Indices whose window from ``begin`` to before ``end`` lies in their trajectory, drawn uniformly.

        Raises:
            UsageError: no trajectory is long enough yet.
        """
        if self.oldest >= self.newest:
            raise UsageError("no trajectory is long enough to sample from", hint="insert more rows before sample()")
        found = np.empty(0, np.int64)
        while len(found) < count:  # every trajectory has at least one such index
            tried = random.integers(self.oldest, self.newest, 2 * (count - len(found)) + 8)
            begins, ends = self.bounds(tried)
            found = np.concatenate([found, tried[(tried + begin >= begins) & (tried + end <= ends)]])
        return found[:count]

    def moved(self, indices: Array, begin: int, end: int) -> Array:
        """Given indices, moved within their trajectories until their windows lie in them. Raises UsageError."""
        if len(indices) and not (self.oldest <= indices.min() and indices.max() < self.newest):
            raise UsageError(f"the buffer draws from the rows {self.oldest} to {self.newest - 1} only")
        begins, ends = self.bounds(indices)
        found: Array = np.clip(indices, begins - begin, ends - end)
        return found

    def state(self) -> SpansState:
        """All of it."""
        lengths, at = [], self.oldest
        while at < self._begin:
            end = int(self._ends[at % self.capacity])
            lengths.append(end - at)
            at = end
        lengths.append(self.following - at)
        return SpansState(self.capacity, self.shortest, self.oldest, self.newest, self.following, self._begin, lengths)

    @classmethod
    def restored(cls, state: SpansState, path: str) -> Self:
        """The same again. Raises UsageError where the numbers contradict each other."""
        found = cls(state.capacity, state.shortest)
        in_order = state.oldest >= 0 and state.newest <= state.following and 0 <= state.begin <= state.following
        fits = state.oldest + sum(state.lengths) == state.following <= state.oldest + state.capacity
        if not (in_order and fits and state.lengths and min(state.lengths) >= 0):
            raise UsageError(f"{path} is damaged: its trajectories contradict its rows")
        at = state.oldest
        for length in state.lengths[:-1]:
            places = np.arange(at, at + length) % state.capacity
            found._begins[places], found._ends[places] = at, at + length
            at += length
        found._begins[np.arange(at, state.following) % state.capacity] = state.begin
        found.oldest, found.newest, found.following = state.oldest, state.newest, state.following
        found._begin = state.begin
        return found
