"""Buffers filled from episodes in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from autoresearch.errors import UsageError
from autoresearch.services.buffers.episodes import Episode, read_episodes
from autoresearch.services.buffers.replay import ReplayBuffer
from autoresearch.services.buffers.samplers import LatestSampler
from autoresearch.services.buffers.trajectories import END, TrajectoryBuffer
from autoresearch.services.stores import DataStoreBase, QueuedDataStore

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
    found = populate_datastore(TrajectoryBuffer(capacity), dataset_dir, type, data_transform)
    found.register_sample_config("training", {name: LatestSampler() for name in found.dataset})
    return found


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
