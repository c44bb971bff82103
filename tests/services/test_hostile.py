"""Ten thousand changed messages leave every server alive, and what it has as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autoresearch.services import ActionClient, ActionConfig, ActionServer
from autoresearch.services.data.data_store import QueuedDataStore
from autoresearch.services.data.transfer import to_columns
from autoresearch.services.links.client import RequestClient
from autoresearch.services.links.newest import Subscriber
from autoresearch.services.links.server import RequestServer
from autoresearch.services.trainer import TrainerClient, TrainerConfig, TrainerServer
from tests.services.serving import bombard, publishing, waited

MESSAGES = 10_000
LARGE = np.zeros(9000, np.uint8)


@pytest.mark.slow
def test_a_request_server_survives_changed_messages() -> None:
    server = RequestServer(lambda value: value)
    server.start(threaded=True)
    with RequestClient("127.0.0.1", server.port, 20_000) as honest:
        bombard(server.port, {"type": "obs", "keys": {"cam"}, "array": np.arange(5), "large": LARGE}, MESSAGES)
        assert honest.ask("alive") == "alive"
        assert server.counts.malformed > MESSAGES / 2
    assert server.stop()


@pytest.mark.slow
def test_an_action_server_survives_changed_messages() -> None:
    def act(key: str, payload: Any) -> Any:
        return payload["move"] + 1

    config = ActionConfig(0, ["move"], ["cam"], 0)
    server = ActionServer(config, lambda keys: dict.fromkeys(keys, LARGE), act)
    server.start(threaded=True)
    client = ActionClient("127.0.0.1", server.port, config=config, timeout_ms=20_000)
    bombard(server.port, {"type": "act", "key": "move", "payload": {"move": np.arange(3)}}, MESSAGES // 2)
    bombard(server.port, {"type": "obs", "keys": ["cam"]}, MESSAGES // 2)
    assert np.array_equal(client.act("move", {"move": np.arange(3)}), [1, 2, 3])
    assert np.array_equal(client.obs()["cam"], LARGE)
    client.stop()
    server.stop()


@pytest.mark.slow
def test_a_trainer_server_survives_changed_messages() -> None:
    store, mine = QueuedDataStore(100), QueuedDataStore(100)
    server = TrainerServer(TrainerConfig(0, 0, ["stats"]), request_callback=lambda name, payload: {name: payload})
    server.register_data_store("rows", store)
    server.start(threaded=True)
    config = TrainerConfig(server.port, server.broadcast_port, ["stats"])
    client = TrainerClient("rows", "127.0.0.1", config, mine, timeout_ms=20_000)
    mine.batch_insert([{"obs": np.arange(4.0)}] * 3)
    assert client.update()
    rows = {
        "store": "rows",
        "source": "hostile",
        "after": -1,
        "last": 2,
        "count": 3,
        "columns": to_columns([{"obs": np.arange(4.0), "cam": LARGE}] * 3),
    }
    bombard(server.port, {"type": "datastore", "rows": rows}, MESSAGES // 2)
    bombard(server.port, {"type": "request", "name": "stats", "payload": {"a": [1, 2.5]}}, MESSAGES // 2)
    mine.insert({"obs": np.arange(5.0)})
    assert client.update()
    assert client.request("stats", 1) == {"stats": 1}
    assert np.array_equal(store.get_latest_data(-1)[-1]["obs"], np.arange(5.0))
    client.stop()
    server.stop()


@pytest.mark.parametrize("question", [[0, 0], {"have": LARGE}])
def test_a_publisher_survives_changed_messages(question: object) -> None:
    received: list[Any] = []
    with publishing() as publisher:
        publisher.publish("first")
        bombard(publisher.port, question, MESSAGES // 2, answers=False)
        subscriber = Subscriber(lambda value, version: received.append((value, version)), "127.0.0.1", publisher.port)
        publisher.publish("second")
        assert waited(lambda: received[-1:] == [("second", 2)])
        assert subscriber.stop()
