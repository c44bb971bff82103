"""What the services do when something goes wrong: figures of the benchmark ``services``, each at its best value or not.

1 and 0 mean yes and no. The best values are 0 for ``unpickles_network_bytes`` and 1 for the others; shares of rows are
best at exactly 1.
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
from contextlib import closing, suppress
from typing import Any

import zmq

from autoresearch.errors import NoAnswer, ServiceError
from autoresearch.services import ActionClient, ActionConfig, ActionServer
from autoresearch.services.data.data_store import QueuedDataStore
from autoresearch.services.trainer import TrainerClient, TrainerConfig, TrainerServer

TIMEOUT_MS = 800.0
PATIENCE_S = 30.0


def measure(*, quick: bool) -> dict[str, float]:
    """Every fault once; starts and stops 20 times, 5 in quick."""
    logging.getLogger("autoresearch.services").setLevel(logging.CRITICAL)
    return _server_faults() | _row_faults() | _end_faults(5 if quick else 20)


class _Crafted:
    """What would write to ``ran`` if somebody unpickled it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _run, ()


ran: list[bool] = []


def _run() -> str:
    ran.append(True)
    return "ran"


def _action(obs: Any = None) -> tuple[ActionServer, ActionConfig]:  # noqa: ANN401 - a callback
    config = ActionConfig(0, ["move"], ["cam"])
    server = ActionServer(config, obs or (lambda keys: dict.fromkeys(keys, 1)), lambda _, payload: payload)
    server.start(threaded=True)
    return server, ActionConfig(server.port, ["move"], ["cam"])


def _server_faults() -> dict[str, float]:
    failing = [True]

    def obs(keys: set[str]) -> Any:  # noqa: ANN401 - an observation
        if failing[0]:
            raise OSError("no camera")
        return dict.fromkeys(keys, 1)

    server, config = _action(obs)
    client = ActionClient("127.0.0.1", config, timeout_ms=TIMEOUT_MS)
    client.obs()
    failing[0] = False
    after_error = client.obs() == {"cam": 1}
    hostile: zmq.Socket[bytes]
    with closing(zmq.Context.instance().socket(zmq.DEALER)) as hostile:
        hostile.setsockopt(zmq.RCVTIMEO, 1000)
        hostile.connect(f"tcp://127.0.0.1:{server.port}")
        for garbage in (pickle.dumps(_Crafted()), b"\xff" * 1000, b""):
            hostile.send(garbage)
            with suppress(zmq.Again):
                hostile.recv()
    after_garbage = client.obs() == {"cam": 1}
    second = ActionClient("127.0.0.1", config, timeout_ms=TIMEOUT_MS)
    reusable = second.obs() == {"cam": 1}
    forwarded = ActionClient("127.0.0.1", server.port, config=ActionConfig(1, ["move"], ["cam"]), timeout_ms=TIMEOUT_MS)
    through = forwarded.obs() == {"cam": 1}
    for each in (client, second, forwarded):
        each.stop()
    server.stop()
    return {
        "unpickles_network_bytes": float(bool(ran)),
        "alive_after_callback_error": float(after_error),
        "alive_after_garbage": float(after_garbage),
        "config_object_reusable": float(reusable),
        "forwarded_port_accepted": float(through),
    }


def _row_faults() -> dict[str, float]:
    store, piped = QueuedDataStore(10_000), QueuedDataStore(10_000)
    server = TrainerServer(TrainerConfig(0, 0))
    server.register_data_store("rows", store)
    server.register_data_store("piped", piped)
    server.start(threaded=True)
    config = TrainerConfig(server.port, server.broadcast_port, experimental_pipeline_port=1)
    own = [QueuedDataStore(10_000) for _ in range(2)]
    clients = [TrainerClient("a", "127.0.0.1", config, data_stores={"rows": mine}) for mine in own]
    for number in range(20):
        for mine, client in zip(own, clients, strict=True):
            mine.insert(number)
            client.update()
    mine = QueuedDataStore(10_000)
    client = TrainerClient("a", "127.0.0.1", config, data_stores={"piped": mine})
    for number in range(5000):
        mine.insert({"number": number})
        if number % 50 == 49:
            client.update()
    newest: list[int] = []
    client.recv_network_callback(newest.append)
    _wait(lambda: server.publish_network(-1) and newest)
    for number in range(50):
        server.publish_network(number)
    arrived = _wait(lambda: newest[-1] == 49)
    server.stop()
    mine.insert(1)
    reported = not client.update()
    for each in (*clients, client):
        each.stop()
    return {
        "two_actors_rows_kept": len(store) / 40,
        "pipeline_rows_kept": len(piped) / 5000,
        "lost_update_is_reported": float(reported),
        "burst_newest_arrived": float(arrived),
    }


def _end_faults(times: int) -> dict[str, float]:
    clean = 0
    for _ in range(times):
        server, config = _action()
        client = ActionClient("127.0.0.1", config, timeout_ms=200)
        thread = threading.Thread(target=_ask_until_gone, args=(client,))
        thread.start()
        server.stop()
        thread.join(PATIENCE_S)
        clean += not thread.is_alive()
        again = ActionServer(config, None, None)  # its port is free
        again.stop()
        client.stop()
    server, config = _action()
    client = ActionClient("127.0.0.1", config, timeout_ms=TIMEOUT_MS, errors="raise")
    server.stop()
    began = time.perf_counter()
    with suppress(NoAnswer):
        client.obs()
    late = time.perf_counter() - began - TIMEOUT_MS / 1000
    server.start(threaded=True)
    try:
        first = client.obs() == {"cam": 1}
    except ServiceError:
        first = False
    client.stop()
    server.stop()
    return {
        "clean_stop_rate": clean / times,
        "dead_server_late_s": max(0.0, late),
        "reconnect_first_request": float(first),
    }


def _ask_until_gone(client: ActionClient) -> None:
    while client.obs() is not None:
        pass


def _wait(true: Any) -> bool:  # noqa: ANN401 - a callable
    """Whether something became true in time."""
    end, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not true():
        if time.monotonic() > end:
            return False
        pause.wait(0.01)
    return True
