"""Processes that begin where another has loaded the modules: a second less for a daemon, two for a program with torch.

Each is a process of its own, with its own number, streams, environment and exit status. What depends on how Python
itself starts (``PYTHONIOENCODING``, which modules a command loads) is tested with a Python that is started for it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
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
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

HEADER = 8
DESCRIPTORS_MOST = 16
COMMAND = "autoresearch_cli.main:main"
COMMAND_MODULES = ("autoresearch_cli.commands.*", "autoresearch_cli.acts.*", "autoresearch_cli.agent.*")
PR_SET_PDEATHSIG = 1


class WarmProcess:
    """A process that was started from a warm one; the part of ``subprocess.Popen`` that tests need."""

    def __init__(self, status: int) -> None:
        self._status = os.fdopen(status, "rb", buffering=0)
        self.pid = int(self._status.readline())
        self.returncode: int | None = None

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
                [sys.executable, "-m", "tests.warm", str(other.fileno()), *modules],
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
    ) -> WarmProcess:
        """Start ``module:function``, a module or a file, in an environment and a folder; by default, this process's.

        ``descriptors`` says what is open under which number there; by default, this process's streams.
        """
        report, reported = os.pipe()
        places = descriptors or {0: 0, 1: 1, 2: 2}
        request = {
            "program": program,
            "arguments": arguments,
            "descriptors": list(places),
            "environment": dict(os.environ if environment is None else environment),
            "folder": str(folder or Path.cwd()),
        }
        raw = json.dumps(request).encode()
        with self._lock:
            socket.send_fds(self._socket, [len(raw).to_bytes(HEADER, "big")], [*places.values(), reported])
            self._socket.sendall(raw)
        os.close(reported)
        return WarmProcess(report)

    def run(
        self,
        program: str,
        *arguments: str,
        given: str = "",
        seconds: float = 600,
        passed: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Start a program as above and wait for its end; ``given`` is its input, ``passed`` what else is open.

        Raises:
            subprocess.TimeoutExpired: It took longer than ``seconds``; it is killed.
        """
        source, ends = os.memfd_create("input"), [os.pipe(), os.pipe()]
        os.write(source, given.encode())
        os.lseek(source, 0, os.SEEK_SET)
        places = {0: source, 1: ends[0][1], 2: ends[1][1]} | {number: number for number in passed}
        process = self.start(program, *arguments, descriptors=places, environment=environment, folder=folder)
        for descriptor in (source, ends[0][1], ends[1][1]):
            os.close(descriptor)
        killer = threading.Timer(seconds, process.kill)
        killer.start()
        try:
            out, error = _read_both(ends[0][0], ends[1][0])
            code = process.wait()
        finally:
            killer.cancel()
        if code == -signal.SIGKILL:
            raise subprocess.TimeoutExpired([program, *arguments], seconds, out, error)
        return subprocess.CompletedProcess([program, *arguments], code, out.decode(), error.decode())

    def _close(self) -> None:
        self._socket.close()
        self._process.wait()


@functools.cache
def warm(*modules: str) -> Warm:
    """The warm process of these modules, one for each process that runs tests."""
    return Warm(*modules)


def run_command(
    *words: str, environment: Mapping[str, str] | None = None, **how: Any
) -> subprocess.CompletedProcess[str]:
    """The command line as a process. ``environment`` and ``how``: as for :meth:`Warm.run`."""
    return warm(*COMMAND_MODULES).run(COMMAND, *words, environment=environment, **how)


def _read_both(*descriptors: int) -> list[bytes]:
    """Everything that comes out of two pipes until both are closed."""
    texts: list[bytes] = [b"", b""]

    def read(number: int) -> None:
        with os.fdopen(descriptors[number], "rb") as stream:
            texts[number] = stream.read()

    beside = threading.Thread(target=read, args=(1,))
    beside.start()
    read(0)
    beside.join()
    return texts


def serve(connection: socket.socket) -> None:
    """Fork a process for each request, until the other end is closed."""
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    while True:
        header, given, _, _ = socket.recv_fds(connection, HEADER, DESCRIPTORS_MOST)
        if not header:
            return
        request = connection.recv(int.from_bytes(header, "big"), socket.MSG_WAITALL)
        if os.fork() == 0:
            connection.close()
            _attend(json.loads(request), given)
        for descriptor in given:
            os.close(descriptor)


def _reap() -> None:
    """Take note of those that ended: their processor time counts as this process's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _attend(request: dict[str, Any], given: list[int]) -> NoReturn:
    """Start the program, and report its number and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _end_with_parent()
    *streams, reported = given
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


def _become(request: dict[str, Any], given: list[int]) -> NoReturn:
    """Run the program as if Python had started with it."""
    numbers = request["descriptors"]
    apart = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 1000) for descriptor in given]
    for descriptor in given:
        os.close(descriptor)
    for number, descriptor in zip(numbers, apart, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    random.seed()
    program, words = request["program"], request["arguments"]
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
        os._exit(code)


def load(*names: str) -> None:
    """Load modules."""
    for name in names:
        module = importlib.import_module(name.removesuffix(".*"))
        if name.endswith(".*"):
            for found in pkgutil.walk_packages(module.__path__, f"{module.__name__}."):
                importlib.import_module(found.name)


if __name__ == "__main__":
    load(*sys.argv[2:])
    gc.freeze()  # what was loaded stays in memory that all share
    serve(socket.socket(fileno=int(sys.argv[1])))
