"""Acts of the node as methods beside the part that does the work. `autoresearch.ask.node_acts.Node` describes each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def act(method: Method) -> Method:
    """Mark a method as the act of its name."""
    method.__dict__["is_act"] = True
    return method


def acts_of(*groups: object) -> dict[str, Callable[..., Any]]:
    """The acts of groups, by name."""
    methods = [(group, name, method) for group in groups for name, method in vars(type(group)).items()]
    return {name: getattr(group, name) for group, name, method in methods if getattr(method, "is_act", False)}
