"""Weights and observations of jax, on the CPU: what a learner written for agentlace sends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autoresearch.errors import BadMessage
from autoresearch.services.messages import decode, encode
from autoresearch.services.trainer import TrainerClient, TrainerConfig, TrainerServer
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
