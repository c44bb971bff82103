"""Whether a client and its server were given the same configuration. Pure.

Ports are not compared: a forwarded port is another one, and the system may choose them.
"""

from __future__ import annotations

from collections.abc import Mapping

from autoresearch.errors import ServiceRefused
from autoresearch.sanitise import one_line


def check_same(own: Mapping[str, object], others: object) -> None:
    """Compare what must agree.

    Raises:
        ServiceRefused: the server has another configuration; the sentence says what differs.
    """
    if not isinstance(others, dict):
        raise ServiceRefused("this server is of another kind", hint="compare the port")
    for name, value in own.items():
        if (there := others.get(name)) != value:
            raise ServiceRefused(
                f"{name} is {one_line(repr(value), 100)} here and {one_line(repr(there), 100)} at the server",
                hint="give both sides the same config",
            )
