"""Whether less or more of a metric is better. Pure."""

from __future__ import annotations

MINIMIZE, MAXIMIZE = "minimize", "maximize"


def sign_of(direction: str | None) -> float:
    """The factor that makes smaller values better; 1 where the direction is not known."""
    return -1.0 if direction == MAXIMIZE else 1.0
