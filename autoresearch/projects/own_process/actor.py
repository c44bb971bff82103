"""An actor: plays episodes with a policy that a learner improves, and sends every transition to the learner."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from autoresearch.errors import NoAnswer, ServiceRefused
from autoresearch.projects.own_process.episodes import guarded
from autoresearch.projects.own_process.learning import STORE
from autoresearch.projects.own_process.members import Members, use
from autoresearch.projects.own_process.messages import ActOrder, Done, Message, Played
from autoresearch.projects.own_process.recording import Recorder, Tally
from autoresearch.services import ClientKeys, KeyPair, QueuedDataStore, TrainerClient, TrainerConfig

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
                raise NoAnswer("the learner does not publish its policy", hint="is it autoresearch serve trainer?")
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
        tell(Done({}, [], 0.0, [".".join(key) for key in sorted(self._members.built)]))

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
