"""The smallest parts of messages: variable-length integers and a reader that refuses what is not canonical. Pure."""

from __future__ import annotations

from dataclasses import dataclass

# Nine groups of seven bits: every integer up to 2**63 - 1.
_VARINT_BYTES = 9


class MalformedError(ValueError):
    """The bytes spell no message; ``str(error)`` says why. Stays within this room: callers get a Violation."""


@dataclass(frozen=True, slots=True)
class Violation:
    """The peer broke the protocol: the session is over, what was learned before stays true. A sentence says how."""

    sentence: str


def varint(number: int) -> bytes:
    """Unsigned LEB128: seven bits a byte, the lowest first, the top bit on all but the last."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def leading_varint(data: bytes | bytearray, at: int = 0) -> tuple[int, int] | None:
    """The integer at ``at`` and the position after it; None when more bytes are needed. Raises MalformedError."""
    number = 0
    for index in range(_VARINT_BYTES):
        if at + index >= len(data):
            return None
        byte = data[at + index]
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if byte == 0 and index:
                raise MalformedError("an integer is not written in its shortest form")
            return number, at + index + 1
    raise MalformedError("an integer is too long")


class Reader:
    """Reads a message from its beginning to its end. Every method raises MalformedError at the end of the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def more(self) -> bool:
        """Whether bytes are left."""
        return self._at < len(self._data)

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        end = self._at + count
        if end > len(self._data):
            raise MalformedError("the message ends too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def varint(self, most: int) -> int:
        """The next integer, which is at most ``most``."""
        found = leading_varint(self._data, self._at)
        if found is None:
            raise MalformedError("the message ends too early")
        number, self._at = found
        if number > most:
            raise MalformedError(f"a number is {number}, more than the {most} allowed here")
        return number
