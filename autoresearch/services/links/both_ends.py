"""What services of all kinds have in common: their server, and the client that asks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autoresearch.errors import ServiceError
from autoresearch.services.links.client import Caller, Errors, check_same
from autoresearch.services.links.newest import Publisher, Subscriber
from autoresearch.services.links.server import RequestServer, ServerCounts
from autoresearch.services.links.sockets import ClientKeys, ServerKeys


class ServiceServer:
    """A server of questions; some publish newest values beside it."""

    _server: RequestServer
    _publisher: Publisher | None = None

    @property
    def port(self) -> int:
        """Where it listens; chosen by the system where 0 was asked for."""
        return self._server.port

    @property
    def counts(self) -> ServerCounts:
        """What it did so far."""
        return self._server.counts

    def start(self, threaded: bool = False) -> None:  # noqa: FBT001, FBT002 - the call that agentlace's programs make
        """Answer until ``stop``: in this thread, or with ``threaded`` in one of its own."""
        if self._publisher is not None:
            self._publisher.start(threaded=True)
        self._server.start(threaded)

    def stop(self) -> bool:
        """End it, from any thread, any number of times: whether its port is free.

        A callback that takes longer than five seconds is not waited for.
        """
        if self._publisher is not None:
            self._publisher.stop()
        return self._server.stop()

    def _published(self, port: int, address: str, keys: ServerKeys | None) -> Publisher:
        try:
            return Publisher(port, address, keys)
        except BaseException:
            self._server.stop()
            raise


class ServiceClient:
    """Asks a server with the same configuration, and hears what it publishes."""

    _caller: Caller
    _subscriber: Subscriber | None = None

    def _connect(
        self,
        place: tuple[str, int, ClientKeys | None],
        agreed: Mapping[str, object],
        broadcast_port: int | None,
        *,
        timeout_ms: float,
        errors: Errors,
        wait: bool,
    ) -> None:
        """Compare configurations. Raises NoAnswer, ServiceRefused."""
        self.server_ip, port, self._keys = place
        self._caller = Caller(self.server_ip, port, timeout_ms=timeout_ms, keys=self._keys, errors=errors)
        answer = self._caller.first_answer({"type": "config"}, wait=wait)
        try:
            check_same(agreed, answer.get("agreed") if isinstance(answer, dict) else None)
        except ServiceError:
            self._caller.close()
            raise
        servers = answer.get("broadcast_port")
        self._broadcast_port = broadcast_port or (servers if isinstance(servers, int) else 0)

    @property
    def last_error(self) -> ServiceError | None:
        """Why the last call failed; none where it did not."""
        return self._caller.last_error

    def _subscribe(self, callback: Callable[[Any], object]) -> None:
        """Call this, and no longer another one, with what is published."""
        if self._subscriber is not None:
            self._subscriber.stop()
        self._subscriber = Subscriber(
            lambda value, _: callback(value), self.server_ip, self._broadcast_port, self._keys
        )

    def stop(self) -> None:
        """End the connection and the callback."""
        if self._subscriber is not None:
            self._subscriber.stop()
        self._caller.close()
