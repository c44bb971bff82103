"""A trainer as a server: transitions of actors go into the project's dataset, the policy's state goes to the actors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from autoresearch.errors import ServiceRefused, UsageError
from autoresearch.projects.own_process.episodes import guarded
from autoresearch.services import DataStoreBase, ServerKeys, TrainerConfig, TrainerServer

# The name of the store that actors fill.
STORE = "transitions"
# As many transitions may wait for the learner; further ones are refused until it has taken them.
MOST_WAITING = 20_000
# A trainer's `learn` is called once for so many new transitions.
EVERY = 100
_NEEDED = ("observations", "actions", "rewards", "next_observations", "masks")


class Transitions(DataStoreBase):
    """Transitions on their way to the dataset. Safe for several threads."""

    def __init__(self) -> None:
        super().__init__(MOST_WAITING)
        self._waiting: list[Any] = []
        self._came = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def latest_data_id(self) -> int:
        """The number of the newest one that came, -1 for none."""
        return self._came - 1

    def get_latest_data(self, from_id: int) -> list[Any]:
        """Those that wait and are newer than number ``from_id``."""
        with self._lock:
            newer = max(0, min(len(self._waiting), self._came - 1 - from_id))
            return self._waiting[len(self._waiting) - newer :]

    def insert(self, data: Any) -> None:  # noqa: ANN401
        """Take a transition. Raises as ``batch_insert``."""
        self.batch_insert([data])

    def batch_insert(self, batch_data: Sequence[Any]) -> None:
        """Take transitions, all or none of them.

        Raises:
            UsageError: one is none.
            ServiceRefused: too many wait for the learner.
        """
        for row in batch_data:
            missing = [name for name in _NEEDED if name not in row] if isinstance(row, dict) else list(_NEEDED)
            if missing:
                raise UsageError(f"a transition lacks {', '.join(missing)}")
        with self._lock:
            if self._waiting and len(self._waiting) + len(batch_data) > self.capacity:
                raise ServiceRefused("the learner is behind", hint="call update() later")
            self._waiting += batch_data
            self._came += len(batch_data)

    def take(self) -> list[Any]:
        """Those that wait, which wait no longer."""
        with self._lock:
            found, self._waiting = self._waiting, []
        return found


class Learning:
    """Has the trainer learn when transitions have come, and publishes what the policy has learned.

    Raises:
        Refused: the address is open to other machines without keys, or the port is taken.
    """

    pause_s = 0.02

    def __init__(
        self,
        trainer: Any,  # noqa: ANN401
        policy: Any,  # noqa: ANN401
        dataset: Any,  # noqa: ANN401
        port: int,
        address: str,
        keys: ServerKeys | None,
    ) -> None:
        self._trainer, self._policy, self._dataset = trainer, policy, dataset
        self._store = Transitions()
        self._steps = self._episodes = self._trained = 0
        self.server = TrainerServer(TrainerConfig(port, 0), address=address, keys=keys)
        self.server.register_data_store(STORE, self._store)
        self._publish()

    def learn(self) -> None:
        """Learn from what came, if anything. Raises AutoresearchError where a component did."""
        rows = self._store.take()
        if not rows:
            return
        self._steps += len(rows)
        for row in rows:
            guarded("dataset", partial(self._add, row))
            self._episodes += bool(row.get("end_of_trajectory", not row["masks"]))
        learn = getattr(self._trainer, "learn", None)
        # One that can't learn from the dataset alone is asked once: it may play an episode itself.
        for _ in range(max(1, len(rows) // EVERY) if learn else 1):
            guarded("trainer", partial(learn or self._trainer.train, self._policy))
            self._trained += 1
        self._publish()

    def metrics(self) -> dict[str, int | float]:
        """What it has learned from: episodes and steps of actors, and how often it trained."""
        return {"episodes": self._episodes, "steps": self._steps, "updates": self._trained}

    def _add(self, row: dict[str, Any]) -> None:
        self._dataset.add(
            row["observations"], row["actions"], row["rewards"], row["next_observations"], done=not row["masks"]
        )

    def _publish(self) -> None:
        self.server.publish_network(guarded("policy", lambda: dict(self._policy.state_dict())))
