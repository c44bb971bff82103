"""Who may ask: everyone who can open the Unix socket; over TCP only a holder of the token who means this host.

A page in a browser can reach loopback ports. Three things keep it out: the token, which no page knows; the ``Host``
header, which a name re-bound to 127.0.0.1 gets wrong (DNS rebinding); and the ``Origin`` header of foreign pages.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

from autoresearch.api import Failure
from autoresearch.errors import Refused
from autoresearch_daemon.api.failures import answer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
TOKEN = web.AppKey("token", str)
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost"})
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'",
    "Cache-Control": "no-store",
}


@web.middleware
async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse TCP requests without the token, or from elsewhere; requests over the Unix socket pass."""
    if not over_unix_socket(request):
        port = request.transport.get_extra_info("sockname")[1] if request.transport else 0
        sentence = objection(
            host=request.headers.get("Host", ""),
            origin=request.headers.get("Origin"),
            authorization=request.headers.get("Authorization", ""),
            token=request.app.get(TOKEN, ""),
            port=port,
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


def objection(*, host: str, origin: str | None, authorization: str, token: str, port: int) -> tuple[int, str] | None:
    """The HTTP status and the sentence that speak against a TCP request, or None."""
    if not is_loopback(f"http://{host}", port=port):
        return 403, "this API answers on 127.0.0.1 only: the Host header names another place"
    if origin is not None and not is_loopback(origin, port=port):
        return 403, "this API does not answer pages of other origins"
    scheme, _, given = authorization.partition(" ")
    # A header is bytes, and those that are no text arrive as lone surrogates.
    proof = given.encode("utf-8", "surrogateescape")
    # compare_digest takes as long for a wrong token as for one that is nearly right; an empty token admits nobody.
    if not (token and scheme.lower() == "bearer" and hmac.compare_digest(proof, token.encode())):
        return 401, "over TCP this API wants the header Authorization: Bearer with its token"
    return None


def is_loopback(origin: str, *, port: int) -> bool:
    """Whether an origin, written ``http://name:port``, is this listener."""
    try:
        parts = urlsplit(origin)
        return parts.scheme == "http" and parts.hostname in LOOPBACK_NAMES and (parts.port or 80) == port
    except ValueError:  # a port that is no number, a bracket that is not closed
        return False


def over_unix_socket(request: web.Request) -> bool:
    """Whether the request came over a Unix socket; a connection that is already gone counts as not."""
    connection = request.transport.get_extra_info("socket") if request.transport else None
    return connection is not None and connection.family == socket.AF_UNIX
