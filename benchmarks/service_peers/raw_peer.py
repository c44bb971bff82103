"""The least that ZeroMQ needs for the same: plain sockets with their defaults, and pickle where there are rows."""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import zmq

from benchmarks.service_peers import random_array

Socket = zmq.Socket[bytes]

SMALL = b"\x82\xa4type\xa3obs\xa4keys\xc7\x07\x02\x91\xa5small"


def serve(ports: list[int]) -> None:
    """Answer until the process ends: b"down" with an array, b"echo" with what came, anything else with a word."""
    threading.Thread(target=_serve_rows, args=(ports[1],), daemon=True).start()
    array = random_array().tobytes()
    socket: Socket = zmq.Context.instance().socket(zmq.REP)
    socket.bind(f"tcp://127.0.0.1:{ports[0]}")
    while True:
        frames = socket.recv_multipart()
        match frames[0]:
            case b"down":
                socket.send(array)
            case b"echo":
                socket.send(frames[1])
            case _:
                socket.send(SMALL)


def _serve_rows(port: int) -> None:
    """Keep what comes: pickled rows, or arrays as frames."""
    store: deque[Any] = deque(maxlen=10_000)
    socket: Socket = zmq.Context.instance().socket(zmq.REP)
    socket.bind(f"tcp://127.0.0.1:{port}")
    while True:
        frames = socket.recv_multipart()
        if len(frames) > 1:
            store.extend(np.frombuffer(frame, np.float32) for frame in frames)
        else:
            store.extend(pickle.loads(frames[0]))
        socket.send(b"")


class Client:
    """Two REQ sockets."""

    def __init__(self, ports: list[int]) -> None:
        self._asking: Socket = zmq.Context.instance().socket(zmq.REQ)
        self._rows: Socket = zmq.Context.instance().socket(zmq.REQ)
        self._asking.connect(f"tcp://127.0.0.1:{ports[0]}")
        self._rows.connect(f"tcp://127.0.0.1:{ports[1]}")

    def small(self) -> None:
        """A small message there and back."""
        self._asking.send(SMALL)
        assert self._asking.recv()

    def down(self) -> None:
        """A megabyte from the server."""
        self._asking.send(b"down")
        assert len(np.frombuffer(self._asking.recv(), np.float32))

    def up(self, array: np.ndarray[Any, Any]) -> None:
        """A megabyte to the server."""
        self._asking.send_multipart([b"up", array.data])
        assert self._asking.recv()

    def echo(self, array: np.ndarray[Any, Any]) -> None:
        """A megabyte there and back."""
        self._asking.send_multipart([b"echo", array.data])
        assert len(np.frombuffer(self._asking.recv(), np.float32)) == len(array)

    def update(self, rows: Sequence[Any]) -> None:
        """Rows into a store of the server."""
        if isinstance(rows[0], dict):
            self._rows.send(pickle.dumps(list(rows)))
        else:
            self._rows.send_multipart([row.data for row in rows])
        self._rows.recv()


class Publisher:
    """A PUB socket."""

    def __init__(self) -> None:
        self._socket: Socket = zmq.Context.instance().socket(zmq.PUB)
        self.port: int = self._socket.bind_to_random_port("tcp://127.0.0.1")

    def publish(self, weights: dict[str, np.ndarray[Any, Any]]) -> None:
        """Send weights to every subscriber."""
        self._socket.send_multipart([part.data for part in weights.values()])

    def stop(self) -> None:
        """End it."""
        self._socket.close(linger=0)


def subscribe(port: int, on_weights: Callable[[Any], object]) -> Socket:
    """Call this with each weights that come, in a thread."""
    socket: Socket = zmq.Context.instance().socket(zmq.SUB)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect(f"tcp://127.0.0.1:{port}")

    def listen() -> None:
        while True:
            frames = socket.recv_multipart()
            on_weights({str(number): np.frombuffer(frame, np.float32) for number, frame in enumerate(frames)})

    threading.Thread(target=listen, daemon=True).start()
    return socket
