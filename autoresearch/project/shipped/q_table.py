"""A table of values: one for each action, by the observation that was seen.

Where an observation is a board for each action, hardly any is seen twice. There the value of an action is the mean over
the rows, the columns and the squares of 2 x 2 of its board, each with a table of its own: a network of n-tuples, as in
https://arxiv.org/abs/1604.05085.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from autoresearch.project.interfaces import Policy


class QTable(Policy):
    """Takes the action of the highest value, any of several; ``initial`` is the value of what was never tried."""

    def __init__(self, initial: float = 0.0) -> None:
        self.initial = initial
        self.actions = int(self.environment.action_space.n)
        self.table: dict[Hashable, list[float]] = {}
        space = self.environment.observation_space
        shape: tuple[int, ...] = getattr(space, "shape", None) or ()
        self.parts: Any = None
        if len(shape) == 3 and shape[0] == self.actions and hasattr(space, "n"):
            self.parts = parts_of(shape[1], shape[2])
            self.powers = int(space.n) ** np.arange(self.parts.shape[1])
            self.offsets = np.arange(len(self.parts)) * int(space.n) ** self.parts.shape[1]
            self.boards = np.full(len(self.parts) * int(space.n) ** self.parts.shape[1], initial)

    def values(self, observation: Any) -> list[float]:
        """The values of all actions for an observation."""
        if self.parts is not None:
            boards = np.reshape(observation, (self.actions, -1))
            values: list[float] = self.boards[boards[:, self.parts] @ self.powers + self.offsets].mean(1).tolist()
            return values
        key = observation if isinstance(observation, int) else tuple(np.ravel(observation).tolist())
        row = self.table.get(key)
        if row is None:
            row = self.table[key] = [self.initial] * self.actions
        return row

    def add(self, observation: Any, action: int, change: float) -> None:
        """Change the value of an action for an observation."""
        if self.parts is not None:
            self.boards[np.ravel(observation[action])[self.parts] @ self.powers + self.offsets] += change
        else:
            self.values(observation)[action] += change

    def decide(self, observation: Any) -> int:
        """The best known action; of several any, drawn by the seed of the run."""
        values = self.values(observation)
        best = max(values)
        ties = [action for action, value in enumerate(values) if value == best]
        return ties[0] if len(ties) == 1 else ties[int(self.rng.integers(len(ties)))]

    def state_dict(self) -> Mapping[str, object]:
        """What was learned."""
        if self.parts is not None:
            places = np.flatnonzero(self.boards != self.initial)
            return {"places": places, "values": self.boards[places]}
        seen = {key: values for key, values in self.table.items() if any(each != self.initial for each in values)}
        return {"observations": list(seen), "values": np.array(list(seen.values()))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from it."""
        if (self.parts is not None) != ("places" in state):
            raise ValueError("the table was learned in another environment")
        if self.parts is not None:
            self.boards[state["places"]] = state["values"]
            return
        values = state["values"].tolist()
        if values and len(values[0]) != self.actions:
            raise ValueError(f"the table has {len(values[0])} actions, the environment {self.actions}")
        self.table = dict(zip(state["observations"], values, strict=True))


def parts_of(rows: int, columns: int) -> Any:
    """The places of a board's parts: its rows, its columns, its squares; of a board with equal sides."""
    place = np.arange(rows * columns).reshape(rows, columns)
    squares = [place[r : r + 2, c : c + 2].ravel() for r in range(rows - 1) for c in range(columns - 1)]
    return np.array([*place, *place.T, *squares])
