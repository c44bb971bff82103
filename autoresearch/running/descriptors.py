"""File descriptors with one owner: whatever was opened here is closed exactly once."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self


class Descriptors:
    """A set of open descriptors that closes with its ``with`` block."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(*self._open)

    def own(self, descriptor: int) -> int:
        """Takes over one descriptor."""
        self._open.add(descriptor)
        return descriptor

    def pipe(self) -> tuple[int, int]:
        """A new pipe: read end, write end."""
        read, write = os.pipe()
        return self.own(read), self.own(write)

    def memory_file(self, content: bytes) -> int:
        """A nameless file with this content, at its start."""
        descriptor = self.own(os.memfd_create("input"))
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def close(self, *descriptors: int) -> None:
        """Closes these now; those already closed are left alone."""
        for descriptor in descriptors:
            if descriptor in self._open:
                self._open.remove(descriptor)
                os.close(descriptor)
