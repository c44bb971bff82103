"""Processes that begin where another has loaded the modules: a second less for a daemon, two for a program with torch.

Each is a process of its own, with its own number, streams, environment and exit status. What depends on how Python
itself starts (``PYTHONIOENCODING``, which modules a command loads) is tested with a Python that is started for it.
Daemons start their network process and workers so too. These are children of the daemon as any others: it waits for
them, and they end with it by what they ask of the kernel themselves.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import inspect
import json
import os
import pkgutil
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

HEADER = 8
DESCRIPTORS_MOST = 16
COMMAND = "autoresearch_cli.main:main"
# Typer converts some values by pydantic, and loads it when the first comes.
COMMAND_MODULES = (
    "autoresearch_cli.commands.*",
    "autoresearch_cli.acts.*",
    "autoresearch_cli.agent.*",
    "typer._adapters",
)
# With the modules of daemons: for commands that start one.
PRELOADED = "tests.daemon.preloaded"
STARTING = frozenset({"demo", "join", "up"})
# What daemons and commands start as ``python -m`` that begins warm; the leaves start no such process themselves.
LEAVES = (
    "autoresearch_daemon.net.host.asking",
    "autoresearch_daemon.net.host.child",
    "autoresearch_daemon.workers.assignment",
)
CHILDREN = ("autoresearch_daemon", *LEAVES)
# Place for the command lines that /proc shows.
TITLE_BYTES = 4096
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNET = 0x40000000


class WarmProcess:
    """A process that was started from a warm one; the part of ``subprocess.Popen`` that tests need."""

    stdout: TextIO
    stderr: TextIO

    def __init__(self, status: int) -> None:
        self._status = os.fdopen(status, "rb", buffering=0)
        self.pid = int(self._status.readline())
        self.returncode: int | None = None

    def communicate(self) -> tuple[str, str]:
        """What it writes until it ends, where its streams are pipes."""
        errors: list[str] = []
        beside = threading.Thread(target=lambda: errors.append(self.stderr.read()))
        with self.stdout, self.stderr:
            beside.start()
            out = self.stdout.read()
            beside.join()
        self.wait()
        return out, errors[0]

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status. Raises ``subprocess.TimeoutExpired``."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = int(self._status.readline())
            self._status.close()
        return self.returncode

    def poll(self) -> int | None:
        """Its exit status, or None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


class Warm:
    """A process with some modules, which becomes others by forks. ``name.*`` stands for all modules below a package."""

    def __init__(self, *modules: str) -> None:
        """Start it. It ends with this process, and what it became is told to end then."""
        self._socket, other = socket.socketpair()
        self._lock = threading.Lock()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.warm", str(other.fileno()), *modules, " " * TITLE_BYTES],
                env=environment,
                pass_fds=[other.fileno()],
            )
        atexit.register(self._close)

    def start(
        self,
        program: str,
        *arguments: str,
        descriptors: Mapping[int, int] | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        namespace: str = "",
    ) -> WarmProcess:
        """Start ``module:function``, a module or a file, in an environment and a folder; by default, this process's.

        ``descriptors`` says what is open under which number there; by default, this process's streams. ``namespace`` is
        the name of another network's namespace.
        """
        how = {"descriptors": descriptors, "environment": environment, "folder": folder, "namespace": namespace}
        return WarmProcess(self.report(program, *arguments, **how))  # type: ignore[arg-type]

    def report(
        self,
        program: str,
        *arguments: str,
        descriptors: Mapping[int, int] | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | str | None = None,
        namespace: str = "",
    ) -> int:
        """Start a program as above; the descriptor from which its number, and later its exit status, are read."""
        request = {
            "program": program,
            "arguments": arguments,
            "environment": dict(os.environ if environment is None else environment),
            "folder": str(folder or Path.cwd()),
            "namespace": namespace,
        }
        with self._lock:
            return _ask(self._socket, request, descriptors or {0: 0, 1: 1, 2: 2})

    def open(
        self,
        program: str,
        *arguments: str,
        stdin: str = "",
        passed: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> WarmProcess:
        """Start a program as above, its streams as pipes; ``stdin`` is its input, ``passed`` what else is open."""
        source, out, error = os.memfd_create("input"), os.pipe(), os.pipe()
        os.write(source, stdin.encode())
        os.lseek(source, 0, os.SEEK_SET)
        places = {0: source, 1: out[1], 2: error[1]} | {number: number for number in passed}
        process = self.start(program, *arguments, descriptors=places, environment=environment, folder=folder)
        for descriptor in (source, out[1], error[1]):
            os.close(descriptor)
        process.stdout, process.stderr = (
            os.fdopen(out[0], encoding="utf-8", newline=""),
            os.fdopen(error[0], encoding="utf-8", newline=""),
        )
        return process

    def run(self, program: str, *arguments: str, seconds: float = 600, **how: Any) -> subprocess.CompletedProcess[str]:
        """Open a program as above and wait for its end.

        Raises:
            subprocess.TimeoutExpired: It took longer than ``seconds``; it is killed.
        """
        process = self.open(program, *arguments, **how)
        killer = threading.Timer(seconds, process.kill)
        killer.start()
        try:
            out, error = process.communicate()
        finally:
            killer.cancel()
        if process.returncode == -signal.SIGKILL:
            raise subprocess.TimeoutExpired([program, *arguments], seconds, out.encode(), error.encode())
        return subprocess.CompletedProcess([program, *arguments], process.wait(), out, error)

    def _close(self) -> None:
        self._socket.close()
        self._process.wait()


@functools.cache
def warm(*modules: str) -> Warm:
    """The warm process of these modules, one for each process that runs tests."""
    return Warm(*modules)


def run_command(*words: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """The command line as a process. ``how``: as for :meth:`Warm.run`."""
    return warm_command(words).run(COMMAND, *words, **how)


def open_command(*words: str, **how: Any) -> WarmProcess:
    """The command line as a process that goes on. ``how``: as for :meth:`Warm.open`."""
    return warm_command(words).open(COMMAND, *words, **how)


def warm_command(words: Sequence[str]) -> Warm:
    """The warm process in which the command of these words begins."""
    return warm(PRELOADED) if STARTING.intersection(words) else warm(*COMMAND_MODULES)


# ``autoresearch`` for a shell: has another process start the command, passes signals on, and ends as it does.
SHIM = """\
#!{python} -IS
import json, os, signal, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
request = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
socket.send_fds(connection, [len(request).to_bytes({header}, "big")], [0, 1, 2])
connection.sendall(request)
status = os.fdopen(socket.recv_fds(connection, 1, 1)[1][0], "rb", buffering=0)
pid = int(status.readline())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int(status.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@contextlib.contextmanager
def warm_shell() -> Iterator[str]:
    """A folder for a shell's PATH in which the command line begins warm."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        address, program = f"{folder}/socket", Path(folder, "autoresearch")
        program.write_text(SHIM.format(python=sys.executable, address=address, header=HEADER))
        program.chmod(0o755)
        server.bind(address)
        server.listen(32)
        beside = threading.Thread(target=_serve_shell, args=[server])
        beside.start()
        try:
            yield folder
        finally:
            server.shutdown(socket.SHUT_RDWR)
            beside.join()


def _serve_shell(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # it was shut down
            return
        with connection:
            header, descriptors, _, _ = socket.recv_fds(connection, HEADER, DESCRIPTORS_MOST)
            request = connection.recv(int.from_bytes(header, "big"), socket.MSG_WAITALL)
            words, environment, folder = json.loads(request)
            report = warm_command(words).report(
                COMMAND, *words, descriptors=dict(enumerate(descriptors)), environment=environment, folder=folder
            )
            for descriptor in descriptors:
                os.close(descriptor)
            socket.send_fds(connection, [b"."], [report])
            os.close(report)


class Starter:
    """Starts children of this process with the modules that it has now, also when it has threads, which don't fork.

    Another process forks them, and its own child in between ends at once: an orphan becomes the child of the next
    ancestor that asks the kernel for orphans, which this process does for that moment.
    """

    def __init__(self) -> None:
        self._socket, other = socket.socketpair()
        self._lock = threading.Lock()
        if pid := os.fork():
            other.close()
            self._pid = pid
            return
        _end_with_parent(signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is this process's parent's to handle
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        os.closerange(3, other.fileno())
        os.closerange(other.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        serve(other, _give_away)
        os._exit(0)

    def start(self, request: Mapping[str, object], places: Mapping[int, int]) -> int:
        """Start a child; its number."""
        with self._lock:
            _prctl(PR_SET_CHILD_SUBREAPER, 1)
            try:
                with os.fdopen(_ask(self._socket, request, places), "rb") as report:
                    return int(report.read())
            finally:
                _prctl(PR_SET_CHILD_SUBREAPER, 0)

    def close(self) -> None:
        """End it: nothing of it is left. What it started goes on."""
        self._socket.close()
        os.waitpid(self._pid, 0)


def start_children_warm() -> Starter:
    """From here on, children of this process that run a module of ``CHILDREN`` begin with what is loaded now."""
    starter, start_cold = Starter(), subprocess.Popen._execute_child  # type: ignore[attr-defined]
    parameters = inspect.signature(start_cold)

    def start(*arguments: Any) -> None:
        call = parameters.bind(*arguments).arguments
        process, words = call["self"], call["args"]
        python, *words = [word for word in words if word != "-P"] if isinstance(words, tuple | list) else [""]
        if python != sys.executable or words[:1] != ["-m"] or words[1] not in CHILDREN:
            start_cold(*arguments)
            return
        request = {
            "program": words[1],
            "arguments": words[2:],
            "environment": dict(os.environ if call["env"] is None else call["env"]),
            "folder": str(call["cwd"] or Path.cwd()),
            "apart": call["start_new_session"],
            # The one thing that our processes ask of a child before it begins: link.death_signal.
            "signal": inspect.getclosurevars(call["preexec_fn"]).nonlocals["number"] if call["preexec_fn"] else 0,
        }
        names = ("p2cread", "c2pwrite", "errwrite")
        streams = {number: call[name] if call[name] >= 0 else number for number, name in enumerate(names)}
        process.pid = starter.start(request, streams | {number: number for number in call["pass_fds"]})
        process._child_created = True
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        process._close_pipe_fds(*(call[name] for name in ends))

    subprocess.Popen._execute_child = start  # type: ignore[attr-defined]
    return starter


def _ask(connection: socket.socket, request: Mapping[str, object], places: Mapping[int, int]) -> int:
    """Ask a process that serves for another one; where to read its number."""
    report, reported = os.pipe()
    raw = json.dumps({**request, "descriptors": list(places)}).encode()
    socket.send_fds(connection, [len(raw).to_bytes(HEADER, "big")], [*places.values(), reported])
    connection.sendall(raw)
    os.close(reported)
    return report


def serve(connection: socket.socket, attend: Callable[[dict[str, Any], list[int]], NoReturn]) -> None:
    """Fork a process for each request, until the other end is closed."""
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    while True:
        header, descriptors, _, _ = socket.recv_fds(connection, HEADER, DESCRIPTORS_MOST)
        if not header:
            return
        request = connection.recv(int.from_bytes(header, "big"), socket.MSG_WAITALL)
        if os.fork() == 0:
            connection.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            attend(json.loads(request), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _reap() -> None:
    """Take note of those that ended: their processor time counts as this process's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


_prctl, _setns = ctypes.CDLL(None).prctl, ctypes.CDLL(None).setns


def _end_with_parent(number: int = signal.SIGTERM) -> None:
    _prctl(PR_SET_PDEATHSIG, number)


def _attend(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Start the program, and report its number and how it ended."""
    _end_with_parent()
    *streams, reported = descriptors
    if (pid := os.fork()) == 0:
        os.close(reported)
        _end_with_parent()
        _become(request, streams)
    for descriptor in streams:
        os.close(descriptor)
    os.write(reported, b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    os.write(reported, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _give_away(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Start the program as a child of the process that asked, and report its number."""
    *streams, reported = descriptors
    over = os.pidfd_open(os.getpid())
    if os.fork():
        os._exit(0)
    select.select([over], [], [])  # this process is given away
    os.close(over)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["apart"]:
        os.setsid()
    if request["signal"]:
        _end_with_parent(request["signal"])
    os.write(reported, b"%d\n" % os.getpid())
    os.close(reported)
    _become(request, streams)


def _show_command(*words: str) -> None:
    """Have /proc show these words as this process's command line."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = map(int, fields[45:47])
    room = end - begin
    ctypes.memmove(begin, b"\0".join(map(os.fsencode, words))[: room - 1].ljust(room, b"\0"), room)


def _become(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Run the program as if Python had started with it."""
    numbers = request["descriptors"]
    apart = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 1000) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for number, descriptor in zip(numbers, apart, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    # The descriptors stay open when these objects are replaced: what begins here may itself start what begins so.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["environment"])
    if request.get("namespace"):
        with Path("/run/netns", request["namespace"]).open() as namespace:
            assert _setns(namespace.fileno(), CLONE_NEWNET) == 0
    os.chdir(request["folder"])
    random.seed()
    program, words = request["program"], request["arguments"]
    starter = start_children_warm() if PRELOADED in sys.modules and program not in LEAVES else None
    code = 1
    try:
        if ":" in program:
            module, _, function = program.partition(":")
            sys.argv = ["autoresearch", *words]
            getattr(importlib.import_module(module), function)()
        elif program.endswith(".py"):
            sys.argv = [program, *words]
            sys.path.insert(0, str(Path(program).parent))
            runpy.run_path(program, run_name="__main__")
        else:
            sys.argv = [program, *words]
            sys.orig_argv = [sys.executable, "-m", program, *words]  # what begins anew begins with it
            _show_command(*sys.orig_argv)
            if program in LEAVES:
                sys.modules.pop(program, None)  # it begins as __main__, as it does in a new Python
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if starter:
            starter.close()
        os._exit(code)


def load(*names: str) -> None:
    """Load modules."""
    for name in names:
        module = importlib.import_module(name.removesuffix(".*"))
        if name.endswith(".*"):
            for submodule in pkgutil.walk_packages(module.__path__, f"{module.__name__}."):
                importlib.import_module(submodule.name)


if __name__ == "__main__":
    gc.disable()  # nothing of what is loaded is garbage
    load(*sys.argv[2:-1])
    gc.freeze()  # what was loaded stays in memory that all share
    gc.enable()
    serve(socket.socket(fileno=int(sys.argv[1])), _attend)
