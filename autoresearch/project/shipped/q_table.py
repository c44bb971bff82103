"""A table of values: for each observation that was seen, one for each action."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from autoresearch.project.interfaces import Policy


class QTable(Policy):
    """Takes the action of the highest value; ``initial`` is the value of what was never tried."""

    def __init__(self, initial: float = 0.0) -> None:
        self.initial = initial
        self.actions = int(self.environment.action_space.n)
        self.table: dict[Hashable, list[float]] = {}

    def values(self, observation: Any) -> list[float]:
        """The values of all actions for an observation."""
        key = observation if isinstance(observation, int) else tuple(np.ravel(observation).tolist())
        found = self.table.get(key)
        if found is None:
            found = self.table[key] = [self.initial] * self.actions
        return found

    def decide(self, observation: Any) -> int:
        """The best known action; the first of several."""
        values = self.values(observation)
        return values.index(max(values))

    def state_dict(self) -> Mapping[str, object]:
        """What was learned."""
        seen = {key: values for key, values in self.table.items() if any(each != self.initial for each in values)}
        return {"observations": list(seen), "values": np.array(list(seen.values()))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from it."""
        values = state["values"].tolist()
        if values and len(values[0]) != self.actions:
            raise ValueError(f"the table has {len(values[0])} actions, the environment {self.actions}")
        self.table = dict(zip(state["observations"], values, strict=True))
