"""What clients do with a failure: programs written for agentlace expect None, others typed errors."""

from __future__ import annotations

from typing import Any, Literal

from autoresearch.errors import NoAnswer, ServiceError, UsageError
from autoresearch.services.links import ClientKeys, RequestClient

Errors = Literal["none", "raise"]


class Caller:
    """Asks a server. A failure is None, with ``last_error`` saying why; or it is raised, with ``errors="raise"``."""

    def __init__(self, address: str, port: int, *, timeout_ms: float, keys: ClientKeys | None, errors: Errors) -> None:
        if errors not in {"none", "raise"}:
            raise UsageError(f"errors={errors!r} is neither 'none' nor 'raise'")
        self.link = RequestClient(address, port, timeout_ms, keys)
        self.last_error: ServiceError | None = None
        self._errors = errors

    def ask(self, question: object) -> Any:  # noqa: ANN401 - an answer may hold anything
        """The answer, or None where there is none and failures are not raised."""
        self.last_error = None
        try:
            return self.link.ask(question)
        except ServiceError as error:
            self.failed(error)
        return None

    def failed(self, error: ServiceError) -> None:
        """Remember a failure, or raise it."""
        self.last_error = error
        if self._errors == "raise":
            raise error

    def first_answer(self, question: object, *, wait: bool) -> Any:  # noqa: ANN401 - an answer may hold anything
        """The answer to a client's first question; with ``wait`` as soon as there is a server.

        Raises:
            ServiceError: there is no answer.
        """
        while True:
            try:
                return self.link.ask(question)
            except NoAnswer:
                if not wait:
                    self.link.close()
                    raise
            except ServiceError:
                self.link.close()
                raise

    def close(self) -> None:
        """End the connection."""
        self.link.close()
