"""Episodes in files: what is read is what was written, under the names of RLDS."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.errors import NotFound, UsageError
from autoresearch.services.data.jaxrl_data_store import ReplayBufferDataStore, TrajectoryBufferDataStore
from autoresearch.services.data.replay_buffer import ReplayBuffer
from autoresearch.services.data.tfds import EpisodeWriter, make_datastore, populate_datastore, read_episodes
from autoresearch.services.data.trajectory_buffer import TrajectoryBuffer


def rows(first: int, length: int, *, terminal: bool) -> list[dict[str, object]]:
    def seen(at: int) -> dict[str, object]:
        return {"image": np.full((2, 2), at, np.uint8), "a/b": np.float64(at)}

    return [
        {
            "observations": seen(first + step),
            "actions": np.array([step], np.int32),
            "rewards": np.float32(step),
            "next_observations": seen(first + step + 1),
            "masks": 0.0 if terminal and step == length - 1 else 1.0,
            "end_of_trajectory": step == length - 1,
        }
        for step in range(length)
    ]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=5))
def test_transitions_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, episodes: list[tuple[int, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("e")
    written = [rows(20 * n, length, terminal=terminal) for n, (length, terminal) in enumerate(episodes)]
    for each in written:  # a writer for each: a second one goes on after the first
        with EpisodeWriter(folder) as writer:
            for row in each:
                writer.add(row)
    stored = list(read_episodes(folder))
    assert [each.terminal for each in stored] == [terminal for _, terminal in episodes]
    for episode, transitions in zip(stored, written, strict=True):
        np.testing.assert_equal(list(episode.transitions()), transitions)
        steps = episode.steps
        count = len(transitions) + 1
        assert steps["is_first"].tolist() == [True] + [False] * (count - 1)
        assert steps["is_last"].tolist() == [False] * (count - 1) + [True]
        assert steps["is_terminal"].tolist() == [False] * (count - 1) + [episode.terminal]
        assert steps["action"].dtype == np.int32
        assert episode.total == sum(range(len(transitions)))


def test_an_observation_that_does_not_follow_begins_an_episode(tmp_path: Path) -> None:
    first, second = rows(0, 3, terminal=False), rows(50, 2, terminal=False)
    with EpisodeWriter(tmp_path) as writer:
        for row in [*first, *second]:
            row["end_of_trajectory"] = False
            writer.add(row)
    assert [len(each.steps["reward"]) for each in read_episodes(tmp_path)] == [4, 3]


def test_later_changes_of_the_callers_arrays_do_not_matter(tmp_path: Path) -> None:
    buffer = np.zeros(2)
    with EpisodeWriter(tmp_path) as writer:
        for step in range(3):
            following = np.full(2, step + 1.0)
            writer.add({"observations": buffer, "actions": buffer, "rewards": 1.0, "next_observations": following})
            buffer[:] = following
    (episode,) = read_episodes(tmp_path)
    assert episode.steps["observation"][:, 0].tolist() == [0, 1, 2, 3]
    assert episode.steps["action"][:, 0].tolist() == [0, 1, 2, 0]


def test_data_stores_write_what_they_are_given(tmp_path: Path) -> None:
    spaces = pytest.importorskip("gymnasium.spaces")
    seen = spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8), "a/b": spaces.Box(0, 99, (), np.float64)})
    written = [*rows(0, 4, terminal=True), *rows(30, 2, terminal=False)]
    with EpisodeWriter(tmp_path / "one") as first, EpisodeWriter(tmp_path / "two") as two:
        ReplayBufferDataStore(seen, spaces.Box(0, 9, (1,), np.int32), 10, rlds_logger=first).batch_insert(written)
        TrajectoryBufferDataStore(10, rlds_logger=two).batch_insert(written)
    for name in ("one", "two"):
        transitions = [row for each in read_episodes(tmp_path / name) for row in each.transitions()]
        np.testing.assert_equal(transitions, written)


def test_what_is_no_episode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holds no episodes"):
        next(read_episodes(tmp_path))
    with pytest.raises(UsageError, match="lacks actions, rewards"):
        EpisodeWriter(tmp_path).add({"observations": 1, "next_observations": 1})
    with pytest.raises(UsageError, match="rlds_logger can't be list"):
        TrajectoryBufferDataStore(10, rlds_logger=[])  # type: ignore[arg-type]
    (tmp_path / "episode-000000.npz").write_bytes(b"nothing")
    with pytest.raises(UsageError):
        next(read_episodes(tmp_path))


def test_buffers_are_filled_from_episodes(tmp_path: Path) -> None:
    written = [*rows(0, 4, terminal=True), *rows(30, 3, terminal=False)]
    with EpisodeWriter(tmp_path) as writer:
        for row in written:
            writer.add(row)
    replay = make_datastore(tmp_path, 100)
    plain = [{name: each for name, each in row.items() if name != "end_of_trajectory"} for row in written]
    np.testing.assert_equal(replay.get_latest_data(-1), plain)
    np.testing.assert_equal(make_datastore(tmp_path, 100, "queued_datastore").get_latest_data(-1), plain)
    trajectories = make_datastore(tmp_path, 100, "trajectory_buffer")
    assert isinstance(trajectories, TrajectoryBuffer)
    np.testing.assert_equal(trajectories.get_latest_data(-1), written)
    assert trajectories.sample("training", 3)[0]["observations/image"].shape == (3, 2, 2)

    def even(row: dict[str, object], about: dict[str, object]) -> dict[str, object] | None:
        return None if int(str(about["step"])) % 2 else {"rewards": row["rewards"], "dones": row["dones"]}

    store = populate_datastore(ReplayBuffer(100), read_episodes(tmp_path), "with_dones", even)
    assert [float(row["rewards"]) for row in store.get_latest_data(-1)] == [0, 2, 0, 2]
    assert [bool(row["dones"]) for row in store.get_latest_data(-1)] == [False, False, False, True]
    with pytest.raises(UsageError, match="no store is of the type other"):
        make_datastore(tmp_path, 100, "other")
