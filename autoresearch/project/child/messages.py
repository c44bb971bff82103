"""Messages of a project's processes: its orders and reports, and as lines of JSON those in a file or a log.

Also what environment and agent of an evaluation tell each other, each in its own sandbox: values, over two pipes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec

from autoresearch.errors import BadMessage, UsageError
from autoresearch.link import Link, path_of
from autoresearch.project.model import Project
from autoresearch.services.messages import decode, encode

Mode = Literal["train", "bench"]


class RunOrder(msgspec.Struct, frozen=True, kw_only=True, tag="run"):
    """A run to do. ``episodes`` 0 builds the components and checks their interfaces alone.

    ``learned`` is the folder of the state to begin from, empty for none. What is learned is left in ``out``.
    ``isolated`` names the components that run in a process of their own, each with the Python of that process.
    """

    project: Project
    mode: Mode
    episodes: int
    seed: int
    learned: str
    out: str
    isolated: dict[str, str] = {}


ServiceKind = Literal["action", "trainer", "inference", "env"]


class ServeOrder(msgspec.Struct, frozen=True, kw_only=True, tag="serve"):
    """A component, by type and name, to serve until it is told to stop.

    ``learned``, ``out`` and ``isolated`` are as in RunOrder.
    ``secret`` and ``public`` are the server's key in hexadecimal digits, empty for none; ``clients`` are the public
    keys of those that may ask it, ``own_machines`` a file with further ones, or empty.
    """

    project: Project
    kind: ServiceKind
    component: tuple[str, str]
    learned: str
    out: str
    address: str
    port: int
    secret: str
    public: str
    clients: list[str]
    own_machines: str = ""
    isolated: dict[str, str] = {}


class ActOrder(msgspec.Struct, frozen=True, kw_only=True, tag="act"):
    """Episodes to play for a learner, until told to stop or ``episodes`` are done; 0 for no end.

    ``server_key`` is the learner's public key, empty for none; ``secret`` and ``public`` are then the actor's own.
    """

    project: Project
    address: str
    port: int
    seed: int
    episodes: int
    server_key: str = ""
    secret: str = ""
    public: str = ""
    isolated: dict[str, str] = {}


class StopOrder(msgspec.Struct, frozen=True, tag="stop"):
    """End what was ordered, and keep what was learned."""


class RunFigures(msgspec.Struct, frozen=True, tag="figures"):
    """How far a run is. ``recent_reward`` is the mean of the last 100 episodes; none before the first has ended."""

    episodes: int
    steps: int
    seconds: float
    recent_reward: float | None


class ComponentChecked(msgspec.Struct, frozen=True, tag="checked"):
    """A component was loaded: the methods of its interface that it has not, or the error that it raised."""

    key: str
    missing: list[str]
    error: str = ""
    hint: str = ""


class OrderDone(msgspec.Struct, frozen=True, tag="done"):
    """A run ended: in full, or ``stopped`` before. ``changed``: the policy's state changed in a benchmark run.

    ``fault`` is the error of a component that ended a training, which keeps what was learned in the episodes before.
    """

    metrics: dict[str, int | float]
    curve: list[float]
    seconds: float
    used: list[str]
    stopped: bool = False
    changed: bool = False
    fault: str = ""


class OrderFailed(msgspec.Struct, frozen=True, tag="failed"):
    """A run failed: the sentence, what to do next, the exit status."""

    error: str
    hint: str
    exit_status: int


class ServiceStarted(msgspec.Struct, frozen=True, tag="serving"):
    """A service has begun: its port."""

    port: int


class Served(msgspec.Struct, frozen=True, tag="served"):
    """How many questions a service has answered by now."""

    requests: int


class Played(msgspec.Struct, frozen=True, tag="played"):
    """An actor has played an episode, and the learner has its transitions."""

    reward: float
    steps: int


# Stands before a message in a log (RFC 7464).
_MARK = b"\x1e"
AnyOrder = RunOrder | ServeOrder | ActOrder
Message = RunFigures | ComponentChecked | OrderDone | OrderFailed | ServiceStarted | Served | Played


def encode_line(message: Message | RunOrder) -> bytes:
    """A message as a line."""
    return msgspec.json.encode(message, enc_hook=str) + b"\n"


def decode_order(line: bytes) -> RunOrder:
    """The order of a line. Raises msgspec.ValidationError where it is none."""
    return msgspec.json.decode(line, type=RunOrder, dec_hook=path_of)


def marked(message: Message) -> bytes:
    """A message as a line of a log, where others write too. A log may hold lines that only look like one."""
    return b"\n" + _MARK + encode_line(message)


def unmarked(log: bytes) -> tuple[list[Message], bytes]:
    """The messages in a log, and the log without them."""
    messages: list[Message] = []
    rest: list[bytes] = []
    for line in log.split(b"\n"):
        if line.startswith(_MARK):
            with suppress(msgspec.DecodeError):
                messages.append(msgspec.json.decode(line.removeprefix(_MARK), type=Message))
        else:
            rest.append(line)
    return messages, b"\n".join(rest)


MOST_FRAMES = 64
MOST_BYTES = 64 << 20
Frames = Annotated[list[bytes], msgspec.Meta(min_length=1, max_length=MOST_FRAMES)]


class Conversation:
    """One side of a conversation in values, arrays among them: ``read`` and ``write`` are open descriptors."""

    def __init__(self, read: int, write: int) -> None:
        self._link: Link[list[bytes]] = Link(read, write, Frames)

    @classmethod
    def from_environment(cls) -> Conversation:
        """The conversation that this process was started for. Raises UsageError where there is none."""
        descriptors = [os.environ.get(f"AUTORESEARCH_TALK_{way}", "") for way in ("READ", "WRITE")]
        if not all(each.isdecimal() for each in descriptors):
            raise UsageError("nobody talks to this process", hint="it is started by a task with evaluation.answers")
        return cls(int(descriptors[0]), int(descriptors[1]))

    def send(self, value: object) -> None:
        """Send a value. Raises BadMessage where it can't be sent, LinkEnded where nobody reads any more."""
        frames = encode(value)
        if len(frames) > MOST_FRAMES or sum(map(len, frames)) > MOST_BYTES:
            raise BadMessage("a message is too large", hint=f"at most {MOST_BYTES >> 20} MiB")
        self._link.send(frames)

    def receive(self) -> Any:  # noqa: ANN401 - whatever the other side sends
        """The next value. Raises BadMessage where it is none, LinkEnded where none comes any more."""
        return decode(self._link.receive())
