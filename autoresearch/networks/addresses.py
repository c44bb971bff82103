"""The form of a node's address: a multiaddr over TCP, direct or through a relay, with its peer id at the end. Pure."""

from __future__ import annotations

import re
from ipaddress import ip_address

from autoresearch.errors import UsageError

ADDRESS_CHARACTERS_MAX = 256
PORT_MAX = 65_535
LISTEN_ADDRESS = re.compile(r"/(?P<kind>ip4|ip6)/(?P<host>[0-9A-Fa-f.:]+)/tcp/(?P<port>[0-9]{1,5})")
PEER = r"/p2p/[1-9A-HJ-NP-Za-km-z]{2,128}"
PEER_ADDRESS = re.compile(
    r"/(?P<kind>ip4|ip6|dns|dns4|dns6)/(?P<host>[0-9A-Za-z.:_-]+)/tcp/(?P<port>[0-9]{1,5})"
    rf"(?:{PEER}/p2p-circuit)?{PEER}"
)
ADDRESS_BEGINNINGS = ("/ip4/", "/ip6/", "/dns/", "/dns4/", "/dns6/")


def check_peer_address(text: str, name: str) -> None:
    """Refuse what is no multiaddr of a node. ``name`` begins the sentence. Raises UsageError."""
    _check(text, PEER_ADDRESS, name, "/ip4/203.0.113.7/tcp/4001/p2p/12D3…")


def check_listen_address(text: str, name: str) -> None:
    """Refuse what is no multiaddr to listen on. ``name`` begins the sentence. Raises UsageError."""
    _check(text, LISTEN_ADDRESS, name, "/ip4/0.0.0.0/tcp/4001")


def is_loopback(address: str) -> bool:
    """Whether only this machine can mean it."""
    return address.startswith(("/ip4/127.", "/ip6/::1/"))


def _check(text: str, form: re.Pattern[str], name: str, example: str) -> None:
    found = form.fullmatch(text)
    try:
        if found is None or int(found["port"]) > PORT_MAX or len(text) > ADDRESS_CHARACTERS_MAX:
            raise ValueError("it has another form")
        if found["kind"] in ("ip4", "ip6") and ip_address(found["host"]).version != int(found["kind"][2]):
            raise ValueError("its IP address is of the other version")
    except ValueError as error:
        raise UsageError(f"{name}: {text[:200]!r} is no address: {error}", hint=f"one looks like {example}") from error
