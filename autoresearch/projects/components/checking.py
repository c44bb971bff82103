"""Which methods of its interface a component has. Nothing is forbidden: an agent may use others."""

from __future__ import annotations

from autoresearch.projects import interfaces

# What the commands and the components that ship call.
METHODS: dict[str, tuple[str, ...]] = {
    "agent": ("train", "advance"),
    "environment": ("reset", "step", "action_space", "observation_space"),
    "policy": ("decide", "state_dict", "load_state_dict"),
    "trainer": ("train",),
    "dataset": ("add", "sample"),
}
_BASES: dict[str, type] = {
    "agent": interfaces.Agent,
    "environment": interfaces.Environment,
    "policy": interfaces.Policy,
    "trainer": interfaces.Trainer,
    "dataset": interfaces.Dataset,
}
# The base class has a whole one of these.
_WHOLE = frozenset(("state_dict", "load_state_dict"))


def missing_methods(kind: str, component: object) -> list[str]:
    """The names of the interface that a component lacks, or that only its base class has; none for an unknown type."""
    return [name for name in METHODS.get(kind, ()) if not _has(kind, component, name)]


def _has(kind: str, component: object, name: str) -> bool:
    if getattr(component, name, None) is None:
        return False
    if kind == "agent" or name in _WHOLE or name in vars(component):
        return True
    own = getattr(type(component), name, None)
    return own is None or own is not getattr(_BASES[kind], name, None)
