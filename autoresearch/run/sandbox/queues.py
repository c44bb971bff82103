"""What waits in the sockets of a run: memory that no process has.

The kernel tells it by sock_diag(7), of one network namespace: each run has one. The descriptor comes from the launcher,
which is in there. A socket that was closed before its messages were read is in no list, and a counter of the namespace
alone has it. It counts as full.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NETLINK_SOCK_DIAG = 4
_HEADER, _ERROR, _DONE = struct.Struct("=IHHII"), 2, 3
_BY_FAMILY, _DUMP = 20, 0x301  # SOCK_DIAG_BY_FAMILY; NLM_F_REQUEST and NLM_F_DUMP
_ATTRIBUTE, _SIZES = struct.Struct("=HH"), struct.Struct("=9I")
_UNIX = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, 1 << 5, 0, 0), 16, 5
_INTERNET = tuple(
    (struct.pack("=BBBBI", family, protocol, 1 << 6, 0, 0xFFFFFFFF) + bytes(48), 72, 7)
    for family in (socket.AF_INET, socket.AF_INET6)
    for protocol in (socket.IPPROTO_TCP, socket.IPPROTO_UDP)
)
_ITSELF = 4096
"""What a socket takes that holds nothing."""


@dataclass(slots=True)
class Queues:
    """The sockets of one run. ``launcher`` is our end of the channel to it, on which the descriptor comes."""

    launcher: socket.socket
    diagnosis: socket.socket | None = None
    is_separate: bool = False

    def held_bytes(self, keeper: int) -> int:
        """The kernel's memory for all sockets of the namespace of ``keeper``; 0 until there is one."""
        if not self.is_separate:
            self._accept()
        if not self.is_separate:
            return 0
        with suppress(OSError, ValueError, IndexError):
            count = int(_text(keeper, "sockstat").split(maxsplit=3)[2]) - (self.diagnosis is not None)
            return self._held(keeper, count) if count > 0 else 0
        return 0  # the run has ended

    def close(self) -> None:
        """Closes the descriptors."""
        self.launcher.close()
        if self.diagnosis is not None:
            self.diagnosis.close()

    def _accept(self) -> None:
        with suppress(OSError):
            message, descriptors, _, _ = socket.recv_fds(self.launcher, 1, 1, socket.MSG_DONTWAIT)
            self.is_separate = bool(message)
            if descriptors:
                self.diagnosis = socket.socket(fileno=descriptors[0])
                self.diagnosis.settimeout(1)

    def _held(self, keeper: int, count: int) -> int:
        rows = [line.split() for line in _text(keeper, "protocols").splitlines()]
        local = sum(int(row[2]) for row in rows if row[0].startswith("UNIX"))
        local_sizes = self.sizes(*_UNIX) if local else []
        remote_sizes = [size for question in _INTERNET for size in self.sizes(*question)] if count > local else []
        hidden = max(0, local - len(local_sizes)) * full_socket()
        hidden += max(0, count - local - len(remote_sizes)) * _full_stream()
        return sum(local_sizes) + sum(remote_sizes) + hidden + _ITSELF * count

    def sizes(self, question: bytes, fixed: int, attribute: int) -> list[int]:
        """Bytes of each socket that the kernel lists; it has no list where its configuration lacks one."""
        if self.diagnosis is None:
            return []
        sizes: list[int] = []
        self.diagnosis.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _DUMP, 0, 0) + question)
        while True:
            answer, place = self.diagnosis.recv(1 << 18), 0
            while place < len(answer):
                length, kind, *_ = _HEADER.unpack_from(answer, place)
                if kind in (_ERROR, _DONE):
                    return sizes
                sizes += _size(answer[place + _HEADER.size + fixed : place + length], attribute)
                place += (length + 3) & ~3


def sentence() -> str:
    """How this machine counts what waits in sockets and pipes, for people."""
    with suppress(OSError), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as diagnosis:
        diagnosis.settimeout(1)
        own, other = socket.socketpair()
        with own, other:
            if Queues(own, diagnosis).sizes(*_UNIX):
                return "what waits in sockets and pipes counts as memory"
    return "the kernel does not tell what waits in sockets, so each counts as full, as memory; pipes count, too"


def _size(attributes: bytes, attribute: int) -> list[int]:
    place = 0
    while place < len(attributes):
        length, kind = _ATTRIBUTE.unpack_from(attributes, place)
        if kind == attribute:
            read, _, written, _, ahead, queued, options, backlog, _ = _SIZES.unpack_from(attributes, place + 4)
            return [read + max(written, queued) + ahead + options + backlog]
        place += (max(length, 4) + 3) & ~3
    return []


def full_socket() -> int:
    """Bytes that one local socket has sent at most: its bound, and one message beyond it."""
    return 2 * _setting("core/wmem_default", 212_992) + (1 << 16)


def _full_stream() -> int:
    return _setting("ipv4/tcp_rmem", 1 << 25) + _setting("ipv4/tcp_wmem", 1 << 22)


def _setting(name: str, otherwise: int) -> int:
    with suppress(OSError, ValueError):
        return int(Path("/proc/sys/net", name).read_text().split()[-1])
    return otherwise


def _text(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/net/{name}").read_text()
