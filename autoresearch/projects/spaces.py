"""The space of a few numbers, for environments that do without Gymnasium; spaces that are passed to other processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from autoresearch import spaces
from autoresearch.errors import UsageError

_NUMBERS = "numbers"


class Discrete(msgspec.Struct, frozen=True):
    """The whole numbers from 0 to ``n`` - 1."""

    n: int

    @property
    def shape(self) -> tuple[int, ...]:
        """One number has no dimensions."""
        return ()

    def contains(self, value: int) -> bool:
        """Whether a number is one of them."""
        return 0 <= int(value) < self.n


def described(value: object) -> dict[str, Any] | None:
    """A space as plain values and arrays; None for what is none, and for kinds that can't be described."""
    if isinstance(value, Discrete):
        return {"kind": _NUMBERS, "n": value.n}
    if type(value).__module__.partition(".")[0] != "gymnasium":
        return None
    try:
        return spaces.described(value)
    except UsageError:
        return None


def space_of(description: object) -> Any:  # noqa: ANN401 - Gymnasium's, or ours
    """The space of a description, or None. Raises BadMessage where it describes none."""
    if description is None:
        return None
    if isinstance(description, Mapping) and description.get("kind") == _NUMBERS:
        return Discrete(int(description["n"]))
    return spaces.made(description)
