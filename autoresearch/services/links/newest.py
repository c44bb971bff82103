"""A server of newest values and its subscribers, each a thread that asks again and again for what is newer than it has.

It gets the newest alone: a slow subscriber loses what lies between, never the newest, and a new one gets it at once.
"""

from __future__ import annotations

import logging
import secrets
import threading
import zlib
from collections.abc import Callable
from typing import Any

import zmq

from autoresearch.errors import BadMessage
from autoresearch.services.links.server import Loop
from autoresearch.services.links.sockets import ClientKeys, ServerKeys, Socket, client_context, connected, receive, send
from autoresearch.services.messages import decode, encode

# Subscribers that are remembered. Those that vanished are among them.
MAX_SUBSCRIBERS = 10_000


class Publisher(Loop):
    """Keeps the newest value and hands it out. ``version`` counts the values from 1; 0 says that there is none.

    ``asked`` counts the questions of subscribers, who ask several times in a second.

    Raises:
        Refused: the address is open to other machines, and there are no keys; or the port is taken.
    """

    def __init__(self, port: int = 0, address: str = "127.0.0.1", keys: ServerKeys | None = None) -> None:
        self.version = 0
        self.requests = 0
        # Another one after a restart: what a subscriber has of the server before is never taken for newer.
        self._epoch = zlib.crc32(secrets.token_bytes(8))
        self._newest: tuple[int, list[zmq.Frame]] | None = None
        self._waiting: dict[bytes, list[int]] = {}
        self._sent: dict[bytes, list[int]] = {}
        super().__init__(port, address, keys)

    def publish(self, value: object) -> int:
        """Make this the newest value, and return its version. It is copied: it may change afterwards.

        Raises:
            BadMessage: a part of it cannot be sent.
        """
        frames = encode(value)
        with self._lock:
            self.version += 1
            head = encode([self._epoch, self.version])[0]
            # These memories are shared among all subscribers that they are sent to.
            self._newest = self.version, [zmq.Frame(head), *(zmq.Frame(frame, copy=True) for frame in frames)]
            version = self.version
        self._ring()
        return version

    def _open(self) -> None:
        self._waiting.clear()
        self._sent.clear()
        super()._open()

    def _step(self) -> None:
        client = self._router.recv()
        try:
            frames = receive(self._router)
            if client != self._bell_name:
                self._wants(client, _version_of(decode(frames)))
        except BadMessage:
            return  # no subscriber of ours; it gets nothing
        newest = self._newest
        if newest is None:
            return
        version, message = newest
        for client in [name for name, has in self._waiting.items() if has != [self._epoch, version]]:
            del self._waiting[client]
            _keep(self._sent, client, [self._epoch, version])
            self._router.send(client, zmq.SNDMORE)
            for frame in message[:-1]:
                self._router.send(frame, zmq.SNDMORE, copy=False)
            self._router.send(message[-1], copy=False)

    def _wants(self, client: bytes, has: list[int]) -> None:
        """Note who waits. What was sent to a subscriber and has not arrived is on its way: it gets nothing besides."""
        self.requests += 1
        if self._sent.get(client, has) == has:
            _keep(self._waiting, client, has)


def _keep(of: dict[bytes, list[int]], client: bytes, value: list[int]) -> None:
    """Remember something of a subscriber, and forget the one of whom nothing was heard for longest."""
    of.pop(client, None)
    if len(of) >= MAX_SUBSCRIBERS:
        of.pop(next(iter(of)))
    of[client] = value


def _version_of(question: object) -> list[int]:
    match question:
        case [int() as epoch, int() as version]:
            return [epoch, version]
    raise BadMessage("a subscriber asks for what is newer than a version")


# A question is lost with its connection, so it is asked again.
ASK_AGAIN_MS = 250
# After so many questions that nobody could be asked, the connection is made anew: a refused key ends it for good.
_MOST_FAILURES = 20
_logger = logging.getLogger(__name__)


class Subscriber:
    """Calls ``on_value(value, version)`` in a thread of its own with the newest value, each version at most once.

    While the callback runs, newer values replace each other at the publisher. ``version`` is the newest that came; 0
    before the first one. What the callback raises is logged.
    """

    def __init__(
        self, on_value: Callable[[Any, int], object], address: str, port: int, keys: ClientKeys | None = None
    ) -> None:
        self.version = 0
        self._on_value = on_value
        self._has = [0, 0]
        self._place = (address, port, keys)
        self._bell: Socket = client_context().socket(zmq.PAIR)
        self._bell.setsockopt(zmq.LINGER, 0)
        self._bell_end: Socket = client_context().socket(zmq.PAIR)
        name = f"inproc://subscriber-{id(self)}"
        self._bell.bind(name)
        self._bell_end.connect(name)
        self._socket = connected(address, port, keys, queues=False)
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"subscriber of port {port}", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> bool:
        """End it: whether it has ended. A callback that takes longer is not waited for."""
        with self._lock:
            if not self._bell.closed:
                self._bell.send(b"")
                self._bell.close(linger=1000)
        if self._thread is threading.current_thread():
            return False
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._bell_end, zmq.POLLIN)
        failures = 0
        while True:
            failures = 0 if self._ask() else failures + 1
            if failures > _MOST_FAILURES:
                failures = 0
                poller.unregister(self._socket)
                self._socket.close()
                self._socket = connected(*self._place, queues=False)
            # Without a connection there is nobody to ask: wait for one.
            poller.register(self._socket, zmq.POLLIN | zmq.POLLOUT if failures else zmq.POLLIN)
            ready = dict(poller.poll(ASK_AGAIN_MS))
            if self._bell_end in ready:
                break
            if ready.get(self._socket, 0) & zmq.POLLIN:
                self._take()
        self._bell_end.close()
        self._socket.close()

    def _ask(self) -> bool:
        try:
            send(self._socket, encode(self._has), zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def _take(self) -> None:
        try:
            frames = receive(self._socket)
            match decode(frames[:1]):
                case [int() as epoch, int() as version] if [epoch, version] != self._has:
                    self._has = [epoch, version]  # also where its value cannot be read: it would not be better twice
                    value = decode(frames[1:])
                case _:
                    return
        except BadMessage as error:
            _logger.warning("what the publisher at %s port %d sent cannot be read: %s", *self._place[:2], error)
            return
        self.version = version
        try:
            self._on_value(value, version)
        except Exception:
            _logger.exception("the callback for published values raised an error")
