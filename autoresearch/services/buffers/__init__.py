"""Buffers of experience: rows in, batches of arrays out, saved without pickle. Pure apart from the files."""

from __future__ import annotations

from autoresearch.services.buffers.data_stores import (
    ReplayBufferDataStore,
    TrajectoryBufferDataStore,
    make_default_trajectory_buffer,
)
from autoresearch.services.buffers.episodes import Episode, EpisodeWriter, read_episodes
from autoresearch.services.buffers.filling import make_datastore, populate_datastore
from autoresearch.services.buffers.replay import ReplayBuffer
from autoresearch.services.buffers.rows import DataShape
from autoresearch.services.buffers.samplers import FutureSampler, LatestSampler, Sampler, SequenceSampler
from autoresearch.services.buffers.trajectories import TrajectoryBuffer

__all__ = [
    "DataShape",
    "Episode",
    "EpisodeWriter",
    "FutureSampler",
    "LatestSampler",
    "ReplayBuffer",
    "ReplayBufferDataStore",
    "Sampler",
    "SequenceSampler",
    "TrajectoryBuffer",
    "TrajectoryBufferDataStore",
    "make_datastore",
    "make_default_trajectory_buffer",
    "populate_datastore",
    "read_episodes",
]
