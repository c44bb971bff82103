"""What can be installed: a component's files or folder with its class, from wherever it was found."""

from __future__ import annotations

from typing import Literal

import msgspec

from autoresearch.projects.model import AGENT
from autoresearch.tasks import Package

# Whose code it is: this participant's (or what ships), another's that a person trusts, another's.
Origin = Literal["own", "trusted", "foreign"]


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A component that can be installed.

    ``files`` are copied into the project, by their relative path; a component of the person's own has none and stays
    in ``path``, relative to the project. ``class_name`` is file:Class. ``pins`` go into its section of ``agent.ini``:
    where it came from, which version. ``parameters`` too: they are arguments of its constructor.
    What is ``foreign`` runs in the sandbox. ``requirements`` are the Python packages that it needs, as ``numpy>=2``;
    ``packages`` fit them and all else that the project asks for; where it is ``isolated``, them alone.
    """

    type: str
    name: str
    class_name: str
    files: dict[str, bytes] = {}
    path: str = ""
    description: str = ""
    pins: dict[str, str] = {}
    parameters: dict[str, str] = {}
    origin: Origin = "own"
    requirements: list[str] = []
    packages: list[Package] = []
    isolated: bool = False

    @property
    def key(self) -> str:
        """Type and name, as ``policy.q_table``; of an agent the type."""
        return self.type if self.type == AGENT else f"{self.type}.{self.name}"
