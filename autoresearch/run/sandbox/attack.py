"""Tries to get out of the sandbox it runs in, and says what worked. Runs inside, as a lone file.

Usage: ``python attack.py TARGETS`` with a JSON object of what ``probes.py`` put outside: a key file, a port, sockets, a
victim process. Prints a JSON line for each probe: its name, whether it was blocked, and how.
"""

# ruff: noqa: E402
from __future__ import annotations

import os
from contextlib import contextmanager, suppress


def _open_descriptors() -> set[int]:
    """The descriptors that are open now, but for the three of every program and that of the result."""
    descriptors = set[int]()
    for descriptor in set(range(1024)) - {0, 1, 2, int(os.environ["AUTORESEARCH_RESULT_FD"])}:
        with suppress(OSError):
            os.fstat(descriptor)
            descriptors.add(descriptor)
    return descriptors


# Looked at first: ctypes opens a file of its own, where libffi may not have memory that can be written and run.
_INHERITED = _open_descriptors()

import ctypes
import errno
import json
import mmap
import platform
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TARGETS: dict[str, Any] = json.loads(sys.argv[1])
_libc = ctypes.CDLL(None, use_errno=True)
_IS_ARM = platform.machine() == "aarch64"
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SA_NOCLDWAIT = 2


class Leak(Exception):
    """A probe got through."""


def _syscall(x86_64: int, arm64: int, *arguments: int) -> int:
    """Makes a system call; raises OSError where it fails."""
    result = int(_libc.syscall(arm64 if _IS_ARM else x86_64, *(ctypes.c_long(a) for a in arguments)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _refused_call(x86_64: int, arm64: int, *arguments: int) -> None:
    """A call that the filter must refuse: any other error means that the kernel looked at it."""
    try:
        _syscall(x86_64, arm64, *arguments)
    except OSError as error:
        if error.errno in {errno.EPERM, errno.ENOSYS, errno.EACCES}:
            raise
        raise Leak(f"reached the kernel: {error}") from error


def _read_key() -> None:
    Path(TARGETS["key"]).read_bytes()


def _read_secrets() -> None:
    for path in TARGETS["secrets"]:
        with suppress(OSError):
            os.listdir(path) if Path(path).is_dir() else Path(path).read_bytes()  # noqa: PTH208
            raise Leak(f"reads {path}")
    raise PermissionError("none of them")


def _read_home() -> None:
    if entries := [e for e in os.listdir(TARGETS["home"]) if e not in TARGETS["allowed"]]:  # noqa: PTH208
        raise Leak(f"sees {len(entries)} entries")
    raise PermissionError("only what the interpreter needs")


def _share_memory() -> None:
    Path(TARGETS["shared"]).read_bytes()


def _read_environment_token() -> None:
    if TARGETS["token"] not in json.dumps(dict(os.environ)):
        raise PermissionError("not in the environment")


def _use_inherited_descriptors() -> None:
    if _INHERITED:
        raise Leak(f"descriptor {min(_INHERITED)} is open, mode {os.fstat(min(_INHERITED)).st_mode:o}")
    raise PermissionError("there are none")


def _read_other_environments() -> None:
    readable = 0
    for name in os.listdir("/proc"):  # noqa: PTH208
        with suppress(OSError):
            readable += TARGETS["token"].encode() in Path(f"/proc/{name}/environ").read_bytes()
    if not readable:
        raise PermissionError("not in any process")


def _see_processes() -> None:
    if TARGETS["token"].encode() not in Path(f"/proc/{TARGETS['victim']}/cmdline").read_bytes():
        raise PermissionError("that id is another process here")


def _signal_victim() -> None:
    os.kill(TARGETS["victim"], signal.SIGUSR1)


def _connect_tcp() -> None:
    with socket.create_connection(("127.0.0.1", TARGETS["tcp"]), timeout=1):
        pass


def _send_udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.sendto(b"x", ("127.0.0.1", TARGETS["udp"]))
    raise PermissionError("whether it arrived is seen outside")


def _reach_internet() -> None:
    for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as udp:
            udp.connect((address, 53))
            raise Leak(f"has a route to {address}")
    raise PermissionError("no route")


def _connect_abstract() -> None:
    with socket.socket(socket.AF_UNIX) as local:
        local.connect("\0" + TARGETS["abstract"])


def _connect_path() -> None:
    with socket.socket(socket.AF_UNIX) as local:
        local.connect(TARGETS["socket"])


def _send_datagram_to_path() -> None:
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with left, right:
        left.sendto(b"x", TARGETS["datagram"])


def _write_keeper_memory() -> None:
    with Path(f"/proc/{os.getppid()}/mem").open("r+b"):
        pass


def _new_network_by_clone() -> None:
    flags = _CLONE_NEWUSER | _CLONE_NEWNET | signal.SIGCHLD
    if _syscall(56, 220, flags, 0, 0, 0, 0) == 0:
        os._exit(0)


def _anonymous_memory_file() -> None:
    descriptor = os.memfd_create("x")
    if not TARGETS["card"]:
        raise Leak("it has one")
    os.ftruncate(descriptor, TARGETS["disk_bytes"] + 1)  # CUDA needs such files: they are as large as files may be
    raise Leak("it has a large one")


def _other_cards() -> None:
    for name in os.listdir("/dev"):  # noqa: PTH208
        if name.removeprefix("nvidia").isdigit() and name != TARGETS["card"]:
            os.close(os.open(f"/dev/{name}", os.O_RDWR))
            raise Leak(f"opens /dev/{name}")
    raise PermissionError("none of them")


def _hide_children() -> None:
    for action, flags in ((signal.SIG_IGN, 0), (signal.SIG_DFL, _SA_NOCLDWAIT)):
        sigaction = (ctypes.c_uint64 * 4)(action, flags, 0, 0)
        _syscall(13, 134, signal.SIGCHLD, ctypes.addressof(sigaction), 0, 8)
        if (pid := os.fork()) == 0:
            os._exit(0)
        try:
            os.waitpid(pid, 0)
        except ChildProcessError as error:
            raise Leak("a child ended that nobody counts") from error
        finally:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    raise PermissionError("its children are counted")


@contextmanager
def _another() -> Iterator[int]:
    """A process of the same user, which the kernel alone would let us steer: our own child."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    os.close(read)
    try:
        yield pid
    finally:
        os.close(write)
        os.waitpid(pid, 0)


def _limit_others() -> None:
    old = (ctypes.c_uint64 * 2)()
    with _another() as pid:
        _refused_call(302, 261, pid, resource.RLIMIT_NOFILE, 0, ctypes.addressof(old))


def _slow_down_others() -> None:
    mask, policy = (ctypes.c_uint64 * 16)(1), (ctypes.c_int * 1)(0)
    with _another() as pid:
        for numbers, arguments in (
            ((203, 122), (pid, 128, ctypes.addressof(mask))),
            ((144, 119), (pid, 3, ctypes.addressof(policy))),  # SCHED_BATCH
            ((142, 118), (pid, ctypes.addressof(policy))),
            ((141, 140), (0, pid, 19)),
            ((141, 140), (2, 0, 19)),  # all processes of the user
            ((251, 30), (1, pid, 3 << 13)),
            ((251, 30), (3, 0, 3 << 13)),
        ):
            _must_be_refused(numbers, *arguments)
    raise PermissionError("none of the calls reaches it")


def _see_page_cache() -> None:
    page = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    seen = ctypes.create_string_buffer(64)
    for numbers, arguments in (
        ((27, 232), (address, mmap.PAGESIZE, ctypes.addressof(seen))),
        ((451, 451), (0, 0, 0, 0)),
        ((327, 286), (0, ctypes.addressof(seen), 1, 0, 0, 8)),  # RWF_NOWAIT
        ((294, 26), (0,)),
    ):
        _must_be_refused(numbers, *arguments)
    raise PermissionError("no call tells of it")


def _must_be_refused(numbers: tuple[int, int], *arguments: int) -> None:
    with suppress(OSError):
        _refused_call(*numbers, *arguments)
        raise Leak(f"system call {numbers[0]} is answered")


def _steer_page_cache() -> None:
    page = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    for advice in (20, 21, 22, 23, 25):
        with suppress(OSError):
            _syscall(28, 233, address, mmap.PAGESIZE, advice)
            raise Leak(f"gives the advice {advice}")
    _does_nothing((221, 223), -1, 0, 0, 4)
    _does_nothing((187, 213), -1, 0, 0)
    raise PermissionError("no call has an effect")


def _lock_shared_files() -> None:
    lock = ctypes.create_string_buffer(64)
    _does_nothing((73, 32), -1, 2)
    for command in (6, 7, 37, 38):
        _does_nothing((72, 25), -1, command, ctypes.addressof(lock))
    for numbers in ((74, 82), (75, 83), (306, 267), (277, 84)):  # and what makes the disk write
        _does_nothing(numbers, -1, 0, 0, 0)
    raise PermissionError("no call has an effect")


def _does_nothing(numbers: tuple[int, int], *arguments: int) -> None:
    """A call on a descriptor that doesn't exist: where it says that it worked, the kernel has not seen it."""
    try:
        _syscall(*numbers, *arguments)
    except OSError as error:
        raise Leak(f"system call {numbers[0]} reached the kernel: {error}") from error


def _identify_machine() -> None:
    for path in TARGETS["identities"]:
        with suppress(OSError):
            text = Path(path).read_bytes()
            if leaked := [name for name, value in TARGETS["identifiers"].items() if value.encode() in text]:
                raise Leak(f"reads the {', '.join(leaked)} in {path}")
    if os.uname().nodename == TARGETS["identifiers"].get("host name"):
        raise Leak("is told the host name")
    raise PermissionError("none of them")


def _become_root() -> None:
    if os.geteuid() and os.getuid():
        os.setuid(0)


def _write_system() -> None:
    for folder in ("/", "/dev", "/in", "/usr", "/etc", sys.prefix, TARGETS["outside"]):
        with suppress(OSError):
            path = Path(folder) / "autoresearch-probe"
            path.write_text("x")
            path.unlink()
            raise Leak(f"writes to {folder}")
    raise PermissionError("nothing of it")


def _leave_a_process_behind() -> None:
    if os.getppid() != 1:
        raise Leak("its keeper is not the first process of a namespace, with which the kernel would end all others")
    raise PermissionError("the kernel ends all with their keeper")


def _write_kernel_settings() -> None:
    path = Path("/proc/sys/kernel/core_pattern")
    path.write_text(path.read_text())


def _more_processes_than_allowed() -> None:
    children = []
    try:
        for _ in range(TARGETS["tasks"]):
            if (pid := os.fork()) == 0:
                os._exit(0)
            children.append(pid)  # unreaped, it still counts
    finally:
        for pid in children:
            os.waitpid(pid, 0)


def _larger_file_than_allowed() -> None:
    with Path("large").open("wb") as file:
        file.seek(TARGETS["disk_bytes"])
        file.write(b"x")
    raise Leak("no limit")


def _raise_own_limits() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard + 1000))


PROBES: dict[str, Callable[[], object]] = {
    "read the daemon's key": _read_key,
    "read this node's keys and passwords": _read_secrets,
    "list the home folder": _read_home,
    "read other programs' shared memory": _share_memory,
    "read a secret from the environment": _read_environment_token,
    "use the daemon's open files": _use_inherited_descriptors,
    "read other processes' environments": _read_other_environments,
    "see other processes": _see_processes,
    "signal another process": _signal_victim,
    "TCP to this machine": _connect_tcp,
    "UDP out": _send_udp,
    "reach the internet": _reach_internet,
    "abstract local socket": _connect_abstract,
    "local socket by path": _connect_path,
    "local datagram by path": _send_datagram_to_path,
    "raw packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    "virtual machine sockets": lambda: socket.socket(40, socket.SOCK_STREAM).close(),
    "netlink sockets": lambda: socket.socket(16, socket.SOCK_RAW).close(),
    "trace another process": lambda: _refused_call(101, 117, 16, TARGETS["victim"], 0, 0),
    "read another process's memory": lambda: _refused_call(310, 270, TARGETS["victim"], 0, 0, 0, 0, 0),
    "write to the keeper's memory": _write_keeper_memory,
    "new user namespace": lambda: _syscall(272, 97, _CLONE_NEWUSER),
    "new network namespace": _new_network_by_clone,
    "clone3": lambda: _refused_call(435, 435, 0, 0),
    "io_uring": lambda: _refused_call(425, 425, 1, 0),
    "userfaultfd": lambda: _refused_call(323, 282, 1),
    "kernel keyring": lambda: _refused_call(250, 219, 0, -3 & 0xFFFFFFFF, 0),
    "bpf": lambda: _refused_call(321, 280, 0, 0, 0),
    "performance counters": lambda: _refused_call(298, 241, 0, 0, -1, -1, 0),
    "mount": lambda: _refused_call(165, 40, 0, 0, 0, 0, 0),
    "open files by handle": lambda: _refused_call(304, 265, -100, 0, 0),
    "uncounted memory files": _anonymous_memory_file,
    "other graphics cards": _other_cards,
    "uncounted shared segments": lambda: _refused_call(29, 194, 0, 4096, 0o1600),
    "system calls newer than the list": lambda: _refused_call(999, 999),
    "hide its children's processor time": _hide_children,
    "limit another process": _limit_others,
    "slow down another process": _slow_down_others,
    "see the page cache": _see_page_cache,
    "steer the page cache": _steer_page_cache,
    "lock shared files": _lock_shared_files,
    "identify the machine": _identify_machine,
    "type into the terminal": lambda: _refused_call(16, 29, 0, 0x5412, 0),
    "become root": _become_root,
    "write to the system": _write_system,
    "write kernel settings": _write_kernel_settings,
    "leave a process behind": _leave_a_process_behind,
    "start more processes than allowed": _more_processes_than_allowed,
    "write a larger file than allowed": _larger_file_than_allowed,
    "raise its own limits": _raise_own_limits,
}


def attempt(probe: Callable[[], object]) -> tuple[bool, str]:
    """Whether the probe was blocked, and by what."""
    try:
        probe()
    except Leak as leak:
        return False, str(leak)
    except (OSError, ValueError) as error:
        return True, str(error)[:200]
    return False, "it worked"


def main() -> None:
    """Runs every probe and reports each as soon as it is through."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for name, probe in PROBES.items():
        sys.stdout.write(json.dumps([name, *attempt(probe)]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
