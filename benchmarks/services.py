"""Services between processes: how long they take as multiples of raw pyzmq in the same run, and what survives faults.

``agentlace_…`` are the figures of agentlace where ``agentlace``, ``lz4`` and ``cv2`` can be imported.
"""

from __future__ import annotations

import gc
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import zmq

from benchmarks import service_faults
from benchmarks.service_peers import WEIGHTS_MB, importable, peer, random_array, small_rows

COMPARED = "raw pyzmq sockets for the same (x_floor; rows there by pickle), batches alternating; agentlace if installed"

SMALL_ROWS, LARGE_ROWS = 5000, 32
PATIENCE_MS = 60_000
Times = dict[str, list[float]]


def measure(*, quick: bool) -> dict[str, float]:
    """Median times and rates of rounds, their multiples of raw pyzmq, and the fault figures."""
    rounds = 2 if quick else 9
    figures: dict[str, float] = {}
    with ExitStack() as stack:
        ports = {name: stack.enter_context(_servers(name)) for name in importable()}
        clients = {name: peer(name).Client(own) for name, own in ports.items()}
        array = random_array()
        for figure, unit, batch, work in (
            ("small_us", 1e6, 300, lambda client: client.small()),
            ("down_1mb_ms", 1e3, 20, lambda client: client.down()),
            ("up_1mb_ms", 1e3, 20, lambda client: client.up(array)),
            ("echo_1mb_ms", 1e3, 20, lambda client: client.echo(array)),
        ):
            _add(figures, figure, unit, _alternating(clients, 2 if quick else batch, rounds, work))
        small = small_rows(SMALL_ROWS)
        large = [random_array() for _ in range(LARGE_ROWS)]
        _add(figures, "update_5000_ms", 1e3, _alternating(clients, 1, rounds, lambda client: client.update(small)))
        _add(figures, "update_32mb_ms", 1e3, _alternating(clients, 1, rounds, lambda client: client.update(large)))
        figures |= _four_clients(ports, rounds, 0.1 if quick else 0.5)
    figures |= _published(rounds, quick=quick)
    return figures | service_faults.measure(quick=quick)


def _alternating(clients: dict[str, Any], batch: int, rounds: int, work: Callable[[Any], None]) -> Times:
    """The median of each batch in seconds, one batch of each peer after the other."""
    times: Times = {name: [] for name in clients}
    for _ in range(rounds + 1):
        for name, client in clients.items():
            gc.collect()
            times[name].append(statistics.median(_seconds(work, client) for _ in range(batch)))
    return {name: found[1:] for name, found in times.items()}  # the first round warms up


def _seconds(work: Callable[[Any], None], client: object) -> float:
    began = time.perf_counter()
    work(client)
    return time.perf_counter() - began


def _add(figures: dict[str, float], figure: str, unit: float, times: Times) -> None:
    """Add a figure of each peer, and the multiples: the median of the rounds' ratios."""
    for name, found in times.items():
        begin = "" if name == "ours" else f"{name}_"
        figures[begin + figure] = unit * statistics.median(found)
        if name != "raw":
            ratios = [own / floor for own, floor in zip(found, times["raw"], strict=True)]
            figures[f"{begin}{figure.rpartition('_')[0]}_x_floor"] = statistics.median(ratios)


def _four_clients(ports: dict[str, list[int]], rounds: int, seconds: float) -> dict[str, float]:
    rates: Times = {name: [] for name in ports}
    with ExitStack() as stack:
        asking = {
            name: [stack.enter_context(_process("ask", name, json.dumps(own))) for _ in range(4)]
            for name, own in ports.items()
        }
        for processes in asking.values():
            assert all(_line(process) == "ready" for process in processes)
        for _ in range(rounds):
            for name, processes in asking.items():
                for process in processes:
                    assert process.stdin is not None
                    process.stdin.write(f"{seconds}\n")
                    process.stdin.flush()
                rates[name].append(sum(float(_line(process)) for process in processes))
    figures: dict[str, float] = {}
    for name, found in rates.items():
        begin = "" if name == "ours" else f"{name}_"
        figures[f"{begin}four_clients_per_s"] = statistics.median(found)
        if name != "raw":
            ratios = [floor / own for own, floor in zip(found, rates["raw"], strict=True)]
            figures[f"{begin}four_clients_x_floor"] = statistics.median(ratios)
    return figures


def _published(rounds: int, *, quick: bool) -> dict[str, float]:
    """Milliseconds from the call until 10 MB of weights are at one subscriber, and at each of four."""
    figures: dict[str, float] = {}
    weights = {str(number): random_array() for number in range(1 if quick else WEIGHTS_MB)}
    with ExitStack() as stack:
        one = {name: stack.enter_context(_Published(name, 1)) for name in importable()}
        four = {name: stack.enter_context(_Published(name, 4)) for name in importable()}
        times = _alternating(one, 5, rounds, lambda published: published.send(weights))
        _add(figures, "publish_10mb_ms", 1e3, times)
        # The floor of four is one raw subscriber, as for one; what raw sockets take for four stands beside it.
        mixed = {"raw": one["raw"]} | {"raw_four" if name == "raw" else name: own for name, own in four.items()}
        times = _alternating(mixed, 5, rounds, lambda published: published.send(weights))
        raw_four = times.pop("raw_four")
        _add(figures, "publish_10mb_to_four_ms", 1e3, times)
        figures["raw_publish_10mb_to_four_ms"] = 1e3 * statistics.median(raw_four)
    return figures


class _Published:
    """A publisher here and subscribers in processes of their own that reply."""

    def __init__(self, name: str, subscribers: int) -> None:
        self._stack = ExitStack()
        self._replies: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PULL)
        self._replies.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
        port: int = self._replies.bind_to_random_port("tcp://127.0.0.1")
        self._publisher = peer(name).Publisher()
        self._subscribers = subscribers
        self._step = 0
        for _ in range(subscribers):
            self._stack.enter_context(_process("subscribe", name, str(self._publisher.port), str(port)))
        self._connect()

    def _connect(self) -> None:
        """Publish until every subscriber replies: a PUB socket forgets what comes before they are there."""
        self._replies.setsockopt(zmq.RCVTIMEO, 200)
        heard = 0
        while heard < self._subscribers:
            self._step += 1
            heard = 0
            self._publisher.publish({"0": np.full(1, self._step, np.float32)})
            try:
                while heard < self._subscribers:
                    heard += int(self._replies.recv()) == self._step
            except zmq.Again:
                continue
        self._replies.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)

    def send(self, weights: dict[str, np.ndarray[Any, Any]]) -> None:
        """Publish, and wait for every subscriber's reply."""
        self._step += 1
        weights["0"][0] = self._step
        self._publisher.publish(weights)
        heard = 0
        while heard < self._subscribers:
            heard += int(self._replies.recv()) == self._step

    def __enter__(self) -> _Published:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._publisher.stop()
        self._replies.close(linger=0)


@contextmanager
def _servers(name: str) -> Iterator[list[int]]:
    ports = free_ports(3)
    with _process("serve", name, json.dumps(ports)):
        yield ports


@contextmanager
def _process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process of the benchmark, ended by the end of its input."""
    command = [sys.executable, "-m", "benchmarks.service_peers", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def free_ports(count: int) -> list[int]:
    """Ports where nobody listens now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [found.getsockname()[1] for found in sockets]
