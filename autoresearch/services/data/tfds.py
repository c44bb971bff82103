"""Episodes in files, one each, with the names of RLDS, and stores that are filled from them.

A step has observation, action, reward, discount, is_first, is_last and is_terminal. An episode of n transitions has
n + 1 steps: the last one holds the observation in which it ended, its action is zero.
https://github.com/google-research/rlds
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
import numpy as np

from autoresearch.errors import NotFound, UsageError
from autoresearch.services.data.data_store import DataStoreBase, QueuedDataStore
from autoresearch.services.data.replay_buffer import (
    ReplayBuffer,
    pack_columns,
    read_arrays,
    unpack_columns,
    unpack_header,
    write_arrays,
)
from autoresearch.services.data.rows import Array, Key, Ring, flat, nested
from autoresearch.services.data.sampler import LatestSampler
from autoresearch.services.data.trajectory_buffer import END, TrajectoryBuffer

_NEEDED = ("observations", "actions", "rewards", "next_observations")


class _EpisodeHeader(msgspec.Struct, frozen=True, tag="episode"):
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
        header = _EpisodeHeader(len(steps), float(sum(float(step["reward"]) for step in self._steps)), terminal)
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
        header = unpack_header(arrays, _EpisodeHeader, str(path))
        columns = unpack_columns(arrays, max(header.steps, 1), 0, header.steps, str(path)).columns
        if ("reward",) not in columns or not {"observation", "action"} <= {key[0] for key in columns if key}:
            raise UsageError(f"{path} is no episode: it lacks observation, action or reward")
        yield Episode(nested(columns), header.total, header.terminal)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("episode-" + "[0-9]" * 6 + "*.npz"))


def _same(row: Mapping[Key, Array], other: Mapping[Key, Array]) -> bool:
    return row.keys() == other.keys() and all(
        np.array_equal(row[key], other[key], equal_nan=(row[key].dtype.kind in "fc")) for key in row
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
