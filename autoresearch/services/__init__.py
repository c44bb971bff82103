"""Environments, policies and trainers on other machines, over ZeroMQ. Knows no log, and runs no code that comes.

``messages`` says what can be sent, ``links`` how it travels. The names here are loaded when they are asked for: a small
machine that only sends numbers needs neither numpy nor torch. Modules have the names of agentlace's: a program that was
written for it changes its imports.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autoresearch.services.action import ActionClient as ActionClient
    from autoresearch.services.action import ActionConfig as ActionConfig
    from autoresearch.services.action import ActionServer as ActionServer
    from autoresearch.services.data.data_store import DataStoreBase as DataStoreBase
    from autoresearch.services.data.data_store import QueuedDataStore as QueuedDataStore
    from autoresearch.services.data.data_store import SamplesPerInsert as SamplesPerInsert
    from autoresearch.services.data.datasets import write_dataset as write_dataset
    from autoresearch.services.data.jaxrl_data_store import ReplayBufferDataStore as ReplayBufferDataStore
    from autoresearch.services.data.jaxrl_data_store import TrajectoryBufferDataStore as TrajectoryBufferDataStore
    from autoresearch.services.data.jaxrl_data_store import (
        make_default_trajectory_buffer as make_default_trajectory_buffer,
    )
    from autoresearch.services.data.replay_buffer import ReplayBuffer as ReplayBuffer
    from autoresearch.services.data.rows import DataShape as DataShape
    from autoresearch.services.data.sampler import FutureSampler as FutureSampler
    from autoresearch.services.data.sampler import LatestSampler as LatestSampler
    from autoresearch.services.data.sampler import Sampler as Sampler
    from autoresearch.services.data.sampler import SequenceSampler as SequenceSampler
    from autoresearch.services.data.tfds import Episode as Episode
    from autoresearch.services.data.tfds import EpisodeWriter as EpisodeWriter
    from autoresearch.services.data.tfds import make_datastore as make_datastore
    from autoresearch.services.data.tfds import populate_datastore as populate_datastore
    from autoresearch.services.data.tfds import read_episodes as read_episodes
    from autoresearch.services.data.trajectory_buffer import TrajectoryBuffer as TrajectoryBuffer
    from autoresearch.services.gym_env import GymEnvClient as GymEnvClient
    from autoresearch.services.gym_env import GymEnvClientWrapper as GymEnvClientWrapper
    from autoresearch.services.gym_env import GymEnvServer as GymEnvServer
    from autoresearch.services.gym_env import GymEnvServerWrapper as GymEnvServerWrapper
    from autoresearch.services.gym_env import GymVectorEnvClient as GymVectorEnvClient
    from autoresearch.services.inference import InferenceClient as InferenceClient
    from autoresearch.services.inference import InferenceServer as InferenceServer
    from autoresearch.services.links.sockets import ClientKeys as ClientKeys
    from autoresearch.services.links.sockets import KeyPair as KeyPair
    from autoresearch.services.links.sockets import ServerKeys as ServerKeys
    from autoresearch.services.presence import Announcement as Announcement
    from autoresearch.services.presence import Service as Service
    from autoresearch.services.presence import client_keys as client_keys
    from autoresearch.services.presence import find_service as find_service
    from autoresearch.services.presence import reserved as reserved
    from autoresearch.services.presence import running_services as running_services
    from autoresearch.services.trainer import TrainerClient as TrainerClient
    from autoresearch.services.trainer import TrainerConfig as TrainerConfig
    from autoresearch.services.trainer import TrainerServer as TrainerServer
    from autoresearch.services.trainer import TrainerSMInterface as TrainerSMInterface

_CHAPTERS = {
    "action": "ActionClient ActionConfig ActionServer",
    "data.jaxrl_data_store": "ReplayBufferDataStore TrajectoryBufferDataStore make_default_trajectory_buffer",
    "data.tfds": "Episode EpisodeWriter make_datastore populate_datastore read_episodes",
    "data.replay_buffer": "ReplayBuffer",
    "data.datasets": "write_dataset",
    "data.rows": "DataShape",
    "data.sampler": "FutureSampler LatestSampler Sampler SequenceSampler",
    "data.trajectory_buffer": "TrajectoryBuffer",
    "gym_env": "GymEnvClient GymEnvClientWrapper GymEnvServer GymEnvServerWrapper GymVectorEnvClient",
    "inference": "InferenceClient InferenceServer",
    "links.sockets": "ClientKeys KeyPair ServerKeys",
    "presence": "Announcement Service client_keys find_service reserved running_services",
    "data.data_store": "DataStoreBase QueuedDataStore SamplesPerInsert",
    "trainer": "TrainerClient TrainerConfig TrainerSMInterface TrainerServer",
}
__all__ = [name for names in _CHAPTERS.values() for name in names.split()]


def __getattr__(name: str) -> object:
    """Load a name, or a module, when it is asked for."""
    for chapter, names in _CHAPTERS.items():
        if name in names.split():
            value: object = getattr(import_module(f"{__name__}.{chapter}"), name)
            return value
    if name in {"action", "data", "gym_env", "inference", "trainer"}:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
