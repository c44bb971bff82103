"""Buffers for transitions of environments: their columns follow from the spaces.

Episodes may be written to files, one each, with the names of RLDS, and buffers filled from them. A step has
observation, action, reward, discount, is_first, is_last and is_terminal. An episode of n transitions has n + 1 steps:
the last one holds the observation in which it ended, its action is zero. https://github.com/google-research/rlds
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import msgspec
import numpy as np

from autoresearch.errors import NotFound, UsageError
from autoresearch.services.buffers.replay import (
    ReplayBuffer,
    pack_columns,
    read_arrays,
    unpack_columns,
    unpack_header,
    write_arrays,
)
from autoresearch.services.buffers.rows import Array, Column, DataShape, Key, Layout, Ring, flat, nested, shown
from autoresearch.services.buffers.samplers import LatestSampler
from autoresearch.services.buffers.trajectories import END, Sampled, TrajectoryBuffer
from autoresearch.services.stores import DataStoreBase, QueuedDataStore

_NEEDED = ("observations", "actions", "rewards", "next_observations")


class _Header(msgspec.Struct, frozen=True, tag="episode"):
    steps: int
    total: float
    terminal: bool


class Episode(msgspec.Struct, frozen=True):
    """An episode: ``steps`` has the columns by name, each of one length. ``total`` is the sum of rewards.

    ``terminal`` says that it ended for good, and was not cut.
    """

    steps: dict[str, Any]
    total: float
    terminal: bool

    def transitions(self) -> Iterator[dict[str, Any]]:
        """Its transitions as rows: what ``EpisodeWriter.add`` was given."""
        columns, count = flat(self.steps), len(self.steps["reward"]) - 1
        for place in range(count):
            is_end = place == count - 1
            yield {
                "observations": _part(columns, "observation", place),
                "actions": _part(columns, "action", place),
                "rewards": columns[("reward",)][place],
                "next_observations": _part(columns, "observation", place + 1),
                "masks": 0.0 if is_end and self.terminal else 1.0,
                "end_of_trajectory": is_end,
            }


def _part(columns: Mapping[Key, Array], name: str, place: int) -> Any:  # noqa: ANN401
    return nested({key[1:]: column[place] for key, column in columns.items() if key[0] == name})


class EpisodeWriter:
    """Writes transitions to a folder, a file each episode; one that holds episodes gets further ones. For one thread.

    Closing it writes the episode in progress as a cut one. It is a context manager.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._steps: list[dict[str, Any]] = []
        self._following: dict[Key, Array] = {}
        numbers = [int(each.stem.rpartition("-")[2]) for each in _files(self._folder)]
        self._number = max(numbers, default=-1) + 1

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a transition: observations, actions, rewards, next_observations, and masks, 0 at a terminal state.

        The key ``end_of_trajectory`` or ``dones`` ends an episode that is cut. An observation that does not follow
        from the row before begins another episode.

        Raises:
            UsageError: the row lacks a name.
        """
        if missing := [name for name in _NEEDED if name not in row]:
            raise UsageError(f"a transition lacks {', '.join(missing)}", hint="episode files need all of a transition")
        observation = flat(row["observations"])
        if self._steps and not _same(observation, self._following):
            self._write(terminal=False)
        self._following = {key: np.array(value) for key, value in flat(row["next_observations"]).items()}
        self._steps.append(
            {
                "observation": nested({key: np.array(value) for key, value in observation.items()}),
                "action": nested({key: np.array(value) for key, value in flat(row["actions"]).items()}),
                "reward": np.array(row["rewards"]),
            }
        )
        is_terminal = not row.get("masks", 1)
        if is_terminal or row.get("end_of_trajectory", False) or row.get("dones", False):
            self._write(terminal=is_terminal)

    def _write(self, *, terminal: bool) -> None:
        nothing = nested({key: np.zeros_like(value) for key, value in flat(self._steps[-1]["action"]).items()})
        end = {
            "observation": nested(self._following),
            "action": nothing,
            "reward": np.zeros_like(self._steps[-1]["reward"]),
        }
        steps = [*self._steps, end]
        last = len(steps) - 1
        ring = Ring(len(steps))
        for place, step in enumerate(steps):
            flags = {"is_first": place == 0, "is_last": place == last, "is_terminal": terminal and place == last}
            discount = np.float32(0 if terminal and place >= last - 1 else 1)
            ring.put(place, ring.fit({**step, "discount": discount, **flags}))
        header = _Header(len(steps), float(sum(float(step["reward"]) for step in self._steps)), terminal)
        write_arrays(self._folder / f"episode-{self._number:06d}.npz", pack_columns(header, ring, 0, len(steps)))
        self._number += 1
        self._steps = []

    def close(self) -> None:
        """Write the episode in progress."""
        if self._steps:
            self._write(terminal=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_episodes(folder: str | Path) -> Iterator[Episode]:
    """The episodes of a folder in the order in which they were written.

    Raises:
        NotFound: the folder has none.
        UsageError: a file is no episode.
    """
    files = _files(Path(folder))
    if not files:
        raise NotFound(f"{folder} holds no episodes", hint="EpisodeWriter(folder) writes them")
    for path in files:
        arrays = read_arrays(path)
        header = unpack_header(arrays, _Header, str(path))
        columns = unpack_columns(arrays, max(header.steps, 1), 0, header.steps, str(path)).columns
        if ("reward",) not in columns or not {"observation", "action"} <= {key[0] for key in columns if key}:
            raise UsageError(f"{path} is no episode: it lacks observation, action or reward")
        yield Episode(nested(columns), header.total, header.terminal)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("episode-" + "[0-9]" * 6 + "*.npz"))


def _same(one: Mapping[Key, Array], other: Mapping[Key, Array]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[key], other[key], equal_nan=(one[key].dtype.kind in "fc")) for key in one
    )


Transform = Callable[[dict[str, Any], dict[str, Any]], Mapping[str, Any] | None]


_S = TypeVar("_S", bound=DataStoreBase)


def make_datastore(
    dataset_dir: str | Path,
    capacity: int,
    type: str = "replay_buffer",  # noqa: A002 - agentlace's name
    data_transform: Transform | None = None,
) -> ReplayBuffer | TrajectoryBuffer | QueuedDataStore:
    """A store with the transitions of a folder's episodes.

    ``type`` is ``replay_buffer``, ``trajectory_buffer`` or ``queued_datastore``.

    A trajectory buffer has the sample config ``training``: every column, at the drawn step.

    Raises:
        NotFound: the folder has no episodes.
        UsageError: a file is no episode, or there is no such type.
    """
    if type == "replay_buffer":
        return populate_datastore(ReplayBuffer(capacity), dataset_dir, type, data_transform)
    if type == "queued_datastore":
        return populate_datastore(QueuedDataStore(capacity), dataset_dir, type, data_transform)
    if type != "trajectory_buffer":
        hint = "replay_buffer, trajectory_buffer or queued_datastore"
        raise UsageError(f"no store is of the type {type}", hint=hint)
    buffer = populate_datastore(TrajectoryBuffer(capacity), dataset_dir, type, data_transform)
    buffer.register_sample_config("training", {name: LatestSampler() for name in buffer.dataset})
    return buffer


def populate_datastore(
    datastore: _S,
    dataset: str | Path | Iterable[Episode],
    type: str | None = None,  # noqa: A002
    data_transform: Transform | None = None,
) -> _S:
    """Insert the transitions of episodes, or of a folder of them, and return the store.

    ``type`` adds to each row: ``trajectory_buffer`` its ``end_of_trajectory``, ``with_dones`` its ``dones``.
    ``data_transform(row, {"step", "step_size"})`` returns the row to insert instead, or None for none.

    Raises:
        NotFound: the folder has no episodes.
        UsageError: a file is no episode, or a row does not fit the store.
    """
    episodes = read_episodes(dataset) if isinstance(dataset, str | Path) else dataset
    for episode in episodes:
        rows = list(episode.transitions())
        for place, row in enumerate(rows):
            end = row.pop(END)
            if type == "with_dones":
                row["dones"] = end
            data = data_transform(row, {"step": place, "step_size": len(rows)}) if data_transform else row
            if data is not None:
                datastore.insert({**data, END: end} if type == "trajectory_buffer" else data)
    return datastore


class Space(Protocol):
    """A space of Gymnasium with a shape, or one whose ``spaces`` maps names to further spaces."""

    @property
    def shape(self) -> Any: ...  # noqa: ANN401, D102

    @property
    def dtype(self) -> Any: ...  # noqa: ANN401, D102


def layout_of_space(name: str, space: Space) -> Layout:
    """The columns that hold values of a space. Raises UsageError for a space of another kind."""
    found: Layout = {}
    inner = getattr(space, "spaces", None)
    if isinstance(inner, Mapping):
        for each, part in inner.items():
            found.update({(name, *key): column for key, column in layout_of_space(each, part).items()})
        return found
    if space.shape is None or space.dtype is None:
        raise UsageError(f"{name}: a buffer can't keep values of the space {type(space).__name__}")
    return {(name,): Column(tuple(space.shape), np.dtype(space.dtype).name)}


class ReplayBufferDataStore(ReplayBuffer):
    """A replay buffer of transitions: observations, next_observations, actions, rewards, masks.

    A mask is 0 where the episode ended for good, else 1.
    """

    _logger: EpisodeWriter | None = None

    def __init__(
        self, observation_space: Space, action_space: Space, capacity: int, rlds_logger: EpisodeWriter | None = None
    ) -> None:
        """``rlds_logger`` also writes each row to episode files. Raises UsageError for a space of another kind."""
        layout = {
            **layout_of_space("observations", observation_space),
            **layout_of_space("next_observations", observation_space),
            **layout_of_space("actions", action_space),
            ("rewards",): Column((), "float32"),
            ("masks",): Column((), "float32"),
        }
        self._start(Ring(capacity, layout))
        self._logger = _checked(rlds_logger)

    def insert(self, data: Any) -> None:  # noqa: ANN401 - a row is whatever fits
        """Add a transition; ``dones`` and ``end_of_trajectory`` are for the episode files alone. Raises UsageError."""
        self.batch_insert([data])

    def batch_insert(self, batch_data: Sequence[Any]) -> None:
        """Add transitions, all or none of them. Raises UsageError as ``insert``."""
        others = ("dones", END)
        with self._lock:
            super().batch_insert([{name: row[name] for name in row if name not in others} for row in batch_data])
            if self._logger:
                for row in batch_data:
                    self._logger.add(row)


class TrajectoryBufferDataStore(TrajectoryBuffer):
    """A trajectory buffer whose rows may also be written to episode files."""

    _logger: EpisodeWriter | None = None

    def __init__(
        self,
        capacity: int,
        data_shapes: Iterable[DataShape] | None = None,
        device: object = None,
        seed: int = 0,
        min_trajectory_length: int = 2,
        rlds_logger: EpisodeWriter | None = None,
    ) -> None:
        """As TrajectoryBuffer. With ``rlds_logger`` each row must be a transition. Raises UsageError."""
        super().__init__(capacity, data_shapes, seed, min_trajectory_length, device)
        self._logger = _checked(rlds_logger)

    def insert(self, data: Any, end_of_trajectory: bool = False) -> None:  # noqa: ANN401, FBT001, FBT002
        """Add a row. Raises UsageError as TrajectoryBuffer does."""
        with self._lock:
            super().insert(data, end_of_trajectory)
            if self._logger:
                self._logger.add({END: end_of_trajectory, **data})

    def batch_insert(self, batch_data: Sequence[Any]) -> None:
        """Add rows in order, all or none of them. Raises UsageError as TrajectoryBuffer does."""
        with self._lock:
            super().batch_insert(batch_data)
            if self._logger:
                for row in batch_data:
                    self._logger.add(row)


def make_default_trajectory_buffer(
    observation_space: Space,
    action_space: Space,
    capacity: int,
    device: object = None,
    rlds_logger: EpisodeWriter | None = None,
) -> TrajectoryBufferDataStore:
    """A buffer of transitions whose sample config ``training`` gives them as a replay buffer would.

    Rows are those of a ReplayBufferDataStore, with ``end_of_trajectory``. Register further configs for windows.

    Raises:
        UsageError: a space has no arrays, or a device is asked for.
    """
    layout = {
        **layout_of_space("observations", observation_space),
        **layout_of_space("next_observations", observation_space),
        **layout_of_space("actions", action_space),
        ("rewards",): Column((), "float64"),
        ("masks",): Column((), "float64"),
        (END,): Column((), "bool"),
    }
    shapes = [DataShape(key, each.shape, each.dtype) for key, each in layout.items()]
    buffer = TrajectoryBufferDataStore(capacity, shapes, device=device, rlds_logger=rlds_logger)

    def parted(batch: dict[str, Any], valid: dict[str, Any]) -> Sampled:
        return nested({key: batch[shown(key)] for key in layout}), nested({key: valid[shown(key)] for key in layout})

    buffer.register_sample_config("training", {shown(key): LatestSampler() for key in layout}, transform=parted)
    return buffer


def _checked(logger: EpisodeWriter | None) -> EpisodeWriter | None:
    if logger is not None and not isinstance(logger, EpisodeWriter):
        raise UsageError(f"rlds_logger can't be {type(logger).__name__}", hint="pass an EpisodeWriter(folder)")
    return logger
