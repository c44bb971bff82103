"""The components of the project, in code: ``acr.environment["2048"]``, ``acr.policy.default``, ``acr.register(…)``.

In a project's own process ``import acr`` gives this module, elsewhere ``from autoresearch import acr``.
"""

from __future__ import annotations

from collections.abc import Callable

from autoresearch.project.child.members import ComponentGroup, current


def __getattr__(name: str) -> ComponentGroup:
    """The components of a type, as ``acr.environment`` or ``acr.policy``."""
    if name.startswith("_"):
        raise AttributeError(f"module 'acr' has no attribute {name!r}")
    return ComponentGroup(name)


def register(kind: str, name: str, make: Callable[[], object]) -> None:
    """Add a component of this process: ``acr.register("policy", "mine", Mine)``. A file names none of this."""
    current().register(kind, name, make)
