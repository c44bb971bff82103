"""Who may ask: everyone who can open the Unix socket; over TCP whoever means this host, and has the token.

Any web page can reach loopback ports. Three things keep it out: the token, which no page knows; the ``Host`` header,
which a name that is re-bound to 127.0.0.1 gets wrong (DNS rebinding); and the ``Origin`` header of foreign pages.
The node's own pages are read without the token. They change nothing, and no other origin may read them (no CORS).
Where they are served to other machines, nothing but pages is answered over TCP.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web

from autoresearch.api import Failure
from autoresearch.errors import Refused
from autoresearch_daemon.api.failures import answer

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
    scheme, _, given = authorization.partition(" ")
    # A header is bytes, and those that are no text arrive as lone surrogates.
    proof = given.encode("utf-8", "surrogateescape")
    # compare_digest takes as long for a wrong token as for one that is nearly right; an empty token admits nobody.
    token = rules.token.encode()
    if not (token and scheme.lower() == "bearer" and hmac.compare_digest(proof, token)):
        return 401, "over TCP this API wants the header Authorization: Bearer with its token"
    return None


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
