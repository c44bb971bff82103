"""Environments, policies and trainers on other machines, over ZeroMQ. Knows no log, and runs no code that comes.

``messages`` says what can be sent, ``links`` how it travels. The names here are loaded when they are asked for: a small
machine that only sends numbers needs neither numpy nor torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autoresearch.services.action import ActionClient, ActionConfig, ActionServer
    from autoresearch.services.buffers.episodes import (
        Episode,
        EpisodeWriter,
        ReplayBufferDataStore,
        TrajectoryBufferDataStore,
        make_datastore,
        make_default_trajectory_buffer,
        populate_datastore,
        read_episodes,
    )
    from autoresearch.services.buffers.replay import ReplayBuffer
    from autoresearch.services.buffers.rows import DataShape
    from autoresearch.services.buffers.samplers import FutureSampler, LatestSampler, Sampler, SequenceSampler
    from autoresearch.services.buffers.trajectories import TrajectoryBuffer
    from autoresearch.services.environments import (
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
    from autoresearch.services.stores import DataStoreBase, QueuedDataStore, SamplesPerInsert
    from autoresearch.services.trainer_client import TrainerClient, TrainerSMInterface
    from autoresearch.services.trainer_server import TrainerConfig, TrainerServer

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
]
_CHAPTERS = {
    "action": (
        "ActionClient",
        "ActionConfig",
        "ActionServer",
    ),
    "buffers.episodes": (
        "Episode",
        "EpisodeWriter",
        "ReplayBufferDataStore",
        "TrajectoryBufferDataStore",
        "make_datastore",
        "make_default_trajectory_buffer",
        "populate_datastore",
        "read_episodes",
    ),
    "buffers.replay": ("ReplayBuffer",),
    "buffers.rows": ("DataShape",),
    "buffers.samplers": (
        "FutureSampler",
        "LatestSampler",
        "Sampler",
        "SequenceSampler",
    ),
    "buffers.trajectories": ("TrajectoryBuffer",),
    "environments": (
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
    "stores": (
        "DataStoreBase",
        "QueuedDataStore",
        "SamplesPerInsert",
    ),
    "trainer_client": (
        "TrainerClient",
        "TrainerSMInterface",
    ),
    "trainer_server": (
        "TrainerConfig",
        "TrainerServer",
    ),
}


def __getattr__(name: str) -> object:
    """Load a name when it is asked for."""
    for chapter, names in _CHAPTERS.items():
        if name in names:
            value: object = getattr(import_module(f"{__name__}.{chapter}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
