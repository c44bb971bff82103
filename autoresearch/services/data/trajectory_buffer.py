"""A buffer that knows which rows of its ring belong to one trajectory, so that windows never reach over an end.

Indices only grow, but for one case: a trajectory that ends too short is dropped, and its indices are used again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from autoresearch.errors import UsageError
from autoresearch.services.data.data_store import DataStoreBase, Ledger, ledger_of
from autoresearch.services.data.replay_buffer import (
    generator_of,
    pack_columns,
    read_arrays,
    unpack_columns,
    unpack_header,
    write_arrays,
)
from autoresearch.services.data.rows import Array, DataShape, Fitted, Key, Ring, key_name, layout_of_shapes, nested
from autoresearch.services.data.sampler import Sampler

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
    # How many ended, and where that of the oldest row began. None: written by a version that knew neither.
    ended: int | None = None
    first: int | None = None


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
        self.oldest = self.newest = self.following = self._begin = self._ended = 0
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
        self._ended += 1

    def bounds(self, indices: Array) -> tuple[Array, Array]:
        """Where the trajectory of each index begins and ends, as far as it may be drawn."""
        places = indices % self.capacity
        ends = self._ends[places]
        return np.maximum(self._begins[places], self.oldest), np.where(ends == _OPEN, self.newest, ends)

    def is_last(self, indices: Array) -> Array:
        """Which of the indices end their trajectory."""
        ends: Array = self._ends[indices % self.capacity] == indices + 1
        return ends

    def draw(self, random: np.random.Generator, count: int, begin: int, end: int) -> Array:
        """Indices whose window from ``begin`` to before ``end`` lies in their trajectory, drawn uniformly.

        Raises:
            UsageError: no trajectory is long enough yet.
        """
        if self.oldest >= self.newest:
            raise UsageError("no trajectory is long enough to sample from", hint="insert more rows before sample()")
        fitting = np.empty(0, np.int64)
        while len(fitting) < count:  # every trajectory has at least one such index
            tried = random.integers(self.oldest, self.newest, 2 * (count - len(fitting)) + 8)
            begins, ends = self.bounds(tried)
            fitting = np.concatenate([fitting, tried[(tried + begin >= begins) & (tried + end <= ends)]])
        return fitting[:count]

    def moved(self, indices: Array, begin: int, end: int) -> Array:
        """Given indices, moved within their trajectories until their windows lie in them. Raises UsageError."""
        if len(indices) and not (self.oldest <= indices.min() and indices.max() < self.newest):
            raise UsageError(f"the buffer draws from the rows {self.oldest} to {self.newest - 1} only")
        begins, ends = self.bounds(indices)
        clipped: Array = np.clip(indices, begins - begin, ends - end)
        return clipped

    def state(self) -> SpansState:
        """All of it."""
        lengths, at = [], self.oldest
        while at < self._begin:
            end = int(self._ends[at % self.capacity])
            lengths.append(end - at)
            at = end
        lengths.append(self.following - at)
        ends = (self.oldest, self.newest, self.following, self._begin)
        first = int(self._begins[self.oldest % self.capacity]) if len(lengths) > 1 else None
        return SpansState(self.capacity, self.shortest, *ends, lengths, self._ended, first)

    def columns(self) -> dict[str, Array]:
        """Of the row at each place: its trajectory's begin, end and number, its own index; -1 where there is none."""
        held = np.arange(self.oldest, self.following)
        places = held % self.capacity
        begins = self._begins[places]
        # Each begin is that of the next trajectory; the one in progress has as many before it as ended.
        different, order = np.unique(begins, return_inverse=True)
        numbers = self._ended - np.count_nonzero(different != self._begin) + order
        columns = {name: np.full(self.capacity, -1) for name in ("ep_begin", "ep_end", "trajectory_id", "seq_id")}
        for name, values in zip(columns, (begins, self._ends[places], numbers, held), strict=True):
            columns[name][places] = values
        is_first = columns["seq_id"] == columns["ep_begin"]
        return {**columns, "trajectory_begin_flag": is_first & (columns["seq_id"] != -1)}

    @classmethod
    def restored(cls, state: SpansState, path: str) -> Self:
        """The same again. Raises UsageError where the numbers contradict each other."""
        ledger = cls(state.capacity, state.shortest)
        in_order = state.oldest >= 0 and state.newest <= state.following and 0 <= state.begin <= state.following
        in_order = in_order and (state.ended is None or len(state.lengths) - 1 <= state.ended <= state.begin)
        in_order = in_order and (state.first is None or 0 <= state.first <= state.oldest)
        fits = state.oldest + sum(state.lengths) == state.following <= state.oldest + state.capacity
        if not (in_order and fits and state.lengths and min(state.lengths) >= 0):
            raise UsageError(f"{path} is damaged: its trajectories contradict its rows")
        at = state.oldest
        for length in state.lengths[:-1]:
            places = np.arange(at, at + length) % state.capacity
            ledger._begins[places] = at if state.first is None or at > state.oldest else state.first
            ledger._ends[places] = at + length
            at += length
        ledger._begins[np.arange(at, state.following) % state.capacity] = state.begin
        ledger.oldest, ledger.newest, ledger.following = state.oldest, state.newest, state.following
        ledger._begin = state.begin
        ledger._ended = len(state.lengths) - 1 if state.ended is None else state.ended
        return ledger


Sampled = tuple[dict[str, Any], dict[str, Any]]
END = "end_of_trajectory"


class _TrajectoryHeader(msgspec.Struct, frozen=True, tag="trajectories"):
    spans: SpansState
    random: dict[str, Any]
    offsets: dict[str, int] = {}


class _Config(msgspec.Struct, frozen=True):
    samplers: dict[str, Sampler]
    begin: int
    end: int
    transform: Callable[[Any, Any], Sampled] | None


class TrajectoryBuffer(DataStoreBase):
    """The newest rows of trajectories, drawn by named samplers. Safe for several threads.

    A trajectory is drawn from as soon as it has ``min_trajectory_length`` rows. One that ends with fewer is dropped.
    """

    def __init__(
        self,
        capacity: int,
        data_shapes: Iterable[DataShape] | None = None,
        seed: int = 0,
        min_trajectory_length: int = 2,
        device: object = None,
        use_jax: bool = False,  # noqa: FBT001, FBT002 - agentlace's position
    ) -> None:
        """Without ``data_shapes`` the first row decides names and shapes.

        Raises:
            UsageError: the capacity is below the shortest trajectory, or ``device`` or ``use_jax`` is asked for.
        """
        if use_jax or device is not None:
            hint = "leave out use_jax and device; jax.numpy.asarray takes what sample() returns"
            raise UsageError("this buffer keeps numpy arrays", hint=hint)
        spans = Spans(capacity, min_trajectory_length)
        ring = Ring(capacity, layout_of_shapes(data_shapes) if data_shapes else None)
        self._start(spans, ring, np.random.default_rng(seed))

    def _start(self, spans: Spans, ring: Ring, random: np.random.Generator) -> None:
        self._spans, self._ring, self._random = spans, ring, random
        super().__init__(ring.capacity)
        self._lock = threading.RLock()
        self._configs: dict[str, _Config] = {}

    def __len__(self) -> int:
        """From how many rows it draws."""
        return self._spans.newest - self._spans.oldest

    @property
    def dataset(self) -> dict[str, Array]:
        """The columns by name; names of nested rows are joined by ``/``. Row ``i`` is at ``i % capacity``."""
        return {key_name(key): column for key, column in self._ring.columns.items()}

    @property
    def metadata(self) -> dict[str, Array]:
        """Columns beside those of ``dataset``: ``ep_begin``, ``ep_end``, ``trajectory_id``, ``seq_id``.

        Also ``trajectory_begin_flag``. ``seq_id`` is the row's id; ``ep_end`` is -1 while the trajectory is open. At
        places without a row all are -1, the flag False. They are copies, made by each call.
        """
        with self._lock:
            return self._spans.columns()

    @property
    def ids(self) -> range:
        """The ids of the rows that it draws from."""
        return range(self._spans.oldest, self._spans.newest)

    def register_sample_config(
        self,
        name: str,
        samplers: Mapping[str, Sampler],
        sample_range: tuple[int, int] = (0, 1),
        transform: Callable[[Any, Any], Sampled] | None = None,
    ) -> None:
        """Name a way to sample: what to take of a drawn step, under which names.

        Only steps are drawn whose window ``sample_range`` (from, to before) lies within their trajectory.

        Raises:
            UsageError: the range is empty, or longer than the shortest trajectory.
        """
        begin, end = sample_range
        if not 0 < end - begin <= self._spans.shortest:
            hint = f"it may be at most min_trajectory_length, {self._spans.shortest}"
            raise UsageError(f"the sample range {begin} to {end} has {end - begin} steps", hint=hint)
        self._configs[name] = _Config(dict(samplers), begin, end, transform)

    def insert(self, data: object, end_of_trajectory: bool = False) -> None:  # noqa: FBT001, FBT002 - agentlace's position
        """Add a row; the key ``end_of_trajectory`` in it, or the argument, ends its trajectory.

        Raises:
            UsageError: its names, shapes or types are not those of the others.
        """
        with self._lock:
            self._add(*self._fitted(data, end=end_of_trajectory))

    def batch_insert(self, batch_data: Sequence[object]) -> None:
        """Add rows in order, all or none of them. Raises UsageError as ``insert``."""
        with self._lock:
            for row, end in [self._fitted(each, end=False) for each in batch_data]:
                self._add(row, end)

    def _fitted(self, data: object, *, end: bool) -> tuple[Fitted, bool]:
        if isinstance(data, Mapping):
            end = bool(data.get(END, end))
            data = {name: each for name, each in data.items() if name != END}
            if (END,) in self._ring.layout:
                data[END] = end
        return self._ring.fit(data), end

    def _add(self, row: Fitted, end: bool) -> None:  # noqa: FBT001
        self._ring.put(self._spans.following, row)
        self._spans.add()
        if end:
            self._spans.end()

    def end_trajectory(self) -> None:
        """End the trajectory of the newest row."""
        with self._lock:
            self._spans.end()

    def sample(self, sampler_name: str, batch_size: int, force_indices: Any = None) -> Sampled:  # noqa: ANN401
        """Draw steps, each valid one with the same probability. Returns what the samplers take, and which is valid.

        ``force_indices`` are the ids of the steps to take instead; one too near to an end of its trajectory is moved.

        Raises:
            UsageError: there is no such config, no row to draw from, or no such row.
        """
        with self._lock:
            config = self._configs.get(sampler_name)
            if config is None:
                names = ", ".join(self._configs) or "none"
                raise UsageError(f"no sample config {sampler_name}", hint=f"register_sample_config; here are: {names}")
            if force_indices is None:
                drawn = self._spans.draw(self._random, batch_size, config.begin, config.end)
            else:
                drawn = self._spans.moved(np.asarray(force_indices, np.int64), config.begin, config.end)
            begins, ends = self._spans.bounds(drawn)
            dataset = self.dataset
            taken = {
                name: each.sample(drawn, begins, ends, self._random, dataset, name)
                for name, each in config.samplers.items()
            }
        data = {name: each[0] for name, each in taken.items()}
        valid = {name: each[1] for name, each in taken.items()}
        return config.transform(data, valid) if config.transform else (data, valid)

    def latest_data_id(self) -> int:
        """The id of the newest row of which it is certain that it stays, and whether it ends its trajectory; or -1."""
        return self._spans.certain - 1

    def get_latest_data(self, from_id: int) -> list[Any]:
        """Copies of the rows after ``from_id`` up to ``latest_data_id()``, each with its ``end_of_trajectory``.

        Inserted elsewhere they make the same trajectories.
        """
        with self._lock:
            indices = np.arange(max(from_id + 1, self._spans.oldest), self._spans.certain)
            ends = self._spans.is_last(indices)
            return [_ended(row, bool(end)) for row, end in zip(self._ring.rows(indices), ends, strict=True)]

    def serialized(self) -> dict[str, Array]:
        """Its rows, trajectories and random state as named arrays; sample configs are not in it."""
        with self._lock:
            offsets = ledger_of(self).as_dict()  # first: rows of an update in hand come again rather than never
            header = _TrajectoryHeader(self._spans.state(), dict(self._random.bit_generator.state), offsets)
            return pack_columns(header, self._ring, self._spans.oldest, self._spans.following)

    @classmethod
    def deserialize(cls, loaded_data: Mapping[str, Array], *, path: str = "the data") -> Self:
        """The buffer that ``serialized`` gave. Raises UsageError where the arrays are none."""
        header = unpack_header(loaded_data, _TrajectoryHeader, path)
        spans = Spans.restored(header.spans, path)
        ring = unpack_columns(loaded_data, spans.capacity, spans.oldest, spans.following, path)
        buffer = cls.__new__(cls)
        buffer._start(spans, ring, generator_of(header.random, path))  # noqa: SLF001 - its own
        ledger_of(buffer, Ledger(header.offsets))
        return buffer

    def save(self, path: str | Path) -> None:
        """Write it to a file in numpy's npz format, whole or not at all. Nothing in the file is pickled."""
        write_arrays(Path(path), self.serialized())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a buffer that ``save`` wrote. Its sample configs must be registered again.

        Raises:
            NotFound: there is no such file.
            UsageError: the file is no trajectory buffer.
        """
        return cls.deserialize(read_arrays(Path(path)), path=str(path))


def _ended(row: dict[Key, Any], end: bool) -> dict[str, Any]:  # noqa: FBT001
    nested_row = nested(row)
    return {**(nested_row if isinstance(nested_row, dict) else {"value": nested_row}), END: end}
