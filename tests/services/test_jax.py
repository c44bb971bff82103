"""Weights and observations of jax, on the CPU: what a learner written for agentlace sends."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from autoresearch.errors import BadMessage
from autoresearch.services import QueuedDataStore
from autoresearch.services.data.jaxrl_data_store import ReplayBufferDataStore, make_default_trajectory_buffer
from autoresearch.services.messages import decode, encode
from autoresearch.services.trainer import TrainerClient, TrainerConfig, TrainerServer, TrainerSMInterface
from tests.daemon.daemons import wait_for

jax: Any = pytest.importorskip("jax", reason="there is no jax: make test-libraries")
pytestmark = pytest.mark.slow


def weights() -> dict[str, Any]:
    keys = jax.random.split(jax.random.key(0), 2)
    return {"Dense_0": {"kernel": jax.random.normal(keys[0], (300, 20)), "bias": jax.numpy.zeros(20)}, "step": 3}


def test_weights_that_a_learner_publishes_reach_the_actor() -> None:
    server = TrainerServer(TrainerConfig(port_number=0, broadcast_port=0))
    server.start(threaded=True)
    ports = TrainerConfig(port_number=server.port, broadcast_port=server.broadcast_port)
    client = TrainerClient("agent", "localhost", ports)
    arrived: list[Any] = []
    sent = jax.jit(lambda tree: jax.tree.map(lambda leaf: leaf * 2, tree))(weights())
    try:
        client.recv_network_callback(arrived.append)
        server.publish_network(sent)
        wait_for(lambda: bool(arrived))
    finally:
        client.stop()
        server.stop()
    jax.tree.map(np.testing.assert_array_equal, arrived[0], jax.device_get(sent))
    assert jax.tree.structure(arrived[0]) == jax.tree.structure(sent)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint32", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (60, 50)])
def test_each_type_and_shape_arrives_as_it_was(dtype: str, shape: tuple[int, ...]) -> None:
    array = jax.numpy.ones(shape, dtype)
    copy = decode(encode({"w": array}))["w"]
    assert (copy.dtype, copy.shape, bool((copy == np.asarray(array)).all())) == (np.dtype(dtype), shape, True)


@pytest.mark.parametrize("value", [jax.numpy.ones(3, "bfloat16"), jax.random.key(1)], ids=["bfloat16", "key"])
def test_what_numpy_has_no_number_for_is_named(value: Any) -> None:
    with pytest.raises(BadMessage, match="'params': 'w': "):
        encode({"params": {"w": value}})


@pytest.mark.parametrize("windows", [False, True], ids=["rows", "trajectories"])
@pytest.mark.parametrize("shared", [False, True], ids=["two ends", "one process"])
def test_an_actor_follows_a_learner(*, shared: bool, windows: bool) -> None:
    """Both have the form of agentlace's example of an asynchronous learner and its actor."""
    env = pytest.importorskip("gymnasium").make("Pendulum-v1")
    make = make_default_trajectory_buffer if windows else ReplayBufferDataStore
    buffer = make(env.observation_space, env.action_space, capacity=1000)
    stats, arrived = list[Any](), list[Any]()

    def on_stats(kind: str, payload: Any) -> dict[str, Any]:
        stats.append((kind, payload))
        return {}

    server: Any = TrainerSMInterface()
    if shared:
        server.register_request_callback(on_stats)
    else:
        config = TrainerConfig(port_number=0, broadcast_port=0, request_types=["send-stats"])
        server = TrainerServer(config, request_callback=on_stats)
        server.register_data_store("actor_env", buffer)
        server.start(threaded=True)
    params = {"Dense_0": {"kernel": jax.numpy.ones((3, 1)), "bias": jax.numpy.zeros(1)}}

    @jax.jit
    def updated(tree: Any, batch: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf - 0.01 * batch["rewards"].mean(), tree)

    def learn() -> None:
        nonlocal params
        while len(buffer) < 100:
            time.sleep(0.01)
        for _ in range(5):
            batch = buffer.sample("training", 32)[0] if windows else buffer.sample(32)
            params = jax.block_until_ready(updated(params, jax.device_put(batch)))
            server.publish_network(params)

    learner = threading.Thread(target=learn)
    client: Any = server
    rows = buffer if shared else QueuedDataStore(500)
    if not shared:
        ports = TrainerConfig(server.port, server.broadcast_port, request_types=["send-stats"])
        client = TrainerClient("actor_env", "localhost", ports, rows, wait_for_server=True)
    client.recv_network_callback(arrived.append)
    learner.start()
    try:
        seen, _ = env.reset(seed=1)
        for step in range(150):
            weights = arrived[-1] if arrived else params
            action = np.asarray(jax.device_get(jax.numpy.tanh(seen @ weights["Dense_0"]["kernel"])))
            following, reward, ended, cut, _ = env.step(action)
            row = {"observations": seen, "actions": action, "next_observations": following, "rewards": reward}
            rows.insert(row | {"masks": 1.0 - ended} | ({"end_of_trajectory": cut} if windows else {}))
            seen = following
            if step % 30 == 29:
                assert client.update()
        client.request("send-stats", {"timer": {"total": jax.numpy.ones(())}})
        learner.join(60)
        wait_for(lambda: bool(arrived) and np.array_equal(arrived[-1]["Dense_0"]["bias"], params["Dense_0"]["bias"]))
    finally:
        client.stop()
        server.stop()
    assert (len(buffer) >= 149, stats) == (True, [("send-stats", {"timer": {"total": 1.0}})])
