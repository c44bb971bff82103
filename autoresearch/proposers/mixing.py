"""Which of several proposers gets the next run: the one that brought most for its cost, with room to be wrong. Pure.

A cost-aware bandit: each has a share of the runs in proportion to its gain for a unit of cost, and never less than
:data:`LEAST_SHARE`. What is new is taken to be as good as the others until it has runs of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autoresearch.proposers.draws import Draws

LEAST_SHARE = 0.1
# Each is taken to have so many runs more, with the mean gain and the mean cost of all.
PRIOR_RUNS = 4.0
# What an hour of computing is worth, in the money that models cost.
MONEY_OF_HOUR = 1.0


@dataclass(frozen=True, slots=True)
class Brought:
    """What one proposer's runs brought. ``gain`` is the sum of their gains over their parents, in the metric's unit.

    ``seconds`` of computing and ``money`` are what they cost. Runs without a gain count with 0.
    """

    runs: int = 0
    better: int = 0
    gain: float = 0.0
    seconds: float = 0.0
    money: float = 0.0

    @property
    def cost(self) -> float:
        """Everything in money."""
        return self.seconds / 3600 * MONEY_OF_HOUR + self.money


def shares(brought: Mapping[str, Brought]) -> dict[str, float]:
    """The share of the next runs that each proposer gets; they sum to 1. Empty for none."""
    if not brought:
        return {}
    runs = sum(each.runs for each in brought.values())
    gain = sum(each.gain for each in brought.values())
    cost = sum(each.cost for each in brought.values())
    rates = dict.fromkeys(brought, 1.0)
    if runs and gain > 0 and cost > 0:
        more_gain, more_cost = PRIOR_RUNS * gain / runs, PRIOR_RUNS * cost / runs
        rates = {name: (each.gain + more_gain) / (each.cost + more_cost) for name, each in brought.items()}
    least = min(LEAST_SHARE, 1 / len(brought))
    free = 1 - least * len(brought)
    total = sum(rates.values())
    return {name: least + free * rate / total for name, rate in sorted(rates.items())}


def choose(brought: Mapping[str, Brought], draws: Draws) -> str:
    """One of the proposers, drawn by their shares. Raises ValueError for none."""
    if not brought:
        raise ValueError("there is no proposer to choose from")
    left = draws.uniform()
    found = ""
    for name, share in shares(brought).items():
        found = name
        left -= share
        if left < 0:
            break
    return found
