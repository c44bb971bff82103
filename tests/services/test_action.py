"""Action servers and clients: agentlace's calls, what its README promises, and failures with their reason."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from autoresearch.errors import NoAnswer, Refused, ServiceFailed, ServiceRefused, UsageError
from autoresearch.services import ActionClient, ActionConfig, ActionServer
from autoresearch.services.links.sockets import ClientKeys, KeyPair, ServerKeys
from tests.services.serving import dead_port, waited

IMAGE = np.random.default_rng(0).integers(0, 255, (256, 256, 3), dtype=np.uint8)


def config(**changes: Any) -> ActionConfig:
    return ActionConfig(
        **{"port_number": 0, "action_keys": ["send_image"], "observation_keys": ["test_image"]} | changes
    )


@contextmanager
def served(obs: Any, act: Any, **changes: Any) -> Iterator[ActionServer]:
    server = ActionServer(config(**changes), obs, act)
    server.start(threaded=True)
    try:
        yield server
    finally:
        server.stop()


def test_agentlaces_own_test_of_actions() -> None:
    def obs_callback(keys: set) -> dict:
        if "test_image" in keys:
            return {"status": "success", "test_image": IMAGE}
        return {"status": "error", "message": "Invalid key requested"}

    def act_callback(key: str, payload: dict) -> dict:
        return {"status": "success", "message": "Image received"}

    with served(obs_callback, act_callback, broadcast_port=0) as server:
        client = ActionClient("127.0.0.1", config(port_number=server.port))
        second = ActionClient("localhost", config(port_number=server.port), True, 800)
        assert client.obs()["test_image"].shape == (256, 256, 3)
        assert np.array_equal(second.obs({"test_image"})["test_image"], IMAGE)
        assert client.act("send_image", {"image": IMAGE}) == {"status": "success", "message": "Image received"}
        client.stop()
        second.stop()


def test_published_observations_reach_callbacks() -> None:
    received: list[Any] = []
    with served(None, None, broadcast_port=0) as server:
        assert server.publish_obs({"test-broadcast": 0})
        client = ActionClient("127.0.0.1", config(port_number=server.port, broadcast_port=0))
        client.register_obs_callback(received.append)
        assert server.publish_obs({"test-broadcast": 1})
        assert waited(lambda: received[-1:] == [{"test-broadcast": 1}])
        other: list[Any] = []
        client.register_obs_callback(other.append)  # it takes the place of the first
        assert waited(lambda: other == [{"test-broadcast": 1}])
        client.stop()
    with served(None, None) as server:
        assert not server.publish_obs({"test-broadcast": 1})
        silent = ActionClient("127.0.0.1", config(port_number=server.port))
        with pytest.raises(UsageError, match="publishes no observations"):
            silent.register_obs_callback(received.append)
        silent.stop()


def test_the_call_of_agentlaces_readme() -> None:
    seen: list[Any] = []
    with served(
        lambda keys: {"cam1": sorted(keys)},
        lambda *act: seen.append(act) or {"status": "received"},
        action_keys=["send"],
        observation_keys=["cam1"],
    ) as server:
        agent_config = config(action_keys=["send"], observation_keys=["cam1"])
        agent = ActionClient("localhost", server.port, task_id="mnist", config=agent_config)
        for number in range(3):
            assert agent.obs() == {"cam1": ["cam1"]}
            assert agent.act("send", np.float32(number)) == {"status": "received"}
        assert agent.act("send") == {"status": "received"}
        assert agent.task_id == "mnist"
        agent.stop()

    assert seen == [("send", 0.0), ("send", 1.0), ("send", 2.0), ("send", {})]


def test_a_config_serves_any_number_of_clients() -> None:
    with served(sorted, None) as server:
        shared = config(port_number=server.port)
        clients = [ActionClient("localhost", shared) for _ in range(3)]
        assert [client.obs() for client in clients] == [["test_image"]] * 3
        assert shared == config(port_number=server.port)
        for client in clients:
            client.stop()


def test_a_failure_is_none_with_its_reason_or_raised() -> None:
    def obs(keys: set[str]) -> Any:
        raise OSError("no camera")

    with served(obs, None) as server:
        quiet = ActionClient("localhost", config(port_number=server.port))
        loud = ActionClient("localhost", config(port_number=server.port), errors="raise", timeout_ms=300)
        assert quiet.obs() is None
        assert isinstance(quiet.last_error, ServiceFailed)
        assert "OSError: no camera" in str(quiet.last_error)
        with pytest.raises(ServiceFailed, match="no camera"):
            loud.obs()
        assert quiet.act("send_image") is None
        assert isinstance(quiet.last_error, ServiceRefused)
        with pytest.raises(UsageError, match="no such action key: move"):
            quiet.act("move")
        with pytest.raises(UsageError, match="no such observation key: cam"):
            quiet.obs({"cam"})
        quiet.stop()
    with pytest.raises(NoAnswer):
        loud.obs()
    loud.stop()


def test_configs_must_agree_but_ports_may_differ() -> None:
    with served(sorted, None) as server:
        client = ActionClient("localhost", server.port, config=config(port_number=1, broadcast_port=7))
        assert client.obs() == ["test_image"]
        client.stop()
        for other in (config(version="2"), config(action_keys=["other"])):
            with pytest.raises(ServiceRefused, match="here and"):
                ActionClient("localhost", server.port, config=other)
    with pytest.raises(NoAnswer, match="no server"):
        ActionClient("localhost", config(port_number=dead_port()), timeout_ms=100)
    with pytest.raises(UsageError, match="needs a config"):
        ActionClient("localhost", 5555)


def test_a_client_can_wait_for_its_server() -> None:
    port = dead_port()
    clients: list[Any] = []
    thread = threading.Thread(
        target=lambda: clients.append(
            ActionClient("localhost", config(port_number=port), wait_for_server=True, timeout_ms=100)
        )
    )
    thread.start()
    with served(sorted, None, port_number=port):
        thread.join(20)
        assert clients[0].obs() == ["test_image"]
        clients[0].stop()


def test_keys_open_a_server_to_other_machines(tmp_path) -> None:
    own, actor = KeyPair.from_file(tmp_path / "server"), KeyPair.from_file(tmp_path / "actor")
    with pytest.raises(Refused, match="could be used by anybody"):
        ActionServer(config(), None, None, address="0.0.0.0")
    server = ActionServer(
        config(broadcast_port=0),
        sorted,
        None,
        address="0.0.0.0",
        keys=ServerKeys.of(own, [actor.public]),
    )
    server.start(threaded=True)
    received: list[Any] = []
    client = ActionClient(
        "127.0.0.1", config(port_number=server.port), keys=ClientKeys.of(actor, own.public.hex()), timeout_ms=10_000
    )
    assert client.obs() == ["test_image"]
    client.register_obs_callback(received.append)
    server.publish_obs(5)
    assert waited(lambda: received == [5])
    client.stop()
    server.stop()
