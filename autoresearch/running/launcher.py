"""Applies the limits to itself and becomes the program. Trusted, small, and started as a lone file.

Usage: ``python -I -S launcher.py SPECIFICATION`` with the hexadecimal marshalled mapping of ``specification.py``.
A keeper stays behind and the program is its child. Under bubblewrap the keeper is the namespace's first process: it
collects orphans, and when it ends the kernel ends everything else. Below, it stays outside the sandbox: every process
of the run, daemonised or not, is its descendant, and it ends them all. It ends when the program ends, or when the leash
does: a pipe whose other end is the supervisor's alone, so that it ends with the supervisor whenever and however that
dies.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import select
import sys
from typing import Any

# The module signal takes longer to import than everything here takes to run.
_SIGKILL, _SIGPIPE, _SIGSTOP, _SIGXFSZ = 9, 13, 19, 25
_SIG_DFL = None
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_SET_SECCOMP = 1, 4, 8, 22
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_AMBIENT_RAISE = 2
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
_CAP_DAC_READ_SEARCH = 1 << 2
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_RULE_PATH_BENEATH = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _prctl(option: int, *arguments: int) -> None:
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    _checked(_libc.prctl(option, *padded), f"prctl {option}")


def apply_rlimits(limits: dict[str, int]) -> None:
    """Sets soft and hard limits by their ``RLIMIT_`` names, never above the present hard ones."""
    for name, value in limits.items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (allowed, allowed))


def drop_user(uid: int, *, keep_read: bool) -> None:
    """From root to ``uid`` for good. With ``keep_read`` one capability stays: reading past file permissions.

    It is needed where the interpreter lies in root's closed home, and only under landlock, which then says what is
    readable.
    """
    if keep_read:
        _prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    kept = _CAP_DAC_READ_SEARCH if keep_read else 0
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)(kept, kept, kept, 0, 0, 0)
    _checked(_libc.capset(header, sets), "capset")
    if keep_read:
        _prctl(_PR_CAP_AMBIENT, _AMBIENT_RAISE, 2)


def apply_landlock(handled: list[int], rules: list[list[Any]]) -> None:
    """Forbids everything in ``handled`` except the rights that ``rules`` grant beneath their paths."""
    attributes = (ctypes.c_uint64 * 3)(*handled)
    ruleset = _checked(_libc.syscall(_LANDLOCK_CREATE, attributes, 24, 0), "landlock_create_ruleset")
    for path, access in rules:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = access.to_bytes(8, "little") + descriptor.to_bytes(4, "little")
        _checked(_libc.syscall(_LANDLOCK_ADD, ruleset, _RULE_PATH_BENEATH, rule, 0), f"landlock {path}")
        os.close(descriptor)
    _checked(_libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def apply_seccomp(program: bytes) -> None:
    """Installs a filter: an array of 8-byte ``struct sock_filter``; an empty one does nothing."""
    if not program:
        return
    buffer = ctypes.create_string_buffer(program, len(program))
    length = (len(program) // 8).to_bytes(8, "little")
    head = ctypes.create_string_buffer(length + ctypes.addressof(buffer).to_bytes(8, "little"), 16)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(head))


def become(specification: dict[str, Any]) -> None:
    """Never returns: the program replaces this process. Raises OSError where a limit can't be applied."""
    with open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123  (pathlib costs start-up time)
        score.write("1000")  # when the whole machine runs short, the run goes first
    apply_rlimits(specification["limits"])
    if specification["uid"] is not None:
        drop_user(specification["uid"], keep_read=specification["keep_read"])
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)  # after the change of user, which clears it
    if specification["landlock"] is not None:
        apply_landlock(*specification["landlock"])
    for number in (_SIGPIPE, _SIGXFSZ):  # Python ignores them, and exec would pass that on
        _libc.signal(number, _SIG_DFL)
    os.chdir(specification["cwd"])
    apply_seccomp(specification["seccomp"])
    argv = specification["argv"]
    os.write(specification["ready"], b"ok")
    os.set_inheritable(specification["ready"], False)  # noqa: FBT003
    os.execv(argv[0], argv)  # noqa: S606


def descendants(root: int) -> list[int]:
    """The ids of all processes below ``root``, as far as they can be seen."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in b"ZX":
            parents.setdefault(int(fields[1]), []).append(int(name))
    found, frontier = [], [root]
    while frontier:
        children = parents.get(frontier.pop(), [])
        found += children
        frontier += children
    return found


def end_all() -> None:
    """Ends every descendant: first stops them, so that none can fork away, then kills and reaps them."""
    stopped: set[int] = set()
    while running := set(descendants(os.getpid())) - stopped:
        for pid in running:
            _signal(pid, _SIGSTOP)
        stopped |= running
    while remaining := descendants(os.getpid()):
        for pid in remaining:
            _signal(pid, _SIGKILL)
        reap()
    while reap():
        pass


def _signal(pid: int, number: int) -> None:
    try:  # noqa: SIM105  (contextlib costs start-up time)
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def reap() -> int:
    """Collects one ended child without waiting; its id, or 0."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0]
    except ChildProcessError:
        return 0


def keep(child: int, leash: int) -> int:
    """Waits for the program, or for the end of the leash that the supervisor holds. Returns the exit status."""
    watched = os.pidfd_open(child)
    poller = select.poll()
    poller.register(watched, select.POLLIN)
    poller.register(leash, select.POLLIN)
    status = 128 + _SIGKILL
    while True:
        events = poller.poll(1000)
        while ended := _peek():
            if ended.si_pid == child:
                status = ended.si_status + (0 if ended.si_code == os.CLD_EXITED else 128)
                events = [(watched, select.POLLIN)]
                break
            os.waitpid(ended.si_pid, 0)  # an orphan of the run that came to its keeper
        if events:
            return status


def ended(leash: int) -> bool:
    """Whether the supervisor let go of the leash."""
    poller = select.poll()
    poller.register(leash, select.POLLIN)
    return bool(poller.poll(0))


def _peek() -> os.waitid_result | None:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None


def main() -> None:
    """Reads the specification; the child becomes the program, the parent keeps it."""
    specification = marshal.loads(bytes.fromhex(sys.argv[1]))  # noqa: S302  (our own supervisor wrote it)
    leash, is_first = specification["kept"][0], specification["namespace"]
    if ended(leash):
        os._exit(128 + _SIGKILL)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if not is_first:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    held, go = os.pipe()
    child = os.fork()
    if child:
        _prctl(_PR_SET_DUMPABLE, 0)  # the program may have our user id: it must not write to our memory
        apply_seccomp(specification["seccomp"])
        os.write(go, b"x")
        status = keep(child, leash)
        if not is_first:
            end_all()
        os._exit(status)
    try:
        for descriptor in specification["kept"]:
            os.close(descriptor)
        os.setsid()
        os.read(held, 1)
        become(specification)
    except (OSError, ValueError, AttributeError) as error:
        os.write(specification["ready"], str(error).encode())
        os._exit(125)


if __name__ == "__main__":
    main()
