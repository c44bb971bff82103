"""A server's thread: it alone touches the server's sockets; other threads ring a bell inside the process."""

from __future__ import annotations

import logging
import secrets
import threading
from contextlib import suppress

import zmq

from autoresearch.services.links.guard import Guard
from autoresearch.services.links.keys import ServerKeys
from autoresearch.services.links.sockets import Socket, bound

_logger = logging.getLogger(__name__)


class Loop:
    """Binds at once, so that ``port`` is known and clients can connect; answers from ``start`` to ``stop``.

    Raises:
        Refused: the address is open to other machines, and there are no keys; or the port is taken.
    """

    def __init__(self, port: int, address: str, keys: ServerKeys | None) -> None:
        self.port = port
        self._address, self._keys = address, keys
        self._lock = threading.Lock()  # guards the bell, and who opens and closes
        self._thread: int | None = None
        self._ended = threading.Event()
        self._stopping = False
        self._open()

    def _open(self) -> None:
        self._context: zmq.Context[Socket] = zmq.Context()
        self._guard = Guard(self._context, self._keys.clients) if self._keys is not None else None
        try:
            self._router, self.port = bound(self._context, self._address, self.port, self._keys)
        except BaseException:
            self._end_context()
            raise
        # The bell is a peer whose name nobody can guess: so the thread waits for one socket alone, which is fastest.
        self._bell_name = b"\x01" + secrets.token_bytes(16)
        self._router.bind("inproc://bell")
        self._bell: Socket | None = self._context.socket(zmq.DEALER)
        self._bell.setsockopt(zmq.LINGER, 0)
        self._bell.setsockopt(zmq.IDENTITY, self._bell_name)
        self._bell.connect("inproc://bell")

    def start(self, threaded: bool = False) -> None:  # noqa: FBT001, FBT002 - the call that agentlace's programs make
        """Answer until ``stop``: in this thread, or with ``threaded`` in one of its own. Does nothing where it runs."""
        with self._lock:
            if self._thread is not None:
                return
            if self._bell is None:
                self._open()
            self._stopping = False
            self._ended.clear()
            self._thread = -1
        if threaded:
            threading.Thread(target=self._run, name=f"service on port {self.port}", daemon=True).start()
        else:
            self._run()

    def stop(self, timeout_s: float = 5.0) -> bool:
        """End it, and wait until its port is free: whether it is. A callback that takes longer is not waited for.

        Safe from every thread, also within a callback, and any number of times.
        """
        with self._lock:
            self._stopping = True
            if self._thread is None:
                self._close()
                return True
            own = self._thread == threading.get_ident()
        self._ring()
        return not own and self._ended.wait(timeout_s)

    def _ring(self) -> None:
        """Wake the thread: it comes back from waiting without a request."""
        with self._lock:
            if self._bell is not None:
                with suppress(zmq.Again):  # it rang so often that the thread cannot miss it
                    self._bell.send(b"", zmq.NOBLOCK)

    def _run(self) -> None:
        with self._lock:
            self._thread = threading.get_ident()
        try:
            while not self._stopping:
                try:
                    self._step()
                except zmq.ZMQError:
                    raise
                except Exception:
                    _logger.exception("the service on port %d could not deal with a message", self.port)
        except zmq.ZMQError:
            _logger.exception("the service on port %d ended", self.port)
        finally:
            with self._lock:
                self._close()
                self._thread = None
            self._ended.set()

    def _step(self) -> None:
        """Wait for a request or the bell, and deal with it."""
        raise NotImplementedError

    def _close(self) -> None:
        """Free the port; the lock is held. Does nothing the second time."""
        if self._bell is None:
            return
        self._bell.close()
        self._bell = None
        self._router.close()
        self._end_context()

    def _end_context(self) -> None:
        if self._guard is not None:
            self._guard.stop()
        self._context.term()
