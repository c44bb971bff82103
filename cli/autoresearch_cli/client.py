"""The daemon's local API, over its Unix socket. Knows requests, answers and errors; nothing of how they look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import msgspec

from autoresearch.api import (
    AllowRequest,
    Answer,
    AttestAnswer,
    AttestorAnswer,
    AttestRequest,
    BlockRequest,
    ConfirmRequest,
    DialRequest,
    Event,
    Failure,
    FetchRequest,
    Health,
    NameRequest,
    PauseRequest,
    PeersAnswer,
    RunAccepted,
    RunRequest,
    StatusAnswer,
    TrustAnswer,
    VerifyRequest,
    WithdrawnAnswer,
    WithdrawRecordRequest,
    WithdrawRequest,
    WorkRequest,
)
from autoresearch.errors import (
    AutoresearchError,
    DaemonNotRunning,
    NotFound,
    Refused,
    TimedOut,
    UsageError,
)

if TYPE_CHECKING:
    import httpx

    from autoresearch.records import BlobRef

A = TypeVar("A", bound=Answer)
STALE = "stale"
BASE_URL = "http://autoresearch"
# The daemon answers from memory; ten seconds mean that it hangs or the machine is out of memory.
TIMEOUT_SECONDS = 10.0
# The daemon may fetch the run's files from other nodes first.
VERIFY_SECONDS = 150.0
# Attestors hash the address and hand a mail to their server; the next is asked in place of one that says no.
ATTEST_SECONDS = 300.0
# The daemon sends a comment every 15 s; three missed ones mean that it is gone.
STREAM_TIMEOUT_SECONDS = 45.0
ERRORS: dict[int, type[AutoresearchError]] = {
    error.exit_status: error for error in (UsageError, DaemonNotRunning, NotFound, Refused, TimedOut)
}


class _Process(Answer, frozen=True, kw_only=True):
    """What the status of every version holds."""

    pid: int | None = None


class Client:
    """A connection to the daemon; a context manager. Methods raise DaemonNotRunning when none answers."""

    def __init__(self, socket: Path) -> None:
        import httpx

        self._http = httpx.Client(
            # No TLS on a Unix socket: reading the system's certificates would take longer than most answers.
            transport=httpx.HTTPTransport(uds=str(socket), verify=False),
            base_url=BASE_URL,
            timeout=TIMEOUT_SECONDS,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def ready(self) -> Health:
        """Whether the daemon can do its work yet; not ready is an answer, not an error."""
        with translated():
            return _decode(self._http.get("/readyz"), Health)

    def status(self) -> StatusAnswer:
        """What the daemon does, and why."""
        return self._ask("GET", "/v1/status", StatusAnswer)

    def process(self) -> int | None:
        """The daemon's process id, whatever version it has."""
        return self._ask("GET", "/v1/status", _Process).pid

    def work(self, request: WorkRequest) -> StatusAnswer:
        """Ask it to work."""
        return self._ask("POST", "/v1/work", StatusAnswer, request)

    def pause(self, request: PauseRequest) -> StatusAnswer:
        """Ask it to pause."""
        return self._ask("POST", "/v1/pause", StatusAnswer, request)

    def resume(self) -> StatusAnswer:
        """End a pause."""
        return self._ask("POST", "/v1/resume", StatusAnswer)

    def finish(self) -> StatusAnswer:
        """Ask it to stop working after the run in hand."""
        return self._ask("POST", "/v1/finish", StatusAnswer)

    def peers(self) -> PeersAnswer:
        """This node on the network, and its peers."""
        return self._ask("GET", "/v1/peers", PeersAnswer)

    def dial(self, request: DialRequest) -> PeersAnswer:
        """Ask it to connect to another node."""
        return self._ask("POST", "/v1/peers", PeersAnswer, request)

    def block(self, request: BlockRequest) -> PeersAnswer:
        """Have it refuse a peer, or no longer."""
        return self._ask("POST", "/v1/peers/block", PeersAnswer, request)

    def call(self, request: NameRequest) -> StatusAnswer:
        """Have it publish what this participant calls itself."""
        return self._ask("POST", "/v1/name", StatusAnswer, request)

    def withdraw_record(self, request: WithdrawRecordRequest) -> WithdrawnAnswer:
        """Have it withdraw a run or a note of this node."""
        return self._ask("POST", "/v1/withdraw", WithdrawnAnswer, request)

    def take_trust(self) -> TrustAnswer:
        """Have it trust whom the network's file trusts by now."""
        return self._ask("POST", "/v1/trust", TrustAnswer)

    def run(self, request: RunRequest) -> RunAccepted:
        """Queue one run of a task folder."""
        return self._ask("POST", "/v1/run", RunAccepted, request)

    def fetch(self, blob: BlobRef, seconds: float) -> None:
        """Have it get a blob from other nodes. Raises NotFound when nobody has it, TimedOut when it doesn't come."""
        manifest = blob.manifest.hex() if blob.manifest else None
        request = FetchRequest(sha256=blob.sha256.hex(), size=blob.size, manifest=manifest, seconds=seconds)
        self._ask("POST", "/v1/fetch", Health, request, seconds=seconds + TIMEOUT_SECONDS)

    def verify(self, request: VerifyRequest) -> RunAccepted:
        """Queue the verification of a run."""
        return self._ask("POST", "/v1/verify", RunAccepted, request, seconds=VERIFY_SECONDS)

    def check_proof(self, record: str) -> RunAccepted:
        """Queue what it takes to check a value that a verifier states: the same measurement again."""
        return self._ask("POST", f"/v1/proofs/{record}/check?kind=value", RunAccepted, seconds=VERIFY_SECONDS)

    def attest(self, request: AttestRequest) -> AttestAnswer:
        """Have attestors write to an address."""
        return self._ask("POST", "/v1/attest", AttestAnswer, request, seconds=ATTEST_SECONDS)

    def attestation_state(self) -> AttestAnswer:
        """How this participant stands with the attestors."""
        return self._ask("GET", "/v1/attest", AttestAnswer)

    def confirm(self, request: ConfirmRequest) -> AttestAnswer:
        """Bring an attestor the signed answer to its code."""
        return self._ask("POST", "/v1/attest/confirm", AttestAnswer, request, seconds=ATTEST_SECONDS)

    def attestor_log(self) -> AttestorAnswer:
        """What the node did as an attestor."""
        return self._ask("GET", "/v1/attestor", AttestorAnswer)

    def withdraw(self, request: WithdrawRequest) -> AttestorAnswer:
        """Have the attestor withdraw its attestations of a participant."""
        return self._ask("POST", "/v1/attestor/withdraw", AttestorAnswer, request)

    def allow(self, request: AllowRequest) -> AttestorAnswer:
        """Have the attestor attest a participant's mailbox again."""
        return self._ask("POST", "/v1/attestor/allow", AttestorAnswer, request)

    def stop(self) -> None:
        """Ask the daemon to end; it does so after answering."""
        with translated():
            _check(self._http.post("/v1/stop"))

    @contextmanager
    def events(
        self, *, since: int | None = None, quiet_seconds: float = STREAM_TIMEOUT_SECONDS
    ) -> Iterator[Iterator[Event]]:
        """Events as they happen, after those with a larger id than ``since``; subscribed when this is entered.

        TimedOut is raised when nothing, not even a sign of life, comes for ``quiet_seconds``.
        """
        with translated(), ExitStack() as stack:
            yield self._followed(stack, self._listen(stack, since, quiet_seconds), quiet_seconds)

    def _listen(self, stack: ExitStack, since: int | None, quiet_seconds: float) -> Iterator[Event]:
        import httpx

        query = {} if since is None else {"since": since}
        timeout = httpx.Timeout(TIMEOUT_SECONDS, read=quiet_seconds)
        response = stack.enter_context(self._http.stream("GET", "/v1/events", params=query, timeout=timeout))
        if response.is_error:
            response.read()
            _check(response)
        return _events(response)

    def _followed(self, stack: ExitStack, events: Iterator[Event], quiet_seconds: float) -> Iterator[Event]:
        """The events; after falling behind (a terminal that was suspended) on from the last one seen."""
        last: int | None = None
        kind = ""
        while True:
            for event in events:
                last, kind = event.id or last, event.kind
                yield event
            if kind != STALE:
                return
            stack.close()
            events, kind = self._listen(stack, last, quiet_seconds), ""

    def _ask(
        self,
        method: str,
        path: str,
        answer: type[A],
        body: Answer | None = None,
        *,
        seconds: float = TIMEOUT_SECONDS,
    ) -> A:
        content = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json"} if content else {}
        with translated():
            response = self._http.request(method, path, content=content, headers=headers, timeout=seconds)
            _check(response)
            return _decode(response, answer)


@contextmanager
def translated() -> Iterator[None]:
    """Turn the HTTP library's errors into ours."""
    import httpx

    try:
        yield
    except httpx.ConnectError as error:
        raise not_running() from error
    except httpx.TimeoutException as error:
        raise TimedOut("the daemon does not answer", hint="autoresearch doctor") from error
    except httpx.TransportError as error:
        raise DaemonNotRunning("the daemon ended meanwhile", hint="autoresearch up") from error


def not_running() -> DaemonNotRunning:
    """The error of commands that need the daemon."""
    return DaemonNotRunning("the daemon is not running", hint="autoresearch up")


def _check(response: httpx.Response) -> None:
    if response.is_success:
        return
    try:
        failure = msgspec.json.decode(response.content, type=Failure)
    except msgspec.DecodeError as error:
        raise AutoresearchError(
            f"the daemon answered with HTTP {response.status_code}", hint="autoresearch doctor"
        ) from error
    kind = ERRORS.get(failure.exit_status, AutoresearchError)
    raise kind(failure.error, hint=failure.hint)


def _decode(response: httpx.Response, answer: type[A]) -> A:
    try:
        return msgspec.json.decode(response.content, type=answer)
    except msgspec.DecodeError as error:
        hint = "restart it: autoresearch down && autoresearch up"
        raise AutoresearchError("the daemon answers as another version would", hint=hint) from error


def _events(response: httpx.Response) -> Iterator[Event]:
    """The events in a stream of server-sent events: ``data:`` lines up to an empty one."""
    data: list[str] = []
    for line in response.iter_lines():
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield msgspec.json.decode("\n".join(data), type=Event)
            data = []
