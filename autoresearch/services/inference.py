"""Inference: functions of a server, called by name from many clients. Imports neither numpy nor torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autoresearch.errors import ServiceFailed, ServiceRefused
from autoresearch.services.links.both_ends import ServiceClient, ServiceServer
from autoresearch.services.links.client import Caller, Errors
from autoresearch.services.links.server import RequestServer
from autoresearch.services.links.sockets import ClientKeys, ServerKeys

Interface = Callable[[Any], object]
BatchedInterface = Callable[[list[Any]], Sequence[object]]


class InferenceServer(ServiceServer):
    """Answers calls of the interfaces that are registered, one at a time, or several at once where it batches.

    With ``max_batch`` above 1, calls wait up to ``max_wait_ms`` for others. A batched interface gets all payloads that
    came together; another one is called for each.

    Raises:
        Refused: the address is open to other machines, and there are no keys; or the port is taken.
    """

    def __init__(
        self,
        port_num: int,
        address: str = "127.0.0.1",
        keys: ServerKeys | None = None,
        *,
        max_batch: int = 1,
        max_wait_ms: float = 2.0,
    ) -> None:
        self._interfaces: dict[str, Interface] = {}
        self._batched: dict[str, BatchedInterface] = {}
        if max_batch > 1:
            self._server = RequestServer.batching(
                self._answers, port_num, address, keys, max_batch=max_batch, max_wait_ms=max_wait_ms
            )
        else:
            self._server = RequestServer(lambda question: self._answers([question])[0], port_num, address, keys)

    def register_interface(self, name: str, callback: Interface) -> None:
        """Answer calls of ``name`` by ``callback(payload)``."""
        self._batched.pop(name, None)
        self._interfaces[name] = callback

    def register_batched_interface(self, name: str, callback: BatchedInterface) -> None:
        """Answer calls of ``name`` that came together by one ``callback(payloads)``: a list with a result for each."""
        self._interfaces.pop(name, None)
        self._batched[name] = callback

    def _answers(self, questions: list[Any]) -> list[object]:
        answers: list[object] = [None] * len(questions)
        together: dict[str, list[int]] = {}
        for place, question in enumerate(questions):
            match question:
                case {"type": "list_interfaces"}:
                    answers[place] = {"interfaces": [*self._interfaces, *self._batched]}
                case {"type": "call_interface", "interface": str() as name, "payload": payload}:
                    if name in self._batched:
                        together.setdefault(name, []).append(place)
                    else:
                        answers[place] = self._called(name, payload)
                case _:
                    answers[place] = ServiceRefused("an inference server does not know this question")
        for name, places in together.items():
            payloads = [questions[place]["payload"] for place in places]
            for place, answer in zip(places, self._called_together(name, payloads), strict=True):
                answers[place] = answer
        if len(questions) == 1 and isinstance(answers[0], BaseException):
            raise answers[0]
        return answers

    def _called(self, name: str, payload: object) -> object:
        callback = self._interfaces.get(name)
        if callback is None:
            names = ", ".join([*self._interfaces, *self._batched]) or "none"
            return ServiceRefused(f"this server has no interface {name[:60]}", hint=f"it has: {names}")
        try:
            return callback(payload)
        except Exception as error:  # noqa: BLE001 - the others of this batch shall get their answers
            return error

    def _called_together(self, name: str, payloads: list[Any]) -> Sequence[object]:
        callback = self._batched[name]
        try:
            results = list(callback(payloads))
        except Exception as error:  # noqa: BLE001 - the other interfaces' callers shall get their answers
            return [error] * len(payloads)
        if len(results) != len(payloads):
            reason = f"the interface {name} gave {len(results)} results for {len(payloads)} payloads"
            return [ServiceFailed(reason, hint="a batched interface returns a list with a result for each")] * len(
                payloads
            )
        return results


class InferenceClient(ServiceClient):
    """Calls interfaces of a server; several threads may, one call at a time.

    A call that fails returns None, and one that the server refuses {"success": False, "message": why}, as agentlace's
    callers expect. ``last_error`` tells why. With ``errors="raise"`` a call raises that error. After ``stop`` a further
    call opens the connection again.
    """

    def __init__(
        self,
        server_ip: str,
        port_num: int,
        timeout_ms: float = 800,
        keys: ClientKeys | None = None,
        *,
        errors: Errors = "none",
    ) -> None:
        self._caller = Caller(server_ip, port_num, timeout_ms=timeout_ms, keys=keys, errors=errors)

    def interfaces(self) -> set[str]:
        """The names that can be called; none where the server does not answer."""
        match self._caller.ask({"type": "list_interfaces"}):
            case {"interfaces": [*names]}:
                return {str(name) for name in names}
        return set()

    def call(self, name: str, payload: object) -> Any:  # noqa: ANN401 - an interface may return anything
        """What the interface returns for a payload; None where it failed, a dict where there is no such interface.

        Raises:
            ServiceError: it failed, and the client was made with ``errors="raise"``.
        """
        answer = self._caller.ask({"type": "call_interface", "interface": name, "payload": payload})
        if isinstance(self._caller.last_error, ServiceRefused):
            return {"success": False, "message": str(self._caller.last_error)}
        return answer
