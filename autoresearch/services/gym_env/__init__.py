"""Environments of Gymnasium on other machines: a server around an environment, a client that is one.

A server works without Gymnasium, for environments of another kind. Clients import it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from autoresearch.services.gym_env.serving import GymEnvServer

if TYPE_CHECKING:
    from autoresearch.services.gym_env.clients import GymEnvClient, GymVectorEnvClient

GymEnvServerWrapper = GymEnvServer  # agentlace's name

__all__ = [
    "GymEnvClient",
    "GymEnvClientWrapper",
    "GymEnvServer",
    "GymEnvServerWrapper",
    "GymVectorEnvClient",
]
_CLIENTS = {
    "GymEnvClient": "GymEnvClient",
    "GymEnvClientWrapper": "GymEnvClient",
    "GymVectorEnvClient": "GymVectorEnvClient",
}


def __getattr__(name: str) -> object:
    """Load a client when it is asked for. Raises CannotRunHere without Gymnasium."""
    if name not in _CLIENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    client: object = getattr(import_module(f"{__name__}.clients"), _CLIENTS[name])
    return client
