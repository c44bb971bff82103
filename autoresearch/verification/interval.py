"""How sure the network's value is: the half width of its 95 % interval. Pure."""

from __future__ import annotations

from autoresearch.verification.statistics import PRIOR_PAIRS

# Student's t at 97.5 % for 1 to 15 degrees of freedom; more pairs than the last look are not counted.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
_NORMAL = 1.960


def margin(error: float | None, runs: int, *, noise: float) -> float | None:
    """Half of the 95 % confidence interval around a mean of so many runs with a standard error.

    ``noise``, the task's own figure, went into the error as further runs when it is above zero. None without an error.
    """
    freedom = runs - 1 + (PRIOR_PAIRS if noise > 0 else 0)
    if error is None or freedom < 1:
        return None
    return error * (_STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _NORMAL)
