"""What a run says and leaves: the capped log and the capped checkpoint file."""

from __future__ import annotations

import os
from pathlib import Path

CHECKPOINT_NAME = "checkpoint.safetensors"


class Log:
    """Keeps the head and the tail of a stream within ``limit_bytes``; counts all of it."""

    def __init__(self, limit_bytes: int) -> None:
        self.received = 0
        self.limit_bytes = limit_bytes
        self._head_bytes = limit_bytes // 4
        self._tail_bytes = limit_bytes - self._head_bytes
        self._head = bytearray()
        self._tail = bytearray()

    @property
    def over_limit(self) -> bool:
        """More came than the limit."""
        return self.received > self.limit_bytes

    def feed(self, data: bytes) -> None:
        """Takes the next bytes."""
        self.received += len(data)
        room = max(0, self._head_bytes - len(self._head))
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._tail_bytes + 65536:
            del self._tail[: -self._tail_bytes or None]

    def tail(self, size: int = 4096) -> bytes:
        """The last ``size`` bytes."""
        return bytes((self._head + self._tail)[-size:])

    def contents(self) -> bytes:
        """Everything when it fits, otherwise head, a marker line and tail."""
        tail = bytes(self._tail[len(self._tail) - min(len(self._tail), self._tail_bytes) :])
        left_out = self.received - len(self._head) - len(tail)
        if not left_out:
            return bytes(self._head) + tail
        return bytes(self._head) + b"\n[... %d bytes left out ...]\n" % left_out + tail


class CheckpointFile:
    """Writes the checkpoint channel to a partial file that gets its name only when the run went well."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.received = 0
        self.limit_bytes = limit_bytes
        self.over_limit = False
        self._target = folder / CHECKPOINT_NAME
        self._partial = folder / f".{CHECKPOINT_NAME}.{os.getpid()}.partial"
        folder.mkdir(parents=True, exist_ok=True)
        self._file = self._partial.open("wb")

    def feed(self, data: bytes) -> None:
        """Takes the next bytes; past the limit they are dropped."""
        self.received += len(data)
        if self.received > self.limit_bytes:
            self.over_limit = True
        else:
            self._file.write(data)

    def finish(self, *, keep: bool) -> Path | None:
        """Gives the file its name, or removes it. Returns where it is."""
        self._file.close()
        if keep and self.received and not self.over_limit:
            self._partial.replace(self._target)
            return self._target
        self._partial.unlink(missing_ok=True)
        return None
