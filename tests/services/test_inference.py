"""Inference: agentlace's README read again, batches, and what callers are told."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from autoresearch.errors import NoAnswer, ServiceFailed, ServiceRefused
from autoresearch.services import InferenceClient, InferenceServer
from tests.services.serving import dead_port


@contextmanager
def serving(server: InferenceServer) -> Iterator[InferenceServer]:
    server.start(threaded=True)
    try:
        yield server
    finally:
        assert server.stop()


def test_the_readme_of_agentlace() -> None:
    def predict(payload: dict[str, Any]) -> dict[str, Any]:
        return {"prediction": payload["audio"].upper()}

    inference_server = InferenceServer(port_num=0)
    inference_server.register_interface("voice_reg", predict)
    inference_server.register_interface("face_reg", predict)
    with serving(inference_server):
        client = InferenceClient("localhost", inference_server.port)
        assert client.interfaces() == {"voice_reg", "face_reg"}
        assert client.call("voice_reg", {"audio": "serialized_audio"}) == {"prediction": "SERIALIZED_AUDIO"}
        assert client.last_error is None
        client.stop()


def test_a_failed_call_gives_none_and_says_why() -> None:
    def fails(payload: object) -> object:
        raise KeyError(payload)

    server = InferenceServer(0)
    server.register_interface("fails", fails)
    with serving(server):
        client = InferenceClient("localhost", server.port)
        assert not client.call("none", 1)["success"]  # as agentlace's own test reads it
        assert isinstance(client.last_error, ServiceRefused)
        assert client.last_error.hint == "it has: fails"
        assert client.call("fails", "cat") is None
        assert isinstance(client.last_error, ServiceFailed)
        assert "KeyError: 'cat'" in str(client.last_error)
        strict = InferenceClient("localhost", server.port, errors="raise")
        with pytest.raises(ServiceFailed):
            strict.call("fails", 1)
    lonely = InferenceClient("localhost", dead_port(), timeout_ms=50)
    assert lonely.interfaces() == set()
    assert lonely.call("fails", 1) is None
    assert isinstance(lonely.last_error, NoAnswer)


def test_calls_of_many_clients_are_answered_together() -> None:
    sizes: list[int] = []

    def predict(payloads: list[np.ndarray]) -> list[np.ndarray]:
        sizes.append(len(payloads))
        return list(2 * np.stack(payloads))

    server = InferenceServer(0, max_batch=8, max_wait_ms=200)
    server.register_batched_interface("policy", predict)
    server.register_interface("name", lambda payload: f"policy of {payload}")
    begin = threading.Barrier(8)
    wrong: list[object] = []

    def call(number: int) -> None:
        client = InferenceClient("localhost", server.port, timeout_ms=10_000, errors="raise")
        for step in range(5):
            begin.wait()
            answer = client.call("policy", np.full(3, 10 * number + step))
            if answer.tolist() != [2 * (10 * number + step)] * 3:
                wrong.append(answer)
        if client.call("name", number) != f"policy of {number}":
            wrong.append(number)
        client.stop()

    with serving(server):
        threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert sum(sizes) == 40
    assert max(sizes) > 1
    assert server.counts.largest_batch <= 8


def test_a_batch_that_fails_harms_no_other_interface() -> None:
    server = InferenceServer(0, max_batch=4, max_wait_ms=200)
    server.register_batched_interface("short", lambda payloads: payloads[1:])
    server.register_batched_interface("fails", lambda payloads: [1 // 0 for _ in payloads])
    server.register_interface("good", lambda payload: payload)
    answers: dict[str, object] = {}
    begin = threading.Barrier(4)

    def call(name: str) -> None:
        client = InferenceClient("localhost", server.port, timeout_ms=10_000)
        begin.wait()
        answers[name] = client.call(name, 7)
        answers[f"{name} error"] = str(client.last_error)

    with serving(server):
        threads = [threading.Thread(target=call, args=(name,)) for name in ("short", "fails", "good", "unknown")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (answers["short"], answers["fails"], answers["good"]) == (None, None, 7)
    assert answers["unknown"] == {"success": False, "message": answers["unknown error"]}
    assert "gave 0 results for 1 payloads" in str(answers["short error"])
    assert "ZeroDivisionError" in str(answers["fails error"])
    assert "no interface unknown" in str(answers["unknown error"])


def test_a_client_needs_neither_numpy_nor_torch() -> None:
    script = (
        "import sys; from autoresearch.services import InferenceClient; InferenceClient('localhost', 1);"
        "print({'numpy', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
