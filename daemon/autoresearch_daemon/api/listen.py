"""Where the API listens: a Unix socket that is this user's alone and, when asked, a loopback port with a token."""

from __future__ import annotations

import os
import socket as sockets
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from autoresearch.errors import Locked, Refused, UsageError
from autoresearch_daemon.api.guard import TOKEN

LOOPBACK = "127.0.0.1"
# Answers in hand get this long when the daemon stops; event streams are ended at once.
SHUTDOWN_SECONDS = 2.0
# How long another daemon may take to accept before its socket counts as answering anyway: it exists, so don't touch it.
PROBE_SECONDS = 1.0
BACKLOG = 256


@asynccontextmanager
async def serve(app: web.Application, *, socket: Path, port: int, token: str | None) -> AsyncIterator[None]:
    """Listen for as long as the context lasts; on leaving, answers in hand go out and the socket file is removed.

    ``port`` 0 means no TCP; else requests over it need ``Authorization: Bearer <token>``.

    Raises:
        UsageError: a port without a token.
        Locked: another process answers on the socket.
        Refused: the folder or the file belongs to somebody else, or the port is taken.
    """
    if port and not token:
        raise UsageError("the API listens on a TCP port only with a token")
    app[TOKEN] = token or ""
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
        if port:
            await web.SockSite(runner, tcp_listener(port), backlog=BACKLOG).start()
        yield
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


def tcp_listener(port: int) -> sockets.socket:
    """A bound loopback socket.

    Raises:
        Refused: the port is taken or not allowed.
    """
    listener = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM)
    # Without it a restarted daemon would wait for the old connections' TIME_WAIT.
    listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise Refused(
            f"cannot listen on port {port}: {error.strerror}", hint="autoresearch config set api.port 0"
        ) from error
    return listener


def remove(path: Path, identity: os.stat_result) -> None:
    """Remove our socket file, but not one that another process has put in its place."""
    try:
        if os.path.samestat(path.lstat(), identity):
            path.unlink()
    except FileNotFoundError:
        pass
