"""Where the API listens and who may ask: everyone who can open the Unix socket, which is this user's alone.

Over TCP whoever means this host, and has the token. Any web page can reach loopback ports. Three things keep it out:
the token, which no page knows; the ``Host`` header, which a name that is re-bound to 127.0.0.1 gets wrong (DNS
rebinding); and the ``Origin`` header of foreign pages. The node's own pages are read without the token. They change
nothing, and no other origin may read them (no CORS). Where they are served to other machines, nothing but pages is
answered over TCP.
"""

from __future__ import annotations

import hmac
import logging
import os
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from autoresearch.errors import Locked, Refused, UsageError
from autoresearch.log.standing.answers import Failure
from autoresearch_daemon.api.port import answer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost"})
# Routes with a name that begins so are pages: they are read without the token.
PAGE = "page."


@dataclass(frozen=True, slots=True)
class Rules:
    """What is asked of a request over TCP: the names that the host may have, the token, and whether pages are all."""

    names: frozenset[str] = LOOPBACK_NAMES
    token: str = ""
    pages_only: bool = False


RULES = web.AppKey("rules", Rules)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'",
    "Cache-Control": "no-store",
}


@web.middleware
async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse TCP requests from elsewhere, or without the token; requests over the Unix socket pass."""
    if not over_unix_socket(request):
        sentence = objection(
            host=request.headers.get("Host", ""),
            origin=request.headers.get("Origin"),
            authorization=request.headers.get("Authorization", ""),
            rules=request.app.get(RULES, Rules()),
            port=request.transport.get_extra_info("sockname")[1] if request.transport else 0,
            page=is_page(request),
        )
        if sentence:
            status, words = sentence
            refusal = answer(Failure(error=words, exit_status=Refused.exit_status), status=status)
            if status == 401:
                refusal.headers["WWW-Authenticate"] = "Bearer"
            return refusal
    return await handler(request)


async def protect(_: web.Request, response: web.StreamResponse) -> None:
    """Headers that keep a browser from running or keeping what others wrote; set on every response."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def is_page(request: web.Request) -> bool:
    """Whether a request only reads one of the node's pages."""
    return request.method in {"GET", "HEAD"} and (request.match_info.route.name or "").startswith(PAGE)


def may_control(request: web.Request) -> bool:
    """Whether whoever has the token can control the node from where the request came from."""
    return not request.app.get(RULES, Rules()).pages_only


def objection(
    *, host: str, origin: str | None, authorization: str, rules: Rules, port: int, page: bool = False
) -> tuple[int, str] | None:
    """The HTTP status and the sentence that speak against a TCP request, or None. A ``page`` needs no token."""
    if not names_us(f"http://{host}", rules.names, port=port):
        return 403, "the Host header names another place than this daemon (see the setting api.names)"
    if origin is not None and not names_us(origin, rules.names, port=port):
        return 403, "this API does not answer pages of other origins"
    if page:
        return None
    if rules.pages_only:
        return 403, "only pages are served here, to be read"
    if not _has_token(authorization, rules):
        return 401, "over TCP this API wants the header Authorization: Bearer with its token"
    return None


def _has_token(authorization: str, rules: Rules) -> bool:
    scheme, _, credentials = authorization.partition(" ")
    # A header is bytes, and those that are no text arrive as lone surrogates.
    proof = credentials.encode("utf-8", "surrogateescape")
    # compare_digest takes as long for a wrong token as for one that is nearly right; an empty token admits nobody.
    token = rules.token.encode()
    return bool(token) and scheme.lower() == "bearer" and hmac.compare_digest(proof, token)


def is_from_owner(request: web.Request) -> bool:
    """Whether a request shows that its sender may control the node: it has the token, or came over the Unix socket."""
    authorization = request.headers.get("Authorization", "")
    return over_unix_socket(request) or _has_token(authorization, request.app.get(RULES, Rules()))


def is_cross_site(request: web.Request) -> bool:
    """Whether a browser says that a page of another site asks; such a request may come without an ``Origin``."""
    return request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")


def names_us(origin: str, names: frozenset[str], *, port: int) -> bool:
    """Whether an origin, written ``http://name:port``, is this listener. Other names than loopback have any port.

    A mirror may stand behind a proxy with a port and a scheme of its own.
    """
    try:
        parts = urlsplit(origin)
        if parts.hostname in LOOPBACK_NAMES:
            return parts.scheme == "http" and (parts.port or 80) == port
        return parts.hostname in names
    except ValueError:  # a port that is no number, a bracket that is not closed
        return False


def over_unix_socket(request: web.Request) -> bool:
    """Whether the request came over a Unix socket; a connection that is already gone counts as not."""
    connection = request.transport.get_extra_info("socket") if request.transport else None
    return connection is not None and connection.family == socket.AF_UNIX


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


def _is_fault(record: logging.LogRecord) -> bool:
    """Whether a line of aiohttp is about a fault here; that somebody sent what is no HTTP is none."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


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
    log = logging.getLogger("api")
    log.addFilter(_is_fault)
    runner = web.AppRunner(
        app,
        logger=log,
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


def unix_listener(path: Path) -> tuple[socket.socket, os.stat_result]:
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
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
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
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
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


def tcp_listener(tcp: Tcp) -> socket.socket:
    """A bound socket.

    Raises:
        Refused: the port is taken or not allowed, or this machine has no such address.
    """
    for port in range(tcp.port, tcp.port + 1 if tcp.fixed else min(tcp.port + PORTS, 1 << 16)):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # Without it a restarted daemon would wait for the old connections' TIME_WAIT.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
        hint="autoresearch node config set api.port 0 turns the pages off",
    ) from refused


def remove(path: Path, identity: os.stat_result) -> None:
    """Remove our socket file, but not one that another process has put in its place."""
    try:
        if os.path.samestat(path.lstat(), identity):
            path.unlink()
    except FileNotFoundError:
        pass
