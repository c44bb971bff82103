"""What tests of services share: servers that run in threads, waiting for what comes, and a proxy that cuts."""

from __future__ import annotations

import random
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import zmq

from autoresearch.services.links.newest import Publisher
from autoresearch.services.links.server import RequestServer
from autoresearch.services.links.sockets import ServerKeys
from autoresearch.services.messages import encode

PATIENCE = 20.0


def waited(true: Callable[[], object]) -> bool:
    """Whether something became true; a test waits as long as a busy machine may take."""
    end = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not true():
        if time.monotonic() > end:
            return False
        pause.wait(0.005)
    return True


@contextmanager
def serving(handle: Callable[[Any], object], keys: ServerKeys | None = None) -> Iterator[RequestServer]:
    server = RequestServer(handle, keys=keys)
    server.start(threaded=True)
    try:
        yield server
    finally:
        assert server.stop()


@contextmanager
def publishing(port: int = 0) -> Iterator[Publisher]:
    publisher = Publisher(port)
    publisher.start(threaded=True)
    try:
        yield publisher
    finally:
        assert publisher.stop()


def dead_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def bombard(port: int, question: object, count: int, *, answers: bool = True) -> None:
    """Send a server ``count`` messages, each a changed one of a question; with ``answers`` wait for each answer."""
    chance = random.Random(port)
    frames = encode(question)
    with closing(zmq.Context.instance().socket(zmq.DEALER)) as hostile:
        hostile.setsockopt(zmq.LINGER, 0 if answers else -1)
        hostile.setsockopt(zmq.RCVTIMEO, int(1000 * PATIENCE))
        hostile.connect(f"tcp://127.0.0.1:{port}")
        for _ in range(count):
            hostile.send_multipart(_changed(frames, chance))
            if answers:
                hostile.recv_multipart()


def _changed(message: list[bytes | memoryview], chance: random.Random) -> list[bytes]:
    frames = [bytearray(frame) for frame in message]
    for _ in range(chance.randint(1, 4)):
        frame = chance.choice(frames)
        place = chance.randint(0, len(frame))
        match chance.randint(0, 4):
            case 0:
                frame[place : place + 1] = chance.randbytes(1)
            case 1:
                del frame[place:]
            case 2:
                frame[place:place] = chance.randbytes(chance.randint(1, 9))
            case 3:
                frames.append(bytearray(chance.randbytes(3)))
            case _:
                chance.shuffle(frames)
    return list(map(bytes, frames))


class CuttingProxy:
    """A TCP connection to a server that tests can break: cut it, swallow what the server answers, or hold it up."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.deaf = False
        self.held = False
        self.answered_bytes = 0
        self._pairs: dict[socket.socket, tuple[socket.socket, bool]] = {}
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Break every connection in the middle of whatever it carries."""
        with self._lock:
            for side in list(self._pairs):
                self._end(side)

    def close(self) -> None:
        self._open = False
        self._thread.join(PATIENCE)
        self.cut()
        self._listening.close()

    def _run(self) -> None:
        while self._open:
            with self._lock:
                held = {side for side, (_, from_server) in self._pairs.items() if from_server and self.held}
                sides = [self._listening, *(side for side in self._pairs if side not in held)]
            try:
                ready = select.select(sides, [], [], 0.005)[0]
            except (OSError, ValueError):
                continue  # one of them was cut meanwhile
            for side in ready:
                with self._lock, suppress(OSError):
                    self._accept() if side is self._listening else self._pass_on(side)

    def _accept(self) -> None:
        near = self._listening.accept()[0]
        try:
            far = socket.create_connection(("127.0.0.1", self.target), 1)
        except OSError:
            near.close()
            return
        self._pairs[near], self._pairs[far] = (far, False), (near, True)

    def _pass_on(self, side: socket.socket) -> None:
        if side not in self._pairs:
            return
        other, from_server = self._pairs[side]
        try:
            data = side.recv(1 << 16)
            self.answered_bytes += len(data) if from_server else 0
            if data and not (from_server and self.deaf):
                other.sendall(data)
        except OSError:
            data = b""
        if not data:
            self._end(side)

    def _end(self, side: socket.socket) -> None:
        if side in self._pairs:
            other = self._pairs.pop(side)[0]
            self._pairs.pop(other, None)
            side.close()
            other.close()
