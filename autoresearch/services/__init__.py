"""Environments, policies and trainers on other machines, over ZeroMQ. Knows no log, and runs no code that comes.

``messages`` says what can be sent, ``links`` how it travels. The names here are loaded when they are asked for: a small
machine that only sends numbers needs neither numpy nor torch. Modules have the names of agentlace's: a program that was
written for it changes its imports.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autoresearch.services.action import ActionClient, ActionConfig, ActionServer
    from autoresearch.services.data.data_store import DataStoreBase, QueuedDataStore, SamplesPerInsert
    from autoresearch.services.data.datasets import write_dataset
    from autoresearch.services.data.jaxrl_data_store import (
        ReplayBufferDataStore,
        TrajectoryBufferDataStore,
        make_default_trajectory_buffer,
    )
    from autoresearch.services.data.replay_buffer import ReplayBuffer
    from autoresearch.services.data.rows import DataShape
    from autoresearch.services.data.sampler import FutureSampler, LatestSampler, Sampler, SequenceSampler
    from autoresearch.services.data.tfds import (
        Episode,
        EpisodeWriter,
        make_datastore,
        populate_datastore,
        read_episodes,
    )
    from autoresearch.services.data.trajectory_buffer import TrajectoryBuffer
    from autoresearch.services.gym_env import (
        GymEnvClient,
        GymEnvClientWrapper,
        GymEnvServer,
        GymEnvServerWrapper,
        GymVectorEnvClient,
    )
    from autoresearch.services.inference import InferenceClient, InferenceServer
    from autoresearch.services.links.sockets import ClientKeys, KeyPair, ServerKeys
    from autoresearch.services.presence import (
        Announcement,
        Service,
        client_keys,
        find_service,
        reserved,
        running_services,
    )
    from autoresearch.services.trainer import TrainerClient, TrainerConfig, TrainerServer, TrainerSMInterface

__all__ = [
    "ActionClient",
    "ActionConfig",
    "ActionServer",
    "Announcement",
    "ClientKeys",
    "DataShape",
    "DataStoreBase",
    "Episode",
    "EpisodeWriter",
    "FutureSampler",
    "GymEnvClient",
    "GymEnvClientWrapper",
    "GymEnvServer",
    "GymEnvServerWrapper",
    "GymVectorEnvClient",
    "InferenceClient",
    "InferenceServer",
    "KeyPair",
    "LatestSampler",
    "QueuedDataStore",
    "ReplayBuffer",
    "ReplayBufferDataStore",
    "Sampler",
    "SamplesPerInsert",
    "SequenceSampler",
    "ServerKeys",
    "Service",
    "TrainerClient",
    "TrainerConfig",
    "TrainerSMInterface",
    "TrainerServer",
    "TrajectoryBuffer",
    "TrajectoryBufferDataStore",
    "client_keys",
    "find_service",
    "make_datastore",
    "make_default_trajectory_buffer",
    "populate_datastore",
    "read_episodes",
    "reserved",
    "running_services",
    "write_dataset",
]
_CHAPTERS = {
    "action": (
        "ActionClient",
        "ActionConfig",
        "ActionServer",
    ),
    "data.jaxrl_data_store": (
        "ReplayBufferDataStore",
        "TrajectoryBufferDataStore",
        "make_default_trajectory_buffer",
    ),
    "data.tfds": (
        "Episode",
        "EpisodeWriter",
        "make_datastore",
        "populate_datastore",
        "read_episodes",
    ),
    "data.replay_buffer": ("ReplayBuffer",),
    "data.datasets": ("write_dataset",),
    "data.rows": ("DataShape",),
    "data.sampler": (
        "FutureSampler",
        "LatestSampler",
        "Sampler",
        "SequenceSampler",
    ),
    "data.trajectory_buffer": ("TrajectoryBuffer",),
    "gym_env": (
        "GymEnvClient",
        "GymEnvClientWrapper",
        "GymEnvServer",
        "GymEnvServerWrapper",
        "GymVectorEnvClient",
    ),
    "inference": (
        "InferenceClient",
        "InferenceServer",
    ),
    "links.sockets": (
        "ClientKeys",
        "KeyPair",
        "ServerKeys",
    ),
    "presence": (
        "Announcement",
        "Service",
        "client_keys",
        "find_service",
        "reserved",
        "running_services",
    ),
    "data.data_store": (
        "DataStoreBase",
        "QueuedDataStore",
        "SamplesPerInsert",
    ),
    "trainer": (
        "TrainerClient",
        "TrainerConfig",
        "TrainerSMInterface",
        "TrainerServer",
    ),
}


def __getattr__(name: str) -> object:
    """Load a name, or a module, when it is asked for."""
    for chapter, names in _CHAPTERS.items():
        if name in names:
            value: object = getattr(import_module(f"{__name__}.{chapter}"), name)
            return value
    if name in {"action", "data", "gym_env", "inference", "trainer"}:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
