"""Rows arrive exactly once and in order, whatever breaks: connections, answers, servers, actors. Real sockets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.services.data.data_store import QueuedDataStore
from autoresearch.services.trainer import TrainerClient, TrainerConfig, TrainerServer
from tests.services.serving import CuttingProxy, waited

ACTORS = 2
ROOM = 100_000
ACTOR = st.integers(0, ACTORS - 1)
STEPS = st.one_of(
    st.tuples(st.just("insert"), ACTOR, st.integers(1, 40)),
    st.tuples(st.just("update"), ACTOR),
    st.tuples(st.just("update with the answer lost"), ACTOR),
    st.tuples(st.just("cut")),
    st.tuples(st.just("restart the server")),
    st.tuples(st.just("lose the server's store")),
    st.tuples(st.just("restart the actor's client"), ACTOR),
)


@dataclass
class Actor:
    """An actor, whose rows are (name, number)."""

    name: str
    port: int
    store: QueuedDataStore = field(default_factory=lambda: QueuedDataStore(ROOM))
    client: TrainerClient | None = None
    inserted: int = 0

    def insert(self, count: int) -> None:
        for _ in range(count):
            self.store.insert({"actor": self.name, "number": self.inserted})
            self.inserted += 1

    def connect(self) -> None:
        if self.client is not None:
            self.client.stop()
        config = TrainerConfig(port_number=self.port, broadcast_port=1)
        self.client = TrainerClient(
            self.name, "127.0.0.1", config, data_stores={"rows": self.store}, timeout_ms=150, wait_for_server=True
        )


class Scene:
    """A server behind a proxy, and actors that fill one store of it."""

    def __init__(self) -> None:
        self.store = QueuedDataStore(ROOM)
        self.server = self.started()
        self.proxy = CuttingProxy(self.server.port)
        self.actors = [Actor(f"actor {number}", self.proxy.port) for number in range(ACTORS)]
        for actor in self.actors:
            actor.connect()

    def started(self) -> TrainerServer:
        server = TrainerServer(TrainerConfig(port_number=0, broadcast_port=0))
        server.register_data_store("rows", self.store)
        server.start(threaded=True)
        return server

    def do(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("insert", number, count):
                self.actors[number].insert(count)
            case ("update", number):
                self.update(self.actors[number])
            case ("update with the answer lost", number):
                self.proxy.deaf = True
                assert not self.update(self.actors[number]) or not self.actors[number].inserted
                self.proxy.deaf = False
                self.proxy.cut()
            case ("cut",):
                self.proxy.cut()
            case ("restart the server",):
                self.restart()
            case ("lose the server's store",):
                self.store = QueuedDataStore(ROOM)
                self.restart()
            case ("restart the actor's client", number):
                self.actors[number].connect()
        self.check_order()

    def restart(self) -> None:
        self.server.stop()
        self.server = self.started()
        self.proxy.target = self.server.port
        self.proxy.cut()

    def update(self, actor: Actor) -> bool:
        assert actor.client is not None
        if not actor.client.update():
            return False
        assert self.numbers(actor) == list(range(actor.inserted))
        return True

    def numbers(self, actor: Actor) -> list[int]:
        return [row["number"] for row in self.store.get_latest_data(-1) if row["actor"] == actor.name]

    def check_order(self) -> None:
        for actor in self.actors:
            numbers = self.numbers(actor)
            assert numbers == list(range(len(numbers)))

    def end(self) -> None:
        for actor in self.actors:
            assert waited(lambda actor=actor: self.update(actor))
            assert actor.client is not None
            assert actor.client.rows_lost("rows") == 0
            actor.client.stop()
        self.server.stop()
        self.proxy.close()


def played(script: list[tuple[Any, ...]]) -> None:
    scene = Scene()
    for step in script:
        scene.do(step)
    scene.end()


@pytest.mark.slow
@settings(max_examples=10)
@given(st.lists(STEPS, max_size=8))
def test_rows_arrive_once_and_in_order_whatever_breaks(script: list[tuple[Any, ...]]) -> None:
    played(script)


@pytest.mark.slow
@settings(max_examples=12)
@given(st.lists(STEPS, min_size=5, max_size=25))
def test_rows_arrive_once_and_in_order_in_long_scripts(script: list[tuple[Any, ...]]) -> None:
    played(script)


def test_an_update_whose_answer_is_lost_is_no_success_and_its_rows_come_once() -> None:
    played([("insert", 0, 30), ("update with the answer lost", 0), ("insert", 0, 5), ("update", 0), ("update", 1)])


def test_a_server_that_lost_its_store_gets_again_what_actors_still_have() -> None:
    played(
        [("insert", 0, 30), ("update", 0), ("insert", 1, 3), ("lose the server's store",), ("update", 0), ("update", 1)]
    )
