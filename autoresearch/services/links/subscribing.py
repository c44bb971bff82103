"""A subscriber: a thread that asks a publisher for the newest value, again and again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import zmq

from autoresearch.errors import BadMessage
from autoresearch.messages import decode, encode
from autoresearch.services.links.keys import ClientKeys
from autoresearch.services.links.sockets import Socket, client_context, connected, receive, send

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
        self._heard: Socket = client_context().socket(zmq.PAIR)
        name = f"inproc://subscriber-{id(self)}"
        self._bell.bind(name)
        self._heard.connect(name)
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
        poller.register(self._heard, zmq.POLLIN)
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
            if self._heard in ready:
                break
            if ready.get(self._socket, 0) & zmq.POLLIN:
                self._take()
        self._heard.close()
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
