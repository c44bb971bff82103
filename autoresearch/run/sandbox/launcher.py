"""Applies the limits to itself and becomes the program. Trusted, small, and started as a lone file.

Usage: ``python -I -S launcher.py SPECIFICATION`` with the hexadecimal marshalled mapping of ``specification.py``.
A keeper stays behind and the program is its child. The keeper is the first process of a namespace for processes, which
bubblewrap makes or, under landlock, this launcher: it collects orphans, and when it ends the kernel ends everything
else, whatever its state or name. Without walls every process of the run, daemonised or not, is the keeper's descendant,
and it ends them all. It ends when the program ends, or when the leash does: a pipe whose other end is the supervisor's
alone, so that it ends with the supervisor whenever and however that dies.
"""

from __future__ import annotations

import ctypes
import fcntl
import marshal
import os
import resource
import select
import sys

TYPE_CHECKING = False  # the module typing takes a tenth of a start
if TYPE_CHECKING:
    from socket import socket
    from typing import Any, NoReturn

# The module signal takes longer to import than everything here takes to run.
_SIGKILL, _SIGPIPE, _SIGCHLD, _SIGCONT, _SIGSTOP, _SIGXFSZ = 9, 13, 17, 18, 19, 25
_SIG_DFL = None
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_SET_SECCOMP = 1, 4, 8, 22
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_AMBIENT_RAISE = 2
_SECCOMP_MODE_FILTER = 2
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
_SET_FILTER, _NEW_LISTENER = 1, 8
_RECEIVE, _ANSWER, _CONTINUE = 0xC0502100, 0xC0182101, 1
_EPERM = 1
_CAPABILITY_VERSION = 0x20080522
_CAP_DAC_READ_SEARCH = 1 << 2
_CLONE_NEWUTS, _CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x04000000, 0x10000000, 0x20000000, 0x40000000
_AF_NETLINK, _SOCK_RAW, _SOCK_DIAG, _SOL_SOCKET, _SCM_RIGHTS = 16, 3, 4, 1, 1
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x00020000, 1 << 12, 1 << 14, 1 << 18
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_RULE_PATH_BENEATH = 1
_FILE_TYPE, _PLAIN_FILE, _STREAMS = 0o170000, 0o100000, (0o140000, 0o010000, 0o020000)  # sockets, pipes, characters

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


def separate_processes() -> None:
    """Gives what is forked from now on a namespace for processes, and a host name and a network of its own.

    The first process is its keeper. An ordinary user needs a user namespace for that. No id is mapped in it, so a
    program is nobody there and stays who it is outside. Raises OSError where the kernel refuses.
    """
    own = 0 if os.geteuid() == 0 else _CLONE_NEWUSER
    _checked(
        _libc.unshare(own | _CLONE_NEWPID | _CLONE_NEWUTS | _CLONE_NEWNET),
        "the kernel refuses a namespace for processes",
    )
    _libc.sethostname(b"run", 3)  # some systems refuse it to a user: the name is no secret there


def give_shared_memory(specification: dict[str, Any]) -> None:
    """Puts a folder of the run in the place of the machine's shared memory, and lets the run write there.

    Semaphores and shared arrays are files there, by a path that the C library fixes. Some systems refuse users a
    mount: a run then has no shared memory at all.
    """
    if specification["shared"] is None:
        return
    folder, shared, access = specification["shared"]
    try:
        _checked(_libc.unshare(_CLONE_NEWNS), "the kernel refuses a namespace for mounts")
        _checked(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "mounts can't be made private")
        _checked(_libc.mount(folder.encode(), shared.encode(), None, _MS_BIND, None), "no mount can be made")
    except OSError:
        return
    if os.path.samefile(folder, shared):  # noqa: PTH121
        specification["landlock"][1].append((shared, access))


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
    capability = _CAP_DAC_READ_SEARCH if keep_read else 0
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)(capability, capability, capability, 0, 0, 0)
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
    if program:
        with_head = _filter(program)
        _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(with_head[0]))


def _filter(program: bytes) -> tuple[Any, Any]:
    """``struct sock_fprog`` and the program that it points to, which has to live as long."""
    buffer = ctypes.create_string_buffer(program, len(program))
    length = (len(program) // 8).to_bytes(8, "little")
    return ctypes.create_string_buffer(length + ctypes.addressof(buffer).to_bytes(8, "little"), 16), buffer


def ask_keeper(program: bytes, channel: socket) -> None:
    """Installs a filter whose questions the keeper answers, and sends it the descriptor that they come on."""
    with_head = _filter(program)
    number = _SECCOMP_CALL[os.uname().machine]
    called = _libc.syscall(number, _SET_FILTER, _NEW_LISTENER, with_head[0])
    listener = _checked(called, "seccomp with a listener")
    channel.sendmsg([b"l"], [(_SOL_SOCKET, _SCM_RIGHTS, listener.to_bytes(4, "little"))])
    os.close(listener)


def hand_out_network(go: int, is_own: bool) -> None:  # noqa: FBT001
    """Gives the supervisor a descriptor that tells what waits in sockets of an own network; closes the channel."""
    if not is_own:
        os.close(go)
        return
    import _socket  # the module socket takes longer to import

    channel, descriptors = _socket.socket(fileno=go), []
    try:
        diagnosis = _socket.socket(_AF_NETLINK, _SOCK_RAW, _SOCK_DIAG)
        descriptors = [(_SOL_SOCKET, _SCM_RIGHTS, diagnosis.fileno().to_bytes(4, "little"))]
    except OSError:
        pass  # the kernel has none: each socket then counts as full
    channel.sendmsg([b"n"], descriptors)
    channel.close()


def make_folders(name: str) -> None:
    """Makes the folders of a file's name in the working folder."""
    if "/" in name:
        os.makedirs(os.path.dirname(name), exist_ok=True)  # noqa: PTH103, PTH120


def copy_here(path: str, name: str) -> None:
    """Copies a file into the working folder, or one in there: the program may change and run it."""
    make_folders(name)
    target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755)
    with open(path, "rb") as source, open(target, "wb") as copy:  # noqa: PTH123
        copy.write(source.read())


def run_build(words: list[str], program: bytes) -> None:
    """Runs the build behind the filter. When it fails it is the program's end; what it made may be executed.

    Under landlock the filter keeps the build from setting modes itself: they could be those of files elsewhere.
    """
    _prctl(_PR_SET_DUMPABLE, 0)  # the build may have our user id, and we have no filter yet
    child = os.fork()
    if not child:
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        apply_seccomp(program)
        os.execv(words[0], words)  # noqa: S606
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        os.write(2, b"the build failed\n")
        os._exit(status if status > 0 else 128 - status)
    for _, _, names, folder in os.fwalk("."):
        for name in names:
            make_executable(name, folder)


def make_executable(name: str, folder: int) -> None:
    """Sets the mode of a plain file in an open folder that has no other name."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return
    status = os.fstat(descriptor)
    if status.st_mode & _FILE_TYPE == _PLAIN_FILE and status.st_nlink == 1:
        os.fchmod(descriptor, 0o755)
    os.close(descriptor)


def become(specification: dict[str, Any], channel: socket | None) -> None:
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
    for path, name in specification["copied"]:
        copy_here(path, name)
    for path, name in specification["linked"]:
        make_folders(name)
        os.symlink(path, name)  # noqa: PTH211
    if channel is not None:
        os.dup2(channel.fileno(), 0)
        if specification["asking"]:
            ask_keeper(specification["asking"], channel)
    argv = specification["argv"]
    os.set_inheritable(specification["ready"], False)  # noqa: FBT003
    if not specification["build"]:
        apply_seccomp(specification["seccomp"])
        os.write(specification["ready"], b"ok")
    else:
        os.write(specification["ready"], b"ok")
        run_build(specification["build"], specification["seccomp"])
        apply_seccomp(specification["seccomp"])
    os.execv(argv[0], argv)  # noqa: S606


def descendants() -> list[int]:
    """The ids in ``/proc`` of all processes below this one that have a living thread, as far as they can be seen.

    Where ``/proc`` is not the namespace's own, they are not the ids that a signal takes.
    """
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        fields = stat_fields(name) if name.isdigit() else None
        # One that has ended, and whose threads have: a process lives on without its first thread.
        if fields and (fields[0] not in b"ZX" or int(fields[17]) > 1):
            parents.setdefault(int(fields[1]), []).append(int(name))
    pids, frontier = [], [int(os.readlink("/proc/self"))]  # noqa: PTH115
    while frontier:
        children = parents.get(frontier.pop(), [])
        pids += children
        frontier += children
    return pids


def stat_fields(place: str) -> list[bytes] | None:
    """What ``/proc`` says of a process or thread, from its state on; None where it has ended."""
    try:
        with open(f"/proc/{place}/stat", "rb") as stat:  # noqa: PTH123
            return stat.read().rpartition(b")")[2].split()
    except OSError:
        return None


def end_all() -> None:
    """Ends every descendant: first stops them, so that none can fork away, then kills and reaps them."""
    stopped: set[int] = set()
    while running := set(descendants()) - stopped:
        for pid in running:
            _signal(pid, _SIGSTOP)
        stopped |= running
    while remaining := descendants():
        for pid in remaining:
            _signal(pid, _SIGKILL)
        reap()
    while reap():
        pass


def end_namespace() -> None:
    """Ends every other process of the namespace and reaps it, so that its processor time is counted.

    Left to the kernel, which ends them with their first process, it would be counted for nobody.
    """
    try:
        os.kill(-1, _SIGKILL)
        while True:
            os.waitpid(-1, 0)
    except (ProcessLookupError, ChildProcessError):
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


class Unaskable(Exception):
    """The program can't be given its text; the sentence says why."""


class Gate:
    """Gives the program its text, and from then on refuses what reaches beyond its memory and its channels.

    So a program that has seen the text leaves no trace of it on the machine: not which files it read last, nor which
    names it looked up, which a later program could tell by the time that its own calls take.
    """

    def __init__(self, channel: socket, text: int, leash: int, *, walled: bool) -> None:
        self.channel, self._text, self._leash, self._left = channel, text, leash, memoryview(b"")
        self.listener, self.poller, self._closed = -1, select.poll(), False
        if walled:
            controls = channel.recvmsg(1, 64)[1]
            if not controls:
                raise Unaskable("it did not start")
            self.listener = int.from_bytes(controls[0][2][:4], "little")
            self.poller.register(self.listener, select.POLLIN)
        self.poller.register(channel.fileno(), select.POLLIN)

    def serve(self, ready: int) -> None:
        """Does the next thing for the descriptor that poll named. Raises Unaskable."""
        if ready == self.listener:
            self._answer()
        elif not self._closed:
            self._hand_over()
        else:
            self._write()

    def _answer(self) -> None:
        question, answer = bytearray(80), bytearray(24)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, question)
            answer[:8] = question[:8]
            if self._closed:
                answer[16:20] = (-_EPERM).to_bytes(4, "little", signed=True)
            else:
                answer[20] = _CONTINUE
            fcntl.ioctl(self.listener, _ANSWER, answer)
        except OSError:
            pass  # whoever asked ended, or was interrupted and asks again

    def _hand_over(self) -> None:
        if not self.channel.recv(1):  # the program let go of it
            self.poller.unregister(self.channel.fileno())
            return
        self._closed = True
        if self.listener >= 0:
            _read_whole(mapped_files(self._halted()))
            _signal(-1, _SIGCONT)
        with open(self._text, "rb") as file:  # noqa: PTH123
            self._left = memoryview(file.read())
        self.channel.settimeout(0)
        self.poller.modify(self.channel.fileno(), select.POLLOUT)

    def _halted(self) -> set[str]:
        """Stops the namespace and returns where ``/proc`` shows its threads.

        What is stopped has no call under way that began before the gate closed, and none may be begun again. Nothing
        but us can let a process go on: the filter has what else could. So what two looks see alike stays like that.
        """
        poller, before = select.poll(), None
        poller.register(self._leash, select.POLLIN)
        while True:
            for _ in range(50):
                _signal(-1, _SIGSTOP)
                states = {place: fields[0] for place in threads() if (fields := stat_fields(place))}
                living = {place for place, state in states.items() if state not in b"ZX"}
                stopped = all(states[place] == b"T" for place in living)
                if stopped and living == before:
                    return living
                before = living if stopped else None
                if poller.poll(1):
                    raise Unaskable("the run was ended")
            _signal(-1, _SIGCONT)  # one may wait for another one, which has to find the gate closed
            poller.poll(1)

    def _write(self) -> None:
        try:
            self._left = self._left[self.channel.send(self._left) :] if self._left else self._left
        except BlockingIOError:
            return
        except OSError:
            self._left = memoryview(b"")  # nobody reads any more
        if not self._left:
            self.poller.unregister(self.channel.fileno())
            self.channel.close()


def threads() -> list[str]:
    """Where ``/proc`` shows each thread of the processes below this one."""
    places = []
    for pid in descendants():
        try:  # noqa: SIM105  (contextlib costs start-up time)
            places += [f"{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208
        except OSError:
            pass  # it ended meanwhile
    return places


def mapped_files(places: set[str]) -> set[str]:
    """The files in the memory of stopped threads.

    Raises Unaskable where they can't be seen, and where a file could still be read: from descriptor 0 the filter lets
    every process read.
    """
    files = set()
    for place in places:
        try:
            with open(f"/proc/{place}/maps", "rb") as maps:  # noqa: PTH123
                files |= {os.fsdecode(line.split(None, 5)[5].rstrip(b"\n")) for line in maps if b" /" in line}
            if not reads_stream(f"/proc/{place}/fd/0"):
                raise Unaskable("one of its processes has a file as descriptor 0")
        except OSError as error:
            raise Unaskable(f"what one of its processes has mapped is not seen: {error}") from error
    return files


def reads_stream(descriptor: str) -> bool:
    """Whether an open descriptor has no content that stays; one that is closed has none either."""
    try:
        return os.stat(descriptor).st_mode & _FILE_TYPE in _STREAMS  # noqa: PTH116
    except FileNotFoundError:
        return True


def _read_whole(paths: set[str]) -> None:
    """Brings files into memory, so that it says nothing which of their pages the program touches from now on."""
    for path in paths:
        try:
            with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
                if os.fstat(file.fileno()).st_mode & _FILE_TYPE == _PLAIN_FILE:
                    while file.read(1 << 20):
                        pass
        except OSError:
            pass  # a file that was removed


def keep(child: int, leash: int, gate: Gate | None) -> int:
    """Waits for the program, or for the end of the leash that the supervisor holds. Returns the exit status."""
    watched = os.pidfd_open(child)
    poller = gate.poller if gate else select.poll()
    poller.register(watched, select.POLLIN)
    poller.register(leash, select.POLLIN)
    status = 128 + _SIGKILL
    while True:
        events = poller.poll(1000)
        ready = {descriptor for descriptor, _ in events}
        if gate and not ready & {watched, leash}:
            for descriptor in ready:
                gate.serve(descriptor)
            events = []
        while ended := _peek():
            if ended.si_pid == child:
                status = ended.si_status + (0 if ended.si_code == os.CLD_EXITED else 128)
                events = [(watched, select.POLLIN)]
                break
            os.waitpid(ended.si_pid, 0)  # an orphan of the run that came to its keeper
        if events:
            return status


def be_keeper(specification: dict[str, Any], child: int, leash: int, channel: socket | None) -> NoReturn:
    """Keeps the program to its end, ends what it left behind, hands its artifact out."""
    try:
        gate = None
        if channel is not None:
            gate = Gate(channel, specification["text"], leash, walled=bool(specification["asking"]))
        status = keep(child, leash, gate)
    except Unaskable as error:
        os.write(2, f"it is not given its text: {error}\n".encode())
        status = 1
    end_namespace() if specification["namespace"] else end_all()
    if specification["artifact"] is not None and status == 0:
        path, out = specification["artifact"]
        hand_out(path, out, specification["uid"], leash)
    os._exit(status)


def wait_for(child: int) -> NoReturn:
    """Ends as a child does, once it has."""
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(status if status >= 0 else 128 - status)


def hand_out(path: str, channel: int, uid: int | None, leash: int) -> None:
    """Sends the plain file that the program left, once nothing of the run is alive, with the run's own rights.

    The supervisor lets go of the leash where the file is larger than it reads.
    """
    try:
        if uid is not None:
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        status = os.fstat(source)
        if status.st_mode & _FILE_TYPE != _PLAIN_FILE or status.st_nlink != 1:
            return
        os.set_blocking(channel, False)
        poller = select.poll()
        poller.register(channel, select.POLLOUT)
        poller.register(leash, select.POLLIN)
        while part := os.read(source, 1 << 20):
            while part:
                if leash in dict(poller.poll()):
                    return
                part = part[os.write(channel, part) :]
    except OSError:
        pass  # there is none, or the supervisor has seen enough


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


def _pair() -> tuple[socket, socket]:
    import _socket  # the module socket takes longer to import

    ours, theirs = _socket.socketpair()
    return ours, theirs  # type: ignore[return-value]  # what sockets are made of, without their conveniences


def main() -> None:
    """Reads the specification; the child becomes the program, the parent keeps it."""
    specification = marshal.loads(bytes.fromhex(sys.argv[1]))  # noqa: S302  (our own supervisor wrote it)
    leash, ready = specification["kept"][0], specification["ready"]
    _libc.signal(_SIGCHLD, _SIG_DFL)  # where it is ignored, nobody is told what processor time a child took
    go_fd = specification["go"]
    os.read(go_fd, 1)
    if ended(leash):
        os._exit(128 + _SIGKILL)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    try:
        if specification["namespace"] and specification["landlock"] is None and os.getpid() != 1:
            raise OSError("there is no namespace for processes")  # else the keeper would end all that it sees
        if specification["landlock"] is not None:
            separate_processes()
            give_shared_memory(specification)
        hand_out_network(go_fd, specification["network"])
        if specification["landlock"] is not None:
            if first := os.fork():
                _prctl(_PR_SET_DUMPABLE, 0)
                wait_for(first)
        elif not specification["namespace"]:
            _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        held, go = os.pipe()
        ours, theirs = _pair() if specification["text"] is not None else (None, None)
        if child := os.fork():
            _prctl(_PR_SET_DUMPABLE, 0)  # the program may have our user id: it must not write to our memory
            apply_seccomp(specification["seccomp"])
            os.write(go, b"x")
            if theirs is not None:
                theirs.close()
            be_keeper(specification, child, leash, ours)
        for descriptor in specification["kept"]:
            os.close(descriptor)
        if specification["artifact"] is not None:
            os.close(specification["artifact"][1])
        os.setsid()
        os.read(held, 1)
        if ours is not None:
            ours.close()
        become(specification, theirs)
    except (OSError, ValueError, AttributeError) as error:
        os.write(ready, str(error).encode())
        os._exit(125)


if __name__ == "__main__":
    main()
