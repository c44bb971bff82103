"""Which clients may speak to a server with keys: ZeroMQ asks in the process, by ZAP (rfc.zeromq.org/27)."""

from __future__ import annotations

import threading

import zmq

_ENDPOINT = "inproc://zeromq.zap.01"  # where ZeroMQ asks, one for each context
_VERSION = b"1.0"


class Guard:
    """A thread that admits clients by their public keys. Make it before the server's socket is bound."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], clients: frozenset[bytes]) -> None:
        self._context, self._clients = context, clients
        self._asked: zmq.Socket[bytes] = context.socket(zmq.REP)
        self._asked.setsockopt(zmq.LINGER, 0)
        self._asked.bind(_ENDPOINT)
        self._thread = threading.Thread(target=self._run, name="admission of clients", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close its socket."""
        with self._context.socket(zmq.REQ) as bell:
            bell.connect(_ENDPOINT)
            bell.send(b"")
            bell.recv()
        self._thread.join()

    def _run(self) -> None:
        with self._asked:
            while True:
                request = self._asked.recv_multipart()
                if request == [b""]:
                    self._asked.send(b"")
                    return
                self._asked.send_multipart(self._reply(request))

    def _reply(self, request: list[bytes]) -> list[bytes]:
        match request:
            case [version, number, _, _, _, b"CURVE", key] if version == _VERSION:
                known = key in self._clients
                return [_VERSION, number, b"200" if known else b"400", b"" if known else b"unknown key", b"", b""]
        return [_VERSION, request[1] if len(request) > 1 else b"", b"400", b"keys are needed", b"", b""]
