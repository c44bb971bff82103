"""Which values of a metric anybody can have measured. Pure."""

from __future__ import annotations

# How far below the task's floor a measured value may lie: the floor is exact only on average.
FLOOR_TOLERANCE = 0.002
# No harness reports what is this large.
_BEYOND = 1e12


def possible_value(value: object, *, sign: float = 1.0, floor: float | None = None) -> float | None:
    """The value as a number, or None where nobody can have measured it: absurdly large, or past the task's floor.

    ``sign`` is that of the task's direction (:func:`autoresearch.direction.sign_of`).
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_BEYOND < value < _BEYOND:
        return None
    return float(value) if floor is None or sign * value >= sign * floor - FLOOR_TOLERANCE else None
