"""Messages between the environment and the agent of an evaluation, each in a sandbox of its own, over two pipes.

A message is the number of its frames, their sizes, the frames. What comes may be a stranger's: it is bounded.
"""

from __future__ import annotations

import os
import struct
from typing import Any

from autoresearch.errors import AutoresearchError, BadMessage, UsageError
from autoresearch.messages import decode, encode

MOST_FRAMES = 64
MOST_BYTES = 64 << 20
_COUNT = struct.Struct("<H")
_SIZE = struct.Struct("<I")


class ConversationEnded(AutoresearchError):
    """The other side has ended."""


class Conversation:
    """One side of a conversation: ``read`` and ``write`` are open descriptors."""

    def __init__(self, read: int, write: int) -> None:
        self._read = os.fdopen(read, "rb")
        self._write = write

    @classmethod
    def given(cls) -> Conversation:
        """The conversation that this process was started for. Raises UsageError where there is none."""
        found = [os.environ.get(f"AUTORESEARCH_TALK_{way}", "") for way in ("READ", "WRITE")]
        if not all(each.isdecimal() for each in found):
            raise UsageError("nobody talks to this process", hint="it is started by a task with evaluation.answers")
        return cls(int(found[0]), int(found[1]))

    def send(self, value: object) -> None:
        """Send a value. Raises BadMessage where it can't be sent, ConversationEnded where nobody reads any more."""
        frames = encode(value)
        if len(frames) > MOST_FRAMES or sum(map(len, frames)) > MOST_BYTES:
            raise BadMessage("a message is too large", hint=f"at most {MOST_BYTES >> 20} MiB")
        head = _COUNT.pack(len(frames)) + b"".join(_SIZE.pack(len(frame)) for frame in frames)
        left = memoryview(b"".join([head, *frames]))
        try:
            while left:
                left = left[os.write(self._write, left) :]
        except BrokenPipeError:
            raise ConversationEnded("the other side has ended") from None

    def receive(self) -> Any:  # noqa: ANN401 - whatever the other side sends
        """The next value. Raises BadMessage where it is none, ConversationEnded where none comes any more."""
        (count,) = _COUNT.unpack(self._exactly(_COUNT.size))
        if not 1 <= count <= MOST_FRAMES:
            raise BadMessage("bytes that are no message came")
        sizes = struct.unpack(f"<{count}I", self._exactly(count * _SIZE.size))
        if sum(sizes) > MOST_BYTES:
            raise BadMessage("a message is too large", hint=f"at most {MOST_BYTES >> 20} MiB")
        return decode([self._exactly(size) for size in sizes])

    def _exactly(self, size: int) -> bytes:
        found = self._read.read(size)
        if len(found) < size:
            raise ConversationEnded("the other side has ended")
        return found
