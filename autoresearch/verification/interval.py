"""95 % confidence intervals of a mean, by Student's t. Pure."""

from __future__ import annotations

from autoresearch.verification.statistics import PRIOR_PAIRS

# Student's t at 97.5 % for 1 to 30 degrees of freedom.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.960


def student(freedom: int) -> float:
    """Student's t at 97.5 %, two-sided 95 %, for at least one degree of freedom; beyond 30 that of the normal."""
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _NORMAL


def margin(error: float | None, runs: int, *, noise: float) -> float | None:
    """Half of the 95 % confidence interval of a mean of ``runs`` values with a standard error.

    Where the task states ``noise``, it is part of the error as further runs. None without an error.
    """
    freedom = runs - 1 + (PRIOR_PAIRS if noise > 0 else 0)
    if error is None or freedom < 1:
        return None
    return error * student(freedom)
