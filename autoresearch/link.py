"""The link between a process and a child that it starts: frames with their length in front, over a pair of sockets.

A frame is one tagged struct in MessagePack. The child may be anybody's program: what it sends is bounded and typed, and
its end is told from its silence. Daemon, network process and project processes read the same frames, each in its way:
:class:`Link` blocks, the daemon's ``children.py`` awaits. Here too: how a child ends with its parent, and how long to
wait before something that failed is tried again.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from autoresearch.errors import AutoresearchError, BadMessage
from autoresearch.text import one_line

if TYPE_CHECKING:
    import subprocess

# The largest message. A frame that announces more is refused before any of it is kept.
MESSAGE_BYTES_MAX = 65 << 20
READ_BYTES = 1 << 16
_SIZE = struct.Struct("<I")
_encode = msgspec.msgpack.Encoder(enc_hook=str).encode
Heard = TypeVar("Heard")


class LinkEnded(AutoresearchError):
    """The other side has ended."""


def frame(message: object) -> bytes:
    """A message as it travels; a path travels as text. Raises BadMessage where it is too large."""
    payload = _encode(message)
    if len(payload) > MESSAGE_BYTES_MAX:
        raise BadMessage("a message is too large", hint=f"at most {MESSAGE_BYTES_MAX >> 20} MiB")
    return _SIZE.pack(len(payload)) + payload


class Messages(Generic[Heard]):
    """Bytes as they arrive, in pieces of any size, as messages of one type (a union of tagged structs). Pure."""

    def __init__(self, kind: Any) -> None:  # noqa: ANN401 - a union is no type to the checker
        self._decode: Callable[[memoryview], Heard] = msgspec.msgpack.Decoder(kind, dec_hook=path_of).decode
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Heard]:
        """The messages that are complete with ``data``; no data is the end of the link.

        Raises:
            BadMessage: a frame is too large, or what is in it is none of the messages.
            LinkEnded: the link has ended, maybe in the middle of a message.
        """
        if not data:
            raise LinkEnded("the other side has ended" + (" in the middle of a message" if self._held else ""))
        self._held += data
        start = 0
        while len(self._held) - start >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._held, start)
            if size > MESSAGE_BYTES_MAX:
                raise BadMessage("a message is too large", hint=f"at most {MESSAGE_BYTES_MAX >> 20} MiB")
            end = start + _SIZE.size + size
            if end > len(self._held):
                break
            try:
                with memoryview(self._held) as held, held[end - size : end] as payload:
                    message = self._decode(payload)
            except (msgspec.DecodeError, RecursionError) as error:
                raise BadMessage(f"bytes that are no message came: {one_line(str(error), 200)}") from None
            yield message
            start = end
        del self._held[:start]


def path_of(kind: type, value: Any) -> Any:  # noqa: ANN401
    """A path that travelled as text, for msgspec's decoders."""
    return Path(value) if kind is Path else value


class Link(Generic[Heard]):
    """One side of a link, for threads: ``read`` and ``write`` are open descriptors, one for both where it is a socket.

    ``heard`` is the type of what the other side may send. Any thread may send; one receives.
    """

    def __init__(self, read: int, write: int, message_type: Any) -> None:  # noqa: ANN401
        self._read, self._write = read, write
        self._messages: Messages[Heard] = Messages(message_type)
        self._ready: deque[Heard] = deque()
        self._sending, self._receiving = threading.Lock(), threading.Lock()

    def send(self, message: object) -> None:
        """Send a message; waits while the other side is slow. Raises BadMessage, LinkEnded where nobody reads."""
        left = memoryview(frame(message))
        try:
            with self._sending:
                while left:
                    left = left[os.write(self._write, left) :]
        except OSError:
            raise LinkEnded("the other side has ended") from None

    def receive(self) -> Heard:
        """The next message. Raises BadMessage where it is none, LinkEnded where none comes any more."""
        while not self._ready:
            data = b""
            with self._receiving, suppress(OSError):
                data = os.read(self._read, READ_BYTES)
            self._ready.extend(self._messages.feed(data))
        return self._ready.popleft()

    def __iter__(self) -> Iterator[Heard]:
        """Messages until the other side ends. Raises BadMessage."""
        while True:
            try:
                message = self.receive()
            except LinkEnded:
                return
            yield message

    def close(self) -> None:
        """Close the socket: the other side finds that this one has ended, and so do threads that wait here."""
        with socket.socket(fileno=self._read) as ours:
            self._read = self._write = -1
            with suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            with self._sending, self._receiving:
                ours.close()


def start_linked(command: Sequence[str], **options: Any) -> tuple[subprocess.Popen[bytes], int]:  # noqa: ANN401
    """Start a child with the descriptor of its side of a link as its last argument; the process, and this side's.

    ``options`` are those of subprocess.Popen.
    """
    import subprocess  # which most commands do without

    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [*command, str(theirs.fileno())], stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),), **options
        )
        return process, ours.detach()


def keep_link(descriptor: int) -> int:
    """What a child does first: keep its link from its own children, and have the kernel end it with its parent."""
    os.set_inheritable(descriptor, False)  # noqa: FBT003
    death_signal(parent=os.getppid())()
    return descriptor


_PR_SET_PDEATHSIG = 1


def death_signal(number: int = signal.SIGKILL, *, parent: int | None = None) -> Callable[[], None]:
    """What a new process calls to get a signal when ``parent``, this process by default, ends (Linux: prctl(2)).

    It may be called between fork and exec: all that takes a lock is done here.
    """
    if sys.platform != "linux":
        return lambda: None
    import ctypes

    prctl, parent = ctypes.CDLL(None).prctl, os.getpid() if parent is None else parent

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it ended before the kernel was asked
            os._exit(0)

    return bind


def backoff(failures: int, first: float, most: float) -> float:
    """The pause after so many failures before this one: ``first``, then twice as long each time, at most ``most``."""
    return min(most, first * 2.0 ** min(failures, 32))
