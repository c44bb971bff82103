"""Buffers for transitions of environments: their columns follow from the spaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from autoresearch.errors import UsageError
from autoresearch.services.data.replay_buffer import ReplayBuffer
from autoresearch.services.data.rows import ArrayColumn, DataShape, Layout, Ring, key_name, nested
from autoresearch.services.data.sampler import LatestSampler
from autoresearch.services.data.tfds import EpisodeWriter
from autoresearch.services.data.trajectory_buffer import END, Sampled, TrajectoryBuffer


class GymSpace(Protocol):
    """A space of Gymnasium with a shape, or one whose ``spaces`` maps names to further spaces."""

    @property
    def shape(self) -> Any: ...  # noqa: ANN401, D102

    @property
    def dtype(self) -> Any: ...  # noqa: ANN401, D102


def layout_of_space(name: str, space: GymSpace) -> Layout:
    """The columns that hold values of a space. Raises UsageError for a space of another kind."""
    layout: Layout = {}
    inner = getattr(space, "spaces", None)
    if isinstance(inner, Mapping):
        for each, part in inner.items():
            layout.update({(name, *key): column for key, column in layout_of_space(each, part).items()})
        return layout
    if space.shape is None or space.dtype is None:
        raise UsageError(f"{name}: a buffer can't keep values of the space {type(space).__name__}")
    return {(name,): ArrayColumn(tuple(space.shape), np.dtype(space.dtype).name)}


class ReplayBufferDataStore(ReplayBuffer):
    """A replay buffer of transitions: observations, next_observations, actions, rewards, masks.

    A mask is 0 where the episode ended for good, else 1.
    """

    _logger: EpisodeWriter | None = None

    def __init__(
        self,
        observation_space: GymSpace,
        action_space: GymSpace,
        capacity: int,
        rlds_logger: EpisodeWriter | None = None,
    ) -> None:
        """``rlds_logger`` also writes each row to episode files. Raises UsageError for a space of another kind."""
        layout = {
            **layout_of_space("observations", observation_space),
            **layout_of_space("next_observations", observation_space),
            **layout_of_space("actions", action_space),
            ("rewards",): ArrayColumn((), "float32"),
            ("masks",): ArrayColumn((), "float32"),
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
    observation_space: GymSpace,
    action_space: GymSpace,
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
        ("rewards",): ArrayColumn((), "float64"),
        ("masks",): ArrayColumn((), "float64"),
        (END,): ArrayColumn((), "bool"),
    }
    shapes = [DataShape(key, each.shape, each.dtype) for key, each in layout.items()]
    buffer = TrajectoryBufferDataStore(capacity, shapes, device=device, rlds_logger=rlds_logger)

    def parted(batch: dict[str, Any], valid: dict[str, Any]) -> Sampled:
        values, valids = ({key: part[key_name(key)] for key in layout} for part in (batch, valid))
        return nested(values), nested(valids)

    buffer.register_sample_config("training", {key_name(key): LatestSampler() for key in layout}, transform=parted)
    return buffer


def _checked(logger: EpisodeWriter | None) -> EpisodeWriter | None:
    if logger is not None and not isinstance(logger, EpisodeWriter):
        raise UsageError(f"rlds_logger can't be {type(logger).__name__}", hint="pass an EpisodeWriter(folder)")
    return logger
