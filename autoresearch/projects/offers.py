"""What can be installed: a component's files or folder with its class, from wherever it was found."""

from __future__ import annotations

import msgspec


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A component that can be installed.

    ``files`` are copied into the project, by their relative path; a component of the person's own has none and stays
    in ``path``, relative to the project. ``class_name`` is file:Class. ``pins`` go into its section of ``agent.ini``:
    where it came from, which version. ``parameters`` too: they are arguments of its constructor.
    """

    type: str
    name: str
    class_name: str
    files: dict[str, bytes] = {}
    path: str = ""
    description: str = ""
    pins: dict[str, str] = {}
    parameters: dict[str, str] = {}
