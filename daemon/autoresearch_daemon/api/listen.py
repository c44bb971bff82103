"""Where the API listens: a Unix socket that is this user's alone, and a TCP port for pages and holders of the token."""

from __future__ import annotations

import os
import socket as sockets
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from autoresearch.errors import Locked, Refused, UsageError
from autoresearch_daemon.api.guard import LOOPBACK_NAMES, RULES, Rules

LOOPBACK = "127.0.0.1"
# Answers in hand get this long when the daemon stops; event streams are ended at once.
SHUTDOWN_SECONDS = 2.0
# How long another daemon may take to accept before its socket counts as answering anyway: it exists, so don't touch it.
PROBE_SECONDS = 1.0
BACKLOG = 256
# Where no port was asked for, the next free one after the usual one is taken.
PORTS = 100


@dataclass(frozen=True, slots=True)
class Tcp:
    """The TCP port to listen on. ``fixed``: that one or none; else the next free one.

    ``names`` are further names under which the address is reached. To another address than loopback only pages are
    served, and anywhere with ``pages_only``.
    """

    port: int
    token: str
    address: str = LOOPBACK
    names: frozenset[str] = frozenset()
    fixed: bool = True
    pages_only: bool = False

    @property
    def rules(self) -> Rules:
        """What is asked of requests."""
        loopback = self.address == LOOPBACK
        return Rules(LOOPBACK_NAMES | self.names | {self.address}, self.token, self.pages_only or not loopback)


@asynccontextmanager
async def serve(app: web.Application, *, socket: Path, tcp: Tcp | None = None) -> AsyncIterator[str]:
    """Listen for as long as the context lasts; on leaving, answers in hand go out and the socket file is removed.

    Gives the address of the pages, empty without TCP.

    Raises:
        UsageError: a port without a token.
        Locked: another process answers on the socket.
        Refused: the folder or the file belongs to somebody else, or the port is taken.
    """
    if tcp and not tcp.token:
        raise UsageError("the API listens on a TCP port only with a token")
    app[RULES] = tcp.rules if tcp else Rules()
    runner = web.AppRunner(
        app,
        access_log=None,
        # A client that leaves ends its event stream; the other handlers have done their work before they wait.
        handler_cancellation=True,
        auto_decompress=False,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    listener = None
    try:
        listener, identity = unix_listener(socket)
        await web.SockSite(runner, listener, backlog=BACKLOG).start()
        address = ""
        if tcp:
            public = tcp_listener(tcp)
            await web.SockSite(runner, public, backlog=BACKLOG).start()
            address = f"http://{tcp.address}:{public.getsockname()[1]}/"
        yield address
    finally:
        await runner.cleanup()
        if listener is not None:
            remove(socket, identity)


def unix_listener(path: Path) -> tuple[sockets.socket, os.stat_result]:
    """A bound Unix socket and its file, mode 0600 in a folder of mode 0700; a dead process's file is replaced.

    Raises:
        Locked: another process answers on it.
        Refused: the folder or the file belongs to somebody else or is no socket.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = path.parent.lstat()
    # In a shared temporary folder somebody else may have made this folder first, to listen in our place.
    if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.geteuid():
        raise Refused(f"{path.parent} does not belong to this user", hint="remove it, or set AUTORESEARCH_HOME")
    path.parent.chmod(0o700)
    remove_stale(path)
    listener = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        return listener, path.stat()
    except OSError as error:
        listener.close()
        raise Refused(f"cannot listen on {path}: {error.strerror or error}") from error


def remove_stale(path: Path) -> None:
    """Remove a socket file on which nobody listens any more.

    Raises:
        Locked: somebody listens on it.
        Refused: it is no socket.
    """
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise Refused(f"{path} is in the way: it is not a socket", hint=f"move it away: {path}")
    except FileNotFoundError:
        return
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except OSError:
            # A full backlog or a timeout: a process holds it, however slow.
            pass
    raise Locked("another daemon answers here already", hint="autoresearch status")


def tcp_listener(tcp: Tcp) -> sockets.socket:
    """A bound socket.

    Raises:
        Refused: the port is taken or not allowed, or this machine has no such address.
    """
    for port in range(tcp.port, tcp.port + 1 if tcp.fixed else min(tcp.port + PORTS, 1 << 16)):
        listener = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM)
        # Without it a restarted daemon would wait for the old connections' TIME_WAIT.
        listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        try:
            listener.bind((tcp.address, port))
            listener.listen(BACKLOG)  # with this option two may bind one port, but only one listen on it
        except OSError as error:
            listener.close()
            refused = error
        else:
            return listener
    raise Refused(
        f"cannot listen on {tcp.address} port {tcp.port}: {refused.strerror or refused}",
        hint="autoresearch config set api.port 0 turns the pages off",
    ) from refused


def remove(path: Path, identity: os.stat_result) -> None:
    """Remove our socket file, but not one that another process has put in its place."""
    try:
        if os.path.samestat(path.lstat(), identity):
            path.unlink()
    except FileNotFoundError:
        pass
