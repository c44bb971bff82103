"""The filter says what it should on both architectures, checked by interpreting its program."""

from __future__ import annotations

import errno
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from autoresearch.run.sandbox import syscalls
from autoresearch.run.sandbox.filters import LEAST_LANDLOCK, asking_filter, deny_filter, landlock_version, supported

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
ALLOW, KILL, ASK = "allow", "kill", "ask"


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> str | int:
    """Runs the classic BPF program on one call (``struct seccomp_data``)."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *padded)
    instructions = list(struct.iter_unpack("<HBBI", program))
    accumulator = place = 0
    code: int
    value: int
    while True:
        code, if_true, if_false, value = instructions[place]
        place += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            accumulator &= value
        elif code == 0x15:
            place += if_true if accumulator == value else if_false
        elif code == 0x25:
            place += if_true if accumulator > value else if_false
        else:
            assert code == 0x06
            return {0x7FFF0000: ALLOW, 0x80000000: KILL, 0x7FC00000: ASK}.get(value, value & 0xFFFF)


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("sockets", [True, False])
def test_every_listed_call_is_refused_and_others_are_not(machine: str, sockets: bool) -> None:
    column, architecture = ARCHITECTURES[machine]
    program = deny_filter(machine, sockets=sockets)
    assert len(program) % 8 == 0
    assert len(program) // 8 < 4096
    listed = {numbers[column]: errno.EPERM for numbers in syscalls.DENIED.values()}
    listed |= {numbers[column]: errno.ENOSYS for numbers in syscalls.ABSENT.values()}
    listed |= {numbers[column]: 0 for numbers in syscalls.IGNORED.values()}
    listed[syscalls.OF_OTHERS["ioprio_set"][0][column]] = errno.EPERM  # 0 is no kind of process there
    if not sockets:
        listed |= {numbers[column]: 0 for numbers in syscalls.METADATA.values()}
        listed |= {numbers[column]: errno.EOPNOTSUPP for numbers in syscalls.ATTRIBUTES.values()}
    special: set[int | None] = {syscalls.SOCKET[column], syscalls.SOCKETPAIR[column]}
    special |= {numbers[column] for numbers in syscalls.SOCKETS.values()}
    for number in set(range(syscalls.LAST_KNOWN + 1)) - special:
        assert verdict(program, architecture, number) == listed.get(number, ALLOW), number
    for number in (463, 999, 0x40000000 | 101, 0xFFFFFFFF):
        assert verdict(program, architecture, number) == errno.ENOSYS
    assert verdict(program, 0x40000003, 0) == KILL


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_arguments_decide_where_the_call_alone_does_not(machine: str) -> None:
    column, architecture = ARCHITECTURES[machine]
    inside, below = deny_filter(machine, sockets=True), deny_filter(machine, sockets=False)

    def says(program: bytes, numbers: tuple[int, int], *arguments: int) -> str | int:
        return verdict(program, architecture, numbers[column], *arguments)

    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert says(inside, syscalls.CLONE, flag | 17) == errno.EPERM
    assert says(inside, syscalls.CLONE, 0x3D0F00) == ALLOW  # what pthread_create asks for
    for family in (1, 2, 10):
        assert says(inside, syscalls.SOCKET, family, 1) == ALLOW
    for family in (0, 16, 17, 38, 40):
        assert says(inside, syscalls.SOCKET, family, 1) == errno.EPERM
    for family in (1, 2, 10, 16):
        assert says(below, syscalls.SOCKET, family, 1) == errno.EPERM
    assert says(below, syscalls.SOCKETPAIR, 1, 1 | 0o2000000) == ALLOW
    assert says(below, syscalls.SOCKETPAIR, 1, 2 | 0o2000000) == errno.EPERM
    for request, expected in ((0x5401, ALLOW), (0x5412, errno.EPERM), (0x541C, errno.EPERM), (0x40086602, errno.EPERM)):
        assert says(inside, syscalls.IOCTL, 0, request) == expected
        assert says(inside, syscalls.IOCTL, 0, 0xFFFFFFFF00000000 | request) == expected
    assert says(inside, syscalls.PRCTL, 4, 0) == errno.EPERM
    assert says(inside, syscalls.PRCTL, 15, 0) == ALLOW
    assert says(inside, syscalls.PRCTL, 22, 2) == errno.EPERM  # a filter
    for protocol, answer in ((0, ALLOW), (6, ALLOW), (17, ALLOW), (132, errno.EPROTONOSUPPORT), (262, 93), (255, 93)):
        assert says(inside, syscalls.SOCKET, 2, 1, protocol) == answer
    for program in (inside, below):
        for option, answer in ((7, 0), (32, 0), (51, errno.EPERM), (8, ALLOW), (9, ALLOW), (13, ALLOW)):
            assert says(program, syscalls.SETSOCKOPT, 3, 1, option) == answer
            assert says(program, syscalls.SETSOCKOPT, 3, 6, option) == ALLOW
        assert says(program, syscalls.FCNTL, 3, 1031, 1 << 20) == errno.EPERM
    for action in (0x1000, 1 << 32):
        assert says(inside, syscalls.RT_SIGACTION, 17, action) == says(below, syscalls.RT_SIGACTION, 17, action) == 0
        assert says(inside, syscalls.RT_SIGACTION, 15, action) == ALLOW
    assert says(below, syscalls.RT_SIGACTION, 17, 0, 0x1000) == ALLOW  # it asks for the present one


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("sockets", [True, False])
def test_no_other_process_is_steered_and_no_cache(machine: str, sockets: bool) -> None:
    column, architecture = ARCHITECTURES[machine]
    program = deny_filter(machine, sockets=sockets)

    def says(numbers: tuple[int, int], *arguments: int) -> str | int:
        return verdict(program, architecture, numbers[column], *arguments)

    for name, (numbers, who, which) in syscalls.OF_OTHERS.items():
        kind = [which] if who else []
        assert says(numbers, *kind, 0) == ALLOW, name
        for other in (1, 4242, 0xFFFFFFFF):
            assert says(numbers, *kind, other) == errno.EPERM, name
        if who:
            assert says(numbers, 2, 0) == errno.EPERM, name
    for advice in (0, 1, 4, 8, 14, 16, 18):
        assert says(syscalls.MADVISE, 0x1000, 4096, advice) == ALLOW
    for advice in (20, 21, 22, 23):
        assert says(syscalls.MADVISE, 0x1000, 4096, advice) == errno.EINVAL
    assert says(syscalls.MADVISE, 0x1000, 4096, 3) == 0
    for command in (6, 7, 37, 38):
        assert says(syscalls.FCNTL, 3, command) == 0
    for command in (5, 36, 1024, 1026):
        assert says(syscalls.FCNTL, 3, command) == errno.EINVAL
    for command in (1, 2, 3, 4, 1030):
        assert says(syscalls.FCNTL, 3, command) == ALLOW


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_the_keeper_is_asked_about_all_that_reaches_beyond_the_program(machine: str) -> None:
    column, architecture = ARCHITECTURES[machine]
    program = asking_filter(machine)
    within = {numbers[column] for numbers in syscalls.WITHIN.values()} | {syscalls.READ[column], syscalls.LSEEK[column]}
    for number in set(range(syscalls.LAST_KNOWN + 50)) - {syscalls.TIMER_CREATE[column]}:
        assert verdict(program, architecture, number) == (ALLOW if number in within else ASK), number

    def says(numbers: tuple[int, int], *arguments: int) -> str | int:
        return verdict(program, architecture, numbers[column], *arguments)

    assert says(syscalls.READ, 3) == ASK
    assert says(syscalls.MMAP, 0, 4096, 3, 0x22) == ALLOW
    assert says(syscalls.MMAP, 0, 4096, 1, 0x02, 3) == ASK
    assert says(syscalls.CLONE, 0x3D0F00) == ALLOW  # what pthread_create asks for
    assert says(syscalls.CLONE, 17) == ASK
    assert says(syscalls.LSEEK, 3, 0, 3) == ASK  # SEEK_DATA reads where the file lies on the disk


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_nothing_but_the_keeper_lets_a_stopped_process_go_on(machine: str) -> None:
    column, architecture = ARCHITECTURES[machine]
    program = asking_filter(machine)

    def says(numbers: tuple[int, int], *arguments: int) -> str | int:
        return verdict(program, architecture, numbers[column], *arguments)

    assert says(syscalls.TIMER_CREATE, 1) == errno.ENOSYS
    assert says(syscalls.FCNTL, 0, 10, 18) == errno.EPERM  # F_SETSIG
    assert says(syscalls.PRCTL, 1, 18) == errno.EPERM  # PR_SET_PDEATHSIG
    assert says(syscalls.CLONE, 18) == errno.EPERM
    assert says(syscalls.TGKILL, 2, 2, 18) == ASK
    assert says(syscalls.TGKILL, 2, 2, 6) == ALLOW


def test_other_machines_have_no_filter() -> None:
    assert not supported("riscv64")
    with pytest.raises(KeyError):
        deny_filter("riscv64", sockets=True)


ALONE = """
import ctypes, fcntl, os, stat, sys
from autoresearch.run.sandbox.launcher import apply_landlock
from autoresearch.run.sandbox.filters import LANDLOCK_HANDLED, path_rules
from pathlib import Path

folder, device = Path(sys.argv[1]), Path("/dev/null")
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
apply_landlock(LANDLOCK_HANDLED, path_rules([], [folder, device], []))
(folder / "file").write_text("x")
for act in (
    lambda: os.mknod(folder / "terminal", stat.S_IFCHR | 0o600, os.makedev(5, 0)),
    lambda: os.mknod(folder / "disk", stat.S_IFBLK | 0o600, os.makedev(7, 99)),
    lambda: fcntl.ioctl(os.open(device, os.O_WRONLY), 0x5401, bytes(64)),
):
    try:
        act()
        print(0)
    except OSError as error:
        print(error.errno)
"""


@pytest.mark.skipif(landlock_version() < LEAST_LANDLOCK, reason="this kernel's landlock is too old")
def test_where_a_run_may_write_landlock_lets_it_make_and_steer_no_device(tmp_path: Path) -> None:
    """Whatever capabilities it has: the kernel asks landlock first. Without it: EPERM or no error, and ENOTTY."""
    ended = subprocess.run([sys.executable, "-c", ALONE, tmp_path], capture_output=True, text=True, check=False)
    assert ended.stdout.split() == [str(errno.EACCES)] * 3, ended.stderr
    assert (tmp_path / "file").exists()
