"""Trainer servers and clients: agentlace's calls, what its README promises, back-pressure, versions of weights."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autoresearch.errors import NoAnswer, Refused, ServiceError, ServiceFailed, ServiceRefused
from autoresearch.services.data.data_store import QueuedDataStore, SamplesPerInsert
from autoresearch.services.data.replay_buffer import ReplayBuffer
from autoresearch.services.data.rows import DataShape
from autoresearch.services.data.trajectory_buffer import TrajectoryBuffer
from autoresearch.services.trainer import TrainerClient, TrainerConfig, TrainerServer, TrainerSMInterface
from tests.services.serving import dead_port, waited


def config(server: TrainerServer | None = None, **changes: Any) -> TrainerConfig:
    ports = {"port_number": 0, "broadcast_port": 0}
    if server is not None:
        ports = {"port_number": server.port, "broadcast_port": server.broadcast_port}
    return TrainerConfig(**ports | {"request_types": ["get-stats"]} | changes)


@contextmanager
def served(*callbacks: Any, **stores: Any) -> Iterator[TrainerServer]:
    server = TrainerServer(config(), *callbacks)
    for name, store in stores.items():
        server.register_data_store(name, *(store if isinstance(store, tuple) else (store,)))
    server.start(threaded=True)
    try:
        yield server
    finally:
        server.stop()


def test_agentlaces_own_test_of_a_trainer() -> None:
    arrivals: list[Any] = []
    networks: list[Any] = []
    table1, table2 = QueuedDataStore(6), QueuedDataStore(6)
    with served(
        lambda name, payload: arrivals.append((name, len(payload["data"]), payload["last_id"])),
        lambda kind, payload: {"trainer-status": "it's working"},
        table1=table1,
        table2=table2,
    ) as server:
        assert server.data_store("table1") is table1
        assert server.data_store("other") is None
        actor1, actor2 = QueuedDataStore(3), QueuedDataStore(3)
        client = TrainerClient("table1", "127.0.0.1", config(server), data_stores={"table1": actor1, "table2": actor2})
        client.recv_network_callback(networks.append)

        actor1.insert(np.array([1, 2, 3]))
        actor1.insert(np.array([4, 5, 6]))
        assert client.update()
        assert len(table1) == 2
        actor1.insert(np.array([7, 8, 9]))
        actor2.batch_insert([np.array([30, 31, 32])] * 2)
        assert (len(table1), len(table2)) == (2, 0)
        assert client.update()
        assert (len(table1), len(table2)) == (3, 2)
        assert client.update()
        assert (len(table1), len(table2)) == (3, 2)
        assert np.array_equal(table1.get_latest_data(-1)[-1], [7, 8, 9])

        assert client.request("get-stats", {}) == {"trainer-status": "it's working"}
        assert client.request("invalid", {}) is None

        client.start_async_update(interval=0.01)
        actor1.insert(np.array([13, 14, 15]))
        assert waited(lambda: table1.latest_data_id() == actor1.latest_data_id())

        server.publish_network(np.array([100, 200, 300, 400]))
        assert waited(lambda: networks)
        assert np.array_equal(networks[0], [100, 200, 300, 400])
        client.stop()

    assert arrivals == [("table1", 2, 1), ("table1", 1, 2), ("table2", 2, 1), ("table1", 1, 3)]


def test_agentlaces_own_stress_test_of_a_trainer() -> None:
    tables = QueuedDataStore(100_000), QueuedDataStore(100_000)
    with served(table1=tables[0], table2=tables[1]) as server:
        actors = QueuedDataStore(100_000), QueuedDataStore(100_000)
        stores = dict(zip(("table1", "table2"), actors, strict=True))
        for number in range(1000):
            actors[0].insert(np.array([number] * 300))
            actors[1].insert(np.array([number] * 100))
            if number % 100 == 99:
                # Some updates are too late for so few milliseconds, and each of these clients ends with the next.
                with suppress(ServiceError):
                    hasty = 5 + 8 * number // 100
                    TrainerClient("table1", "127.0.0.1", config(server), data_stores=stores, timeout_ms=hasty).stop()
                assert all(map(lambda table, actor: len(table) <= len(actor), tables, actors))
        client = TrainerClient("table1", "127.0.0.1", config(server), data_stores=stores, timeout_ms=20_000)
        assert client.update()
        for table in tables:
            assert [row[0] for row in table.get_latest_data(-1)] == list(range(1000))
        client.stop()


def test_the_calls_of_agentlaces_readme() -> None:
    with served(agent1=QueuedDataStore(100)) as server:
        data_store = QueuedDataStore(capacity=2)
        trainer_client = TrainerClient("agent1", "localhost", config(server), data_store)
        for step in range(2):
            data_store.insert((np.zeros(4), float(step), False, {}))
        assert trainer_client.update()
        (row,) = server.data_store("agent1").get_latest_data(0)
        assert row[1:] == (1.0, False, {})

        data_store.batch_insert([1, 2, 3, 4, 5])  # it holds two
        assert trainer_client.update()
        assert trainer_client.rows_lost("agent1") == 3
        trainer_client.stop()


def test_two_actors_fill_one_store_and_no_row_is_lost() -> None:
    store = QueuedDataStore(100)
    with served(rows=store) as server:
        own = [QueuedDataStore(100) for _ in range(2)]
        clients = [TrainerClient("actor", "localhost", config(server), data_stores={"rows": mine}) for mine in own]
        for number in range(5):
            for name, mine, client in zip("ab", own, clients, strict=True):
                mine.insert(f"{name}{number}")
                assert client.update()
        for client in clients:
            client.stop()
    assert sorted(store.get_latest_data(-1)) == [f"{name}{number}" for name in "ab" for number in range(5)]


def test_update_says_true_for_what_arrived_alone() -> None:
    store, mine = QueuedDataStore(100), QueuedDataStore(100)
    with served(rows=store) as server:
        client = TrainerClient(
            "a", "localhost", config(server), data_stores={"rows": mine, "none": mine}, timeout_ms=300
        )
        mine.insert(1)
        assert not client.update()
        assert "no data store none" in str(client.last_error)
        assert len(store) == 1  # the other store is at the server
        assert TrainerClient("b", "localhost", config(server)).update() is False
        own = QueuedDataStore(9)
        own.insert(object())
        other = TrainerClient("rows", "localhost", config(server), own)
        assert not other.update()
        assert "cannot be sent" in str(other.last_error)
        other.stop()
        port = server.port
    assert not client.update()
    assert isinstance(client.last_error, NoAnswer)
    loud_config = config(port_number=port, broadcast_port=1)
    with pytest.raises(NoAnswer):
        TrainerClient("c", "localhost", loud_config, timeout_ms=100)
    client.stop()


def test_rows_wait_at_the_actor_while_the_learner_is_behind() -> None:
    store, mine = QueuedDataStore(1000), QueuedDataStore(1000)
    limit = SamplesPerInsert(ratio=2, min_size=1, slack=10)
    with served(rows=(store, limit)) as server:
        client = TrainerClient("rows", "localhost", config(server), mine)
        mine.batch_insert(list(range(20)))
        assert client.update()
        mine.batch_insert(list(range(20, 30)))
        assert not client.update()
        assert isinstance(client.last_error, ServiceRefused)
        assert "the learner is behind" in str(client.last_error)
        assert limit.take(30, wait_s=5)
        assert client.update()
        assert store.get_latest_data(-1) == list(range(30))
        client.stop()


class Picky(QueuedDataStore):
    """A store that takes no negative rows."""

    def insert(self, data: Any) -> None:
        if data < 0:
            raise ValueError(f"{data} is negative")
        super().insert(data)

    def batch_insert(self, batch_data: Any) -> None:
        for data in batch_data:
            self.insert(data)


def test_a_row_that_the_store_does_not_take_is_told_of_and_those_before_it_come_once() -> None:
    store, mine = Picky(100), QueuedDataStore(100)
    with served(rows=store) as server:
        client = TrainerClient("rows", "localhost", config(server), mine, errors="raise")
        mine.batch_insert([1, 2, -3, 4])
        for _ in range(3):
            with pytest.raises(ServiceFailed, match="-3 is negative"):
                client.update()
        assert store.get_latest_data(-1) == [1, 2]
        client.stop()


def test_callbacks_that_raise_end_nothing() -> None:
    def fail(*_: object) -> None:
        raise ValueError("callback")

    store, mine = QueuedDataStore(10), QueuedDataStore(10)
    with served(fail, fail, rows=store) as server:
        client = TrainerClient("rows", "localhost", config(server), mine)
        mine.insert(1)
        assert client.update()
        assert client.request("get-stats", {}) is None
        assert "ValueError: callback" in str(client.last_error)
        assert len(store) == 1
        client.stop()


@pytest.mark.slow
def test_many_and_large_rows_arrive_in_several_messages() -> None:
    store, mine = QueuedDataStore(100_000), QueuedDataStore(100_000)
    with served(rows=store) as server:
        client = TrainerClient("rows", "localhost", config(server), mine, timeout_ms=20_000)
        mine.batch_insert([{"obs": np.full(3, number), "reward": 0.5 * number} for number in range(45_000)])
        mine.batch_insert([np.full(1 << 18, number) for number in range(12)])
        assert client.update()
        rows = store.get_latest_data(-1)
        assert [row["obs"][0] for row in rows[:45_000:1000]] == list(range(0, 45_000, 1000))
        assert rows[7]["reward"] == 3.5
        assert [row[0] for row in rows[45_000:]] == list(range(12))
        client.stop()


def test_an_actor_knows_the_version_of_its_weights_and_how_far_it_is_behind() -> None:
    go, came = threading.Event(), []

    def on_network(weights: Any) -> None:
        came.append(weights["step"])
        go.wait(20)

    with served() as server:
        client = TrainerClient("a", "localhost", config(server))
        assert (client.network_version, client.network_lag()) == (0, 0)
        assert server.publish_network({"step": 0}) == 1
        client.recv_network_callback(on_network)
        assert waited(lambda: came == [0])
        for step in range(1, 50):
            server.publish_network({"step": step})
        assert (client.network_version, client.network_lag()) == (1, 49)
        go.set()
        assert waited(lambda: came == [0, 49])
        assert (client.network_version, client.network_lag()) == (50, 0)
        client.stop()


def test_configs_must_agree_and_the_rate_limit_holds() -> None:
    with served(rows=QueuedDataStore(9)) as server:
        for other in (config(server, version="9"), config(server, request_types=[])):
            with pytest.raises(ServiceRefused, match="here and"):
                TrainerClient("a", "localhost", other)
        limited = TrainerClient("rows", "localhost", config(server, rate_limit=0.001), QueuedDataStore(9))
        assert limited.request("get-stats", {}) == {}
        assert limited.request("get-stats", {}) is None
        assert not limited.update()
        assert "requests in a second" in str(limited.last_error)
        limited.stop()
        with pytest.raises(Refused, match="in use"):
            TrainerServer(TrainerConfig(port_number=0, broadcast_port=server.broadcast_port))
    assert dead_port()


def test_the_calls_work_in_one_process() -> None:
    both = TrainerSMInterface()
    store, networks = QueuedDataStore(9), []
    both.register_data_store("rows", store)
    both.recv_network_callback(networks.append)
    both.start(threaded=True)
    both.start_async_update(interval=1)
    store.insert(1)

    assert both.update()
    assert both.data_store("rows") is store
    assert both.publish_network({"w": 1}) == both.network_version == 1
    assert (networks, both.network_lag()) == ([{"w": 1}], 0)
    both.stop()


@pytest.mark.parametrize("kind", [ReplayBuffer, TrajectoryBuffer])
def test_a_learner_that_goes_on_from_a_saved_buffer_gets_no_row_again(
    kind: type[ReplayBuffer | TrajectoryBuffer], tmp_path: Path
) -> None:
    rows, buffer = QueuedDataStore(100), kind(100, [DataShape("reward")])
    for number in range(10):
        rows.insert({"reward": float(number)})
    with served(rows=buffer) as server:
        client = TrainerClient("actor", "localhost", config(server), data_stores={"rows": rows})
        assert client.update()
        client.stop()
    buffer.save(tmp_path / "rows.npz")
    again = kind.load(tmp_path / "rows.npz")
    rows.insert({"reward": 10.0})
    with served(rows=again) as server:
        client = TrainerClient("actor", "localhost", config(server), data_stores={"rows": rows})
        assert client.update()
        client.stop()

    assert len(again) == 11
