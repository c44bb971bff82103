"""Changed messages leave environment and inference servers alive, and no step is taken that was not asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autoresearch.services import GymEnvServer, InferenceClient, InferenceServer
from autoresearch.services.links.client import RequestClient
from autoresearch.services.spaces import Discrete
from tests.services.serving import bombard

MESSAGES = 10_000


class Line:
    """Actions are steps to walk."""

    action_space = observation_space = Discrete(1000)
    place = 0

    def reset(self, *, seed: int = 0) -> tuple[int, dict[str, Any]]:
        del seed
        self.place = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.place += action
        return self.place, 0.0, False, False, {}


@pytest.mark.slow
def test_an_inference_server_survives_changed_messages() -> None:
    server = InferenceServer(0, max_batch=8, max_wait_ms=1)
    server.register_batched_interface("sum", lambda payloads: [float(np.sum(each["a"])) for each in payloads])
    server.register_interface("echo", lambda payload: payload)
    server.start(threaded=True)
    for name in ("sum", "echo"):
        question = {"type": "call_interface", "interface": name, "payload": {"a": np.arange(5)}}
        bombard(server.port, question, MESSAGES // 2)
    client = InferenceClient("127.0.0.1", server.port, timeout_ms=20_000, errors="raise")
    assert client.call("sum", {"a": np.arange(3)}) == 3.0
    assert client.interfaces() == {"sum", "echo"}
    client.stop()
    assert server.stop()


@pytest.mark.slow
def test_an_environment_server_survives_changed_messages() -> None:
    pytest.importorskip("gymnasium")
    from autoresearch.services import GymEnvClient

    server = GymEnvServer(Line(), 0)
    server.start(threaded=True)
    bombard(server.port, {"type": "step", "client": "a", "number": 1, "given": np.arange(4)}, MESSAGES // 2)
    bombard(server.port, {"type": "reset", "client": "a", "number": 1, "given": {"seed": 3}}, MESSAGES // 2)
    with GymEnvClient("127.0.0.1", server.port, timeout_ms=20_000) as client:
        assert client.reset()[0] == 0
        with RequestClient("127.0.0.1", server.port) as stranger, pytest.raises(Exception, match="another client"):
            stranger.ask({"type": "step", "client": "b", "number": 1, "given": 1})
        assert client.step(1)[0] == 1
    assert server.stop()
