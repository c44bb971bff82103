"""Frames on a stream: an unsigned varint (multiformats) with the length, then that many bytes. Pure."""

from __future__ import annotations

from autoresearch_daemon.net.model import FRAME_HEAD_BYTES_MAX as VARINT_BYTES_MAX


class FrameError(Exception):
    """The other side does not keep to the framing."""


def frame(data: bytes) -> bytes:
    """``data`` with its length in front."""
    return varint(len(data)) + data


def varint(number: int) -> bytes:
    """Seven bits a byte, least significant first, the top bit set on all but the last."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def first_frame(buffer: bytearray, bytes_max: int) -> tuple[int, int] | None:
    """Where the data of the first frame in ``buffer`` begins and ends; ``None`` when it is not complete yet.

    Raises:
        FrameError: the length is over ``bytes_max`` or not spelled in the shortest way.
    """
    length = 0
    for position, byte in enumerate(buffer[:VARINT_BYTES_MAX]):
        length |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            break
    else:
        if len(buffer) >= VARINT_BYTES_MAX:
            raise FrameError("a frame's length has too many bytes")
        return None
    if position and byte == 0:
        raise FrameError("a frame's length is not spelled in the shortest way")
    if length > bytes_max:
        raise FrameError(f"a frame of {length} bytes; at most {bytes_max} are allowed")
    start = position + 1
    return (start, start + length) if len(buffer) >= start + length else None
