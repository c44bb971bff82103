"""A server of newest values: each subscriber asks for what is newer than it has, and gets the newest alone.

So a slow subscriber loses what lies between, never the newest, and a new one gets the newest at once.
"""

from __future__ import annotations

import secrets
import zlib

import zmq

from autoresearch.errors import BadMessage
from autoresearch.messages import decode, encode
from autoresearch.services.links.keys import ServerKeys
from autoresearch.services.links.loop import Loop
from autoresearch.services.links.sockets import receive

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
        self.asked = 0
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
                self._wants(client, _asked(decode(frames)))
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
        self.asked += 1
        if self._sent.get(client, has) == has:
            _keep(self._waiting, client, has)


def _keep(of: dict[bytes, list[int]], client: bytes, value: list[int]) -> None:
    """Remember something of a subscriber, and forget the one of whom nothing was heard for longest."""
    of.pop(client, None)
    if len(of) >= MAX_SUBSCRIBERS:
        of.pop(next(iter(of)))
    of[client] = value


def _asked(question: object) -> list[int]:
    match question:
        case [int() as epoch, int() as version]:
            return [epoch, version]
    raise BadMessage("a subscriber asks for what is newer than a version")
