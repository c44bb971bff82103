"""What the kernel refuses a run: paths by Landlock, system calls by a filter in classic BPF.

The launcher applies both. The filter is generated here so that no libseccomp is needed.

The filter is a list of refused calls, not of allowed ones: training programs use hundreds of calls, and the wall proper
is made of namespaces or landlock. It closes what those leave open. Sources: Linux
``Documentation/userspace-api/landlock.rst``, seccomp(2), bpf(2) of the BSD packet filter.
"""

from __future__ import annotations

import ctypes
import errno
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

from autoresearch.run.sandbox import syscalls

_CREATE_RULESET = 444
_VERSION_FLAG = 1

LEAST_LANDLOCK = 6
"""Linux 6.12: from here on signals and abstract local sockets stay within the run."""

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL_FILE_RIGHTS = (1 << 16) - 1
_ALL_NETWORK_RIGHTS = 3
_ALL_SCOPES = 3
_MAKE_DEVICES = (1 << 6) | (1 << 11)  # MAKE_CHAR, MAKE_BLOCK

READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = _ALL_FILE_RIGHTS & ~_IOCTL_DEV & ~_MAKE_DEVICES
DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

LANDLOCK_HANDLED = (_ALL_FILE_RIGHTS, _ALL_NETWORK_RIGHTS, _ALL_SCOPES)
"""Everything that ABI 6 can forbid: file rights, TCP bind and connect, abstract sockets and signals."""


def landlock_version() -> int:
    """The kernel's landlock version, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    return max(0, int(syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)))


def path_rules(read: Iterable[Path], write: Iterable[Path], devices: Iterable[Path]) -> list[tuple[str, int]]:
    """Path and access rights for each path that exists; a file gets only the rights that files have."""
    rights = ((read, READ), (write, WRITE), (devices, DEVICE))
    return [
        (str(path), access if path.is_dir() else access & _FILE_ONLY)
        for paths, access in rights
        for path in paths
        if path.exists()
    ]


_LOAD, _AND, _JUMP_EQUAL, _JUMP_ABOVE, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x06
_ALLOW, _ERRNO, _KILL, _ASK = 0x7FFF0000, 0x00050000, 0x80000000, 0x7FC00000
_NR, _ARCH = 0, 4
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}

_CLONE_THREAD, _MAP_ANONYMOUS = 0x10000, 0x20
_NAMESPACE_FLAGS = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FS_IOC_SETFLAGS, _FS_IOC_FSSETXATTR = 0x40086602, 0x401C5820  # attributes of files, by a descriptor that only reads
_REFUSED_CONTROLS = (_TIOCSTI, _TIOCLINUX, _FS_IOC_SETFLAGS, _FS_IOC_FSSETXATTR)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SCHED_CORE = 1, 4, 22, 62
_MADV_WILLNEED = 3
_CACHE_ADVICE = (9, 20, 21, 22, 23, 25)  # MADV_REMOVE, COLD, PAGEOUT, POPULATE_READ, POPULATE_WRITE, COLLAPSE
_SET_LOCK = (6, 7, 37, 38)  # F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW
_WATCH_FILE = (5, 36, 1024, 1026)  # F_GETLK, F_OFD_GETLK, F_SETLEASE, F_NOTIFY
_F_SETSIG, _EXIT_SIGNAL = 10, 0xFF
_F_SETPIPE_SZ = 1031
_SIGABRT, _SIGCHLD = 6, 17
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_TYPE_MASK, _SOCK_STREAM, _SOCK_SEQPACKET = 0xF, 1, 5
_PLAIN_PROTOCOLS = (0, 1, 6, 17)  # the usual one, local, TCP, UDP: what waits in others, nobody counts
_SOL_SOCKET, _SO_SNDBUF, _SO_SNDBUFFORCE, _SO_ATTACH_REUSEPORT_CBPF = 1, 7, 32, 51

_Instruction = tuple[int, int, int, int]


def supported(machine: str) -> bool:
    """Whether a filter for this architecture (``platform.machine()``) is known."""
    return machine in _AUDIT_ARCH


def deny_filter(machine: str, *, sockets: bool, memory_files: bool = False) -> bytes:
    """The filter program (``struct sock_filter`` array) for ``x86_64`` or ``aarch64``.

    With ``sockets`` the internet and local families stay usable (inside an own network namespace); without, no
    socket can be made at all except connected local pairs, and no file's metadata changes. With ``memory_files`` files
    in memory can be made, which CUDA's driver needs. Raises KeyError for other architectures.
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
    absent = {name: row for name, row in syscalls.ABSENT.items() if not (memory_files and name == "memfd_create")}
    tables = [(denied, errno.EPERM), (absent, errno.ENOSYS), (syscalls.IGNORED, 0)]
    if not sockets:
        tables += [(syscalls.METADATA, 0), (syscalls.ATTRIBUTES, errno.EOPNOTSUPP)]
    for table, code in tables:
        for numbers in table.values():
            if (number := numbers[column]) is not None:
                program += [(_JUMP_EQUAL, 0, 1, number), _refuse(code)]
    program += _argument_rules(column, sockets=sockets)
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def asking_filter(machine: str) -> bytes:
    """A filter that has the keeper decide on each call that reaches beyond the program's memory and its channels.

    What it allows: the calls of ``syscalls.WITHIN``, reading from descriptor 0, mapping memory without a file, making
    threads. What it refuses at once would let the program go on by itself when the keeper has stopped it. To be
    installed together with :func:`deny_filter`. Raises KeyError for unknown architectures.
    """
    column = _COLUMN[machine]
    program: list[_Instruction] = [(_LOAD, 0, 0, _NR)]
    for numbers in syscalls.WITHIN.values():
        if (number := numbers[column]) is not None:
            program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    program += [(_JUMP_EQUAL, 0, 1, syscalls.TIMER_CREATE[column]), _refuse(errno.ENOSYS)]
    program += _when(syscalls.FCNTL[column], _if_one_of(1, 0xFFFFFFFF, _F_SETSIG))
    program += _when(syscalls.PRCTL[column], _if_one_of(0, 0xFFFFFFFF, _PR_SET_PDEATHSIG))
    program += _when(syscalls.CLONE[column], _unless_one_of(0, _EXIT_SIGNAL, 0, _SIGCHLD))
    for numbers, index, mask, value in (
        (syscalls.READ, 0, 0xFFFFFFFF, 0),
        (syscalls.LSEEK, 2, 0xFFFFFFFE, 0),  # from the start or from here, not to where a file has data
        (syscalls.TGKILL, 2, 0xFFFFFFFF, _SIGABRT),
        (syscalls.MMAP, 3, _MAP_ANONYMOUS, _MAP_ANONYMOUS),
        (syscalls.CLONE, 0, _CLONE_THREAD, _CLONE_THREAD),
    ):
        body: list[_Instruction] = [*_argument(index, mask), (_JUMP_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
        program += _when(numbers[column], body)
    program.append((_RETURN, 0, 0, _ASK))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _argument_rules(column: int, *, sockets: bool) -> list[_Instruction]:
    rules = _when(syscalls.CLONE[column], _unless_zero(0, _NAMESPACE_FLAGS))
    rules += _when(syscalls.IOCTL[column], _if_one_of(1, 0xFFFFFFFF, *_REFUSED_CONTROLS))
    rules += _when(syscalls.PRCTL[column], _if_one_of(0, 0xFFFFFFFF, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SCHED_CORE))
    advice = _if_one_of(2, 0xFFFFFFFF, _MADV_WILLNEED, code=0)
    rules += _when(syscalls.MADVISE[column], advice + _if_one_of(2, 0xFFFFFFFF, *_CACHE_ADVICE, code=errno.EINVAL))
    locks = _if_one_of(1, 0xFFFFFFFF, *_SET_LOCK, code=0)
    sizes = _if_one_of(1, 0xFFFFFFFF, _F_SETPIPE_SZ)
    watches = _if_one_of(1, 0xFFFFFFFF, *_WATCH_FILE, code=errno.EINVAL)
    rules += _when(syscalls.FCNTL[column], locks + sizes + watches)
    buffers = _if_one_of(2, 0xFFFFFFFF, _SO_SNDBUF, _SO_SNDBUFFORCE, code=0)
    buffers += _if_one_of(2, 0xFFFFFFFF, _SO_ATTACH_REUSEPORT_CBPF)
    of_socket = [*_argument(1, 0xFFFFFFFF), (_JUMP_EQUAL, 0, len(buffers), _SOL_SOCKET)]
    rules += _when(syscalls.SETSOCKOPT[column], of_socket + buffers)
    for numbers, who, which in syscalls.OF_OTHERS.values():
        others = _unless_one_of(who, 0xFFFFFFFF, 0)
        kind = [] if which is None else _unless_one_of(0, 0xFFFFFFFF, which)
        rules += _when(numbers[column], kind + others)
    rules += _when(syscalls.RT_SIGACTION[column], _children_stay_counted())
    # A datagram pair could still be pointed at a path socket of the machine.
    pair = _unless_one_of(1, _SOCK_TYPE_MASK, _SOCK_STREAM, _SOCK_SEQPACKET)
    rules += _when(syscalls.SOCKETPAIR[column], pair)
    if sockets:
        families = _unless_one_of(0, 0xFFFFFFFF, _AF_UNIX, _AF_INET, _AF_INET6)
        protocols = _unless_one_of(2, 0xFFFFFFFF, *_PLAIN_PROTOCOLS, code=errno.EPROTONOSUPPORT)
        rules += _when(syscalls.SOCKET[column], families + protocols)
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


def _if_one_of(index: int, mask: int, *values: int, code: int = errno.EPERM) -> list[_Instruction]:
    body = _argument(index, mask)
    for value in values:
        body += [(_JUMP_EQUAL, 0, 1, value), _refuse(code)]
    return body


def _children_stay_counted() -> list[_Instruction]:
    """A new action for SIGCHLD is accepted and forgotten; asking for the present one (no new action) goes through.

    A process that ignores SIGCHLD has no zombies, and the kernel adds the processor time of its children to nobody's.
    """
    low, high = 24, 28  # the second argument, a pointer
    return [
        *_argument(0, 0xFFFFFFFF),
        (_JUMP_EQUAL, 0, 5, _SIGCHLD),
        (_LOAD, 0, 0, low),
        (_JUMP_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, high),
        (_JUMP_EQUAL, 1, 0, 0),
        _refuse(0),
    ]


def _unless_one_of(index: int, mask: int, *values: int, code: int = errno.EPERM) -> list[_Instruction]:
    jumps = [(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [*_argument(index, mask), *jumps, _refuse(code)]
