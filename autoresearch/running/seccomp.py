"""The system-call filter as classic BPF, generated here so that no libseccomp is needed.

A list of refused calls, not of allowed ones: training programs use hundreds of calls, and the wall proper is made of
namespaces or landlock. The filter closes what those leave open. Sources: seccomp(2), bpf(2) of the BSD packet filter.
"""

from __future__ import annotations

import errno
import struct

from autoresearch.running import syscalls

_LOAD, _AND, _JUMP_EQUAL, _JUMP_ABOVE, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NR, _ARCH = 0, 4
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}

_NAMESPACE_FLAGS = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FS_IOC_SETFLAGS, _FS_IOC_FSSETXATTR = 0x40086602, 0x401C5820  # attributes of files, by a descriptor that only reads
_REFUSED_CONTROLS = (_TIOCSTI, _TIOCLINUX, _FS_IOC_SETFLAGS, _FS_IOC_FSSETXATTR)
_PR_SET_DUMPABLE = 4
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_TYPE_MASK, _SOCK_STREAM, _SOCK_SEQPACKET = 0xF, 1, 5

_Instruction = tuple[int, int, int, int]


def supported(machine: str) -> bool:
    """Whether a filter for this architecture (``platform.machine()``) is known."""
    return machine in _AUDIT_ARCH


def deny_filter(machine: str, *, sockets: bool) -> bytes:
    """The filter program (``struct sock_filter`` array) for ``x86_64`` or ``aarch64``.

    With ``sockets`` the internet and local families stay usable (inside an own network namespace); without, no
    socket can be made at all except connected local pairs, and no file's metadata changes. Raises KeyError for other
    architectures.
    """
    column = _COLUMN[machine]
    program = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NR),
        (_JUMP_ABOVE, 0, 1, syscalls.LAST_KNOWN),  # newer calls, and the x32 ones (bit 30)
        _refuse(errno.ENOSYS),
    ]
    denied = syscalls.DENIED if sockets else syscalls.DENIED | syscalls.SOCKETS
    tables = [(denied, errno.EPERM), (syscalls.ABSENT, errno.ENOSYS)]
    if not sockets:
        tables += [(syscalls.METADATA, 0), (syscalls.ATTRIBUTES, errno.EOPNOTSUPP)]
    for table, code in tables:
        for numbers in table.values():
            if (number := numbers[column]) is not None:
                program += [(_JUMP_EQUAL, 0, 1, number), _refuse(code)]
    program += _argument_rules(column, sockets=sockets)
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _argument_rules(column: int, *, sockets: bool) -> list[_Instruction]:
    rules = _when(syscalls.CLONE[column], _unless_zero(0, _NAMESPACE_FLAGS))
    rules += _when(syscalls.IOCTL[column], _if_one_of(1, 0xFFFFFFFF, *_REFUSED_CONTROLS))
    rules += _when(syscalls.PRCTL[column], _if_one_of(0, 0xFFFFFFFF, _PR_SET_DUMPABLE))
    # A datagram pair could still be pointed at a path socket of the machine.
    pair = _unless_one_of(1, _SOCK_TYPE_MASK, _SOCK_STREAM, _SOCK_SEQPACKET)
    rules += _when(syscalls.SOCKETPAIR[column], pair)
    if sockets:
        families = _unless_one_of(0, 0xFFFFFFFF, _AF_UNIX, _AF_INET, _AF_INET6)
        rules += _when(syscalls.SOCKET[column], families)
    return rules


def _refuse(code: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERRNO | code)


def _when(number: int, body: list[_Instruction]) -> list[_Instruction]:
    """Runs ``body`` for one call; the accumulator holds the call's number before and after."""
    return [(_JUMP_EQUAL, 0, len(body) + 1, number), *body, (_LOAD, 0, 0, _NR)]


def _argument(index: int, mask: int) -> list[_Instruction]:
    return [(_LOAD, 0, 0, 16 + 8 * index), (_AND, 0, 0, mask)]


def _unless_zero(index: int, mask: int) -> list[_Instruction]:
    return [*_argument(index, mask), (_JUMP_EQUAL, 1, 0, 0), _refuse(errno.EPERM)]


def _if_one_of(index: int, mask: int, *values: int) -> list[_Instruction]:
    body = _argument(index, mask)
    for value in values:
        body += [(_JUMP_EQUAL, 0, 1, value), _refuse(errno.EPERM)]
    return body


def _unless_one_of(index: int, mask: int, *values: int) -> list[_Instruction]:
    jumps = [(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [*_argument(index, mask), *jumps, _refuse(errno.EPERM)]
