"""The command line as processes that begin where another has loaded the modules: half a second less for each.

Each command is a process of its own, with its own streams, environment and exit status. What depends on how Python
itself starts (``PYTHONIOENCODING``, which modules a command loads) is tested with a Python that is started for it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
from typing import NoReturn

HEADER = 8


class WarmCommands:
    """A process with the modules of all commands, which becomes a command by a fork."""

    def __init__(self) -> None:
        """Start it. It ends with :meth:`close`, or when this process ends."""
        self._socket, other = socket.socketpair()
        self._lock = threading.Lock()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm", str(other.fileno())], env=environment, pass_fds=[other.fileno()]
            )

    def run(self, words: tuple[str, ...], *, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command in this process's folder and environment.

        Raises:
            subprocess.TimeoutExpired: It took longer than ``seconds``; it is killed.
        """
        report, reported = os.pipe()
        ends = [os.pipe(), os.pipe()]
        request = json.dumps({"words": words, "environment": dict(os.environ), "folder": os.getcwd()}).encode()  # noqa: PTH109
        with self._lock, open(os.devnull, "rb") as nothing:  # noqa: PTH123
            given = [nothing.fileno(), ends[0][1], ends[1][1], reported]
            socket.send_fds(self._socket, [len(request).to_bytes(HEADER, "big")], given)
            self._socket.sendall(request)
        for descriptor in given[1:]:
            os.close(descriptor)
        with os.fdopen(report, "rb") as status:
            pid = int(status.readline())
            killer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
            killer.start()
            try:
                out, error = _read_both(ends[0][0], ends[1][0])
                code = int(status.readline())
            finally:
                killer.cancel()
        if code == -signal.SIGKILL:
            raise subprocess.TimeoutExpired(words, seconds, out, error)
        return subprocess.CompletedProcess(words, code, out.decode(), error.decode())

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait()


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
    """Fork a command for each request, until the other end is closed."""
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    while True:
        header, given, _, _ = socket.recv_fds(connection, HEADER, 4)
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


def _attend(request: dict[str, object], given: list[int]) -> NoReturn:
    """Start the command, and report its number and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, reported = given
    if (pid := os.fork()) == 0:
        os.close(reported)
        _become(request, streams)
    for descriptor in streams:
        os.close(descriptor)
    os.write(reported, b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    os.write(reported, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(request: dict[str, object], streams: list[int]) -> NoReturn:
    """Run the command as if Python had started with it."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    os.chdir(str(request["folder"]))
    sys.argv = ["autoresearch", *request["words"]]  # type: ignore[misc]
    code = 1
    try:
        importlib.import_module("autoresearch_cli.main").main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def load() -> None:
    """Load the modules of all commands."""
    for name in ("autoresearch_cli.commands", "autoresearch_cli.acts", "autoresearch_cli.agent"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)


if __name__ == "__main__":
    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
