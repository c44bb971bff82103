"""Playing across processes: an environment as an action server, a trainer as a server, and actors.

The environment publishes every observation. An actor plays episodes with a policy that the learner improves, and sends
it every transition.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from autoresearch.errors import NoAnswer, ServiceRefused, UsageError
from autoresearch.project.child.child import guarded
from autoresearch.project.child.members import Members, use
from autoresearch.project.child.messages import ActOrder, Message, OrderDone, Played
from autoresearch.project.child.recording import Recorder, Tally
from autoresearch.services import ActionConfig, ActionServer
from autoresearch.services.data.data_store import DataStoreBase, QueuedDataStore
from autoresearch.services.links.sockets import ClientKeys, KeyPair, ServerKeys
from autoresearch.services.trainer import TrainerClient, TrainerConfig, TrainerServer

ACTIONS = ["reset", "step"]
OBSERVATIONS = ["observation", "reward", "terminated", "truncated"]


class Acting:
    """Raises Refused where the address is open to other machines without keys, or the port is taken."""

    def __init__(self, environment: Any, port: int, address: str, keys: ServerKeys | None) -> None:  # noqa: ANN401
        self._environment = environment
        self._last: dict[str, Any] = {}
        config = ActionConfig(port, ACTIONS, OBSERVATIONS, broadcast_port=0)
        self.server = ActionServer(config, self._observe, self._act, address=address, keys=keys)

    def _observe(self, keys: set[str]) -> dict[str, Any]:
        if not self._last:
            raise ServiceRefused("there is no observation yet", hint="act('reset') begins an episode")
        return {key: each for key, each in self._last.items() if key in keys}

    def _act(self, key: str, payload: Any) -> dict[str, Any]:  # noqa: ANN401
        if key == "reset":
            seed = payload.get("seed") if isinstance(payload, dict) else None
            observation, _ = self._environment.reset(**({} if seed is None else {"seed": seed}))
            reward, terminated, truncated = 0.0, False, False
        elif self._last:
            observation, reward, terminated, truncated, _ = self._environment.step(payload)
        else:
            raise ServiceRefused("no episode has begun", hint="act('reset') begins one")
        self._last = dict(zip(OBSERVATIONS, (observation, reward, terminated, truncated), strict=True))
        self.server.publish_obs(self._last)
        return self._last


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
                raise UsageError(f"a transition lacks {', '.join(missing)}", hint=f"it has {', '.join(_NEEDED)}")
        with self._lock:
            if self._waiting and len(self._waiting) + len(batch_data) > self.capacity:
                raise ServiceRefused("the learner is behind", hint="call update() later")
            self._waiting += batch_data
            self._came += len(batch_data)

    def take(self) -> list[Any]:
        """Those that wait, which wait no longer."""
        with self._lock:
            transitions, self._waiting = self._waiting, []
        return transitions


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


# Transitions are sent at the end of an episode, and after so many.
SEND_EVERY = 500
_TIMEOUT_MS = 10_000
_LOOK_SECONDS = 0.05


class Actor:
    """Builds the environment, the policy and the trainer of an order, and joins the learner.

    Raises:
        AutoresearchError: a component is missing, wrong, or raised an error; or no learner answers.
    """

    def __init__(self, order: ActOrder) -> None:
        self._order = order
        self._members = Members(order.project, seed=order.seed, isolated=order.isolated, made=self._made)
        use(self._members)
        random.seed(order.seed)
        np.random.seed(order.seed % 2**32)
        self._environment: Any = self._members.default("environment")
        self._policy: Any = self._members.default("policy")
        trainer = self._members.default("trainer")
        # Without a way to explore it does what the policy thinks best.
        explore = getattr(trainer, "explore", None)
        self._choose = (lambda seen: explore(self._policy, seen)) if explore else self._policy.decide
        self._weights: Any = None
        self._knows = threading.Event()  # it has had the learner's policy once
        self._store = QueuedDataStore(2 * SEND_EVERY)
        keys = None
        if order.server_key:
            own = KeyPair(secret=bytes.fromhex(order.secret), public=bytes.fromhex(order.public))
            keys = ClientKeys.of(own, order.server_key)
        self._client = TrainerClient(
            "actor",
            order.address,
            TrainerConfig(order.port, 0),
            data_stores={STORE: self._store},
            timeout_ms=_TIMEOUT_MS,
            keys=keys,
            errors="raise",
        )
        self._client.recv_network_callback(self._came)

    def act(self, tell: Callable[[Message], None], stop: threading.Event) -> None:
        """Play until told to stop, or all episodes are done. Raises AutoresearchError where a component did."""
        until = time.monotonic() + _TIMEOUT_MS / 1000
        while not self._knows.wait(_LOOK_SECONDS) and not stop.is_set():
            if time.monotonic() > until:
                raise NoAnswer(
                    "the learner does not publish its policy", hint="is it autoresearch agent serve trainer?"
                )
        played, seed = 0, {"seed": self._order.seed}
        while not stop.is_set() and not 0 < self._order.episodes <= played:
            weights, self._weights = self._weights, None
            if weights is not None:
                guarded("policy", partial(self._policy.load_state_dict, weights))
            reward, steps = guarded("environment", partial(self._episode, seed, stop))
            seed = {}
            if reward is not None:
                played += 1
                tell(Played(reward, steps))
        self._client.stop()
        tell(OrderDone({}, [], 0.0, [".".join(key) for key in sorted(self._members.built)]))

    def _episode(self, seed: dict[str, int], stop: threading.Event) -> tuple[float | None, int]:
        """Its reward, none where it was cut by ``stop``; and its steps."""
        observation, _ = self._environment.reset(**seed)
        total, steps, done = 0.0, 0, False
        while not done:
            action = self._choose(observation)
            following, reward, terminated, truncated, _ = self._environment.step(action)
            done = bool(terminated or truncated)
            row = {"observations": observation, "actions": action, "rewards": reward, "next_observations": following}
            self._store.insert(row | {"masks": float(not terminated), "end_of_trajectory": done})
            observation, total, steps = following, total + float(reward), steps + 1
            if (done or steps % SEND_EVERY == 0) and not self._sent(stop):
                return None, steps
        return total, steps

    def _sent(self, stop: threading.Event) -> bool:
        """Wait until the learner has the transitions; false where it is told to stop meanwhile."""
        while not stop.is_set():
            try:
                if self._client.update():
                    return True
            except ServiceRefused:  # the learner is behind
                stop.wait(_LOOK_SECONDS)
        return False

    def _came(self, weights: Any) -> None:  # noqa: ANN401
        self._weights = weights
        self._knows.set()

    def _made(self, kind: str, name: str, component: Any) -> Any:  # noqa: ANN401
        del name
        return Recorder(component, Tally()) if kind == "environment" else component
