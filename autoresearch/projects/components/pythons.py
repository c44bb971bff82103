"""Which Python runs a project, and which those of its components that run in processes of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autoresearch.running import Interpreter, seeing


@dataclass(frozen=True, slots=True)
class Pythons:
    """``main`` is the environment of the project's packages, None where the node's own Python has them.

    ``isolated`` has the environment of each component, by its key, that runs in a process of its own.
    """

    main: Interpreter | None = None
    isolated: Mapping[str, Interpreter] = field(default_factory=dict)

    @property
    def executables(self) -> dict[str, str]:
        """The programs of ``isolated``."""
        return {key: str(python.executable) for key, python in self.isolated.items()}

    @property
    def shown(self) -> Interpreter | None:
        """The main one, for a sandbox where it sees the others, too."""
        return seeing(self.main, list(self.isolated.values()))
