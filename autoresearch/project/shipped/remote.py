"""An environment that runs elsewhere: in another project, or on another machine."""

from __future__ import annotations

from typing import Any

from autoresearch.errors import UsageError
from autoresearch.project.interfaces import Environment
from autoresearch.services import GymEnvClient, client_keys, find_service


class Remote(Environment):
    """What ``autoresearch agent serve env`` serves: a ``service`` here by its name, or ``host`` and ``port``.

    A service on another machine has a key, which ``serve`` prints there: ``server_key``. ``patience`` is how many
    seconds a step is waited for. No random actions are taken to compare with: a step may move a machine.
    """

    random_episodes = 0

    def __init__(
        self, service: str = "", host: str = "localhost", port: int = 0, server_key: str = "", patience: float = 30.0
    ) -> None:
        if service:
            entry = find_service(service, wait_s=patience)
            (host, port), server_key = entry.place, entry.public_key
        if not port:
            raise UsageError("no service is named", hint="service = NAME below the component, or host and port")
        self.inner = GymEnvClient(host, port, 0.1, keys=client_keys(server_key), patience_s=patience)
        self.action_space = self.inner.action_space
        self.observation_space = self.inner.observation_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        if seed is not None:
            self.action_space.seed(seed)
        return self.inner.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action."""
        return self.inner.step(action)
