"""Services of this machine: components that answer other programs."""

from __future__ import annotations

from autoresearch.api.base import Answer


class ServiceView(Answer, frozen=True, kw_only=True):
    """A service: ``kind`` is "action", "trainer", "inference" or "env".

    ``requests`` are the questions that it has answered. ``public_key`` is the server's, in hexadecimal digits; empty
    where clients of this machine need no key.
    """

    name: str
    kind: str
    component: str
    project: str
    address: str
    port: int
    pid: int
    since_ms: int
    requests: int
    public_key: str


class ServicesAnswer(Answer, frozen=True, kw_only=True):
    """The services that run on this machine, by name."""

    schema: str = "autoresearch.services/1"
    services: list[ServiceView]
