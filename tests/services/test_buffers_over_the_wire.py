"""Buffers as stores of actors and learners: what an actor inserts stands in the learner's buffer, once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from autoresearch.services import LatestSampler
from autoresearch.services.data.data_store import DataStoreBase
from autoresearch.services.data.replay_buffer import ReplayBuffer
from autoresearch.services.data.trajectory_buffer import TrajectoryBuffer
from autoresearch.services.trainer import TrainerClient, TrainerConfig, TrainerServer
from tests.services.serving import waited


@pytest.fixture
def learner() -> Iterator[TrainerServer]:
    server = TrainerServer(TrainerConfig(0, 0))
    server.start(threaded=True)
    yield server
    server.stop()


def actor(learner: TrainerServer, store: DataStoreBase) -> TrainerClient:
    return TrainerClient("agent1", "localhost", TrainerConfig(learner.port, learner.broadcast_port), store)


def test_the_trainer_example_of_agentlaces_readme(learner: TrainerServer) -> None:
    data_store = ReplayBuffer(capacity=100)
    learner.register_data_store("agent1", data_store)
    own, received = ReplayBuffer(capacity=10), []
    client = actor(learner, own)
    client.recv_network_callback(received.append)
    for step in range(25):
        own.insert({"observations": np.full(3, step), "rewards": float(step)})
        if step % 5 == 4:
            assert client.update()
    assert [float(row["rewards"]) for row in data_store.get_latest_data(-1)] == list(range(25))
    assert data_store.sample(4)["observations"].shape == (4, 3)
    learner.publish_network({"w": np.ones(2)})
    assert waited(lambda: received)
    client.stop()


def test_trajectories_arrive_whole(learner: TrainerServer) -> None:
    theirs = TrajectoryBuffer(100, min_trajectory_length=3)
    learner.register_data_store("agent1", theirs)
    own = TrajectoryBuffer(20, min_trajectory_length=3)
    client = actor(learner, own)
    number = 0
    for length in (5, 2, 3, 8, 1, 4):  # the second and the fifth are too short, and dropped
        for _ in range(length):
            own.insert({"n": number})
            number += 1
            client.update()
        own.end_trajectory()
    assert client.update()
    rows = theirs.get_latest_data(-1)
    assert [int(row["n"]) for row in rows] == [0, 1, 2, 3, 4, *range(7, 18), *range(19, 23)]
    assert [int(row["n"]) for row in rows if row["end_of_trajectory"]] == [4, 9, 17, 22]
    theirs.register_sample_config("n", {"n": LatestSampler()}, (0, 3))
    assert set(theirs.sample("n", 300)[0]["n"].tolist()) == {0, 1, 2, 7, *range(10, 16), 19, 20}
    client.stop()


def test_rows_that_do_not_fit_are_told_and_the_learner_goes_on(learner: TrainerServer) -> None:
    theirs, own = ReplayBuffer(100), ReplayBuffer(100)
    theirs.insert({"n": np.zeros(2)})
    learner.register_data_store("agent1", theirs)
    client = actor(learner, own)
    own.insert({"n": np.zeros(3)})
    assert not client.update()
    assert client.last_error is not None
    assert "n has the shape (3,), the buffer (2,)" in str(client.last_error)
    assert len(theirs) == 1
    client.stop()
