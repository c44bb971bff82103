"""What is taken of each drawn step of a trajectory: the step, a window around it, or a later step. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from autoresearch.errors import UsageError
from autoresearch.services.data.rows import Array


class Sampler:
    """Takes values of one column. ``source`` names the column, if it is not the name the sampler is registered under.

    Derive from it for another choice of steps. A trajectory's steps lie at ``index % len(column)`` of a column.
    """

    def __init__(self, source: str | None = None) -> None:
        self.source = source

    def sample(
        self,
        sampled_idx: Array,
        ep_begin: Array,
        ep_end: Array,
        key: np.random.Generator,
        dataset: Mapping[str, Array],
        source_name: str,
    ) -> tuple[Any, Any]:
        """Values for the drawn steps, and which of them are valid.

        ``ep_begin`` and ``ep_end`` bound the trajectory of each step; the end is not in it.
        """
        raise NotImplementedError

    def _access(
        self, idx: Array, ep_begin: Array, ep_end: Array, dataset: Mapping[str, Array], source_name: str
    ) -> tuple[Array, Array]:
        """The values at ``idx``. One outside its trajectory gets the nearest value inside, and is marked as invalid."""
        name = self.source or source_name
        if name not in dataset:
            raise UsageError(f"the buffer has no column {name}", hint=f"it has {', '.join(dataset)}")
        shape = (-1, *(1,) * (idx.ndim - 1))
        begin, end = ep_begin.reshape(shape), ep_end.reshape(shape)
        column = dataset[name]
        return column[np.clip(idx, begin, end - 1) % len(column)], (idx >= begin) & (idx < end)


class LatestSampler(Sampler):
    """The value at the drawn step."""

    def sample(
        self,
        sampled_idx: Array,
        ep_begin: Array,
        ep_end: Array,
        key: np.random.Generator,  # noqa: ARG002 - the interface
        dataset: Mapping[str, Array],
        source_name: str,
    ) -> tuple[Array, Array]:
        """Values of shape (batch, …)."""
        return self._access(sampled_idx, ep_begin, ep_end, dataset, source_name)


class SequenceSampler(Sampler):
    """The values from ``begin`` to before ``end`` steps after the drawn one; negative is earlier.

    ``squeeze`` leaves out the time dimension of a window of one step.
    """

    def __init__(
        self,
        squeeze: bool = False,  # noqa: FBT001, FBT002 - agentlace's position
        begin: int = 0,
        end: int = 1,
        source: str | None = None,
    ) -> None:
        """Raises UsageError for an empty window, or one of several steps to squeeze."""
        super().__init__(source)
        if end <= begin:
            raise UsageError(f"a window from {begin} to {end} is empty", hint="end must be greater than begin")
        if squeeze and end - begin != 1:
            raise UsageError(f"a window of {end - begin} steps can't be squeezed")
        self.squeeze, self.seq_begin, self.seq_end = squeeze, begin, end

    def sample(
        self,
        sampled_idx: Array,
        ep_begin: Array,
        ep_end: Array,
        key: np.random.Generator,  # noqa: ARG002 - the interface
        dataset: Mapping[str, Array],
        source_name: str,
    ) -> tuple[Array, Array]:
        """Values of shape (batch, time, …), or (batch, …) if squeezed."""
        if self.squeeze:
            indices = sampled_idx + self.seq_begin
        else:
            indices = sampled_idx[:, None] + np.arange(self.seq_begin, self.seq_end)
        return self._access(indices, ep_begin, ep_end, dataset, source_name)


class FutureSampler(Sampler):
    """The value at the drawn step or a random later one of its trajectory, as hindsight relabelling needs it.

    UNIFORM draws among the next ``max_future`` steps, or all that remain. EXPONENTIAL draws the distance with the mean
    ``lambda_`` steps; the last step stands for all beyond it.
    """

    class Distribution(IntEnum):
        """How far ahead."""

        UNIFORM = 0
        EXPONENTIAL = 1

    def __init__(
        self,
        distribution: Distribution = Distribution.UNIFORM,
        max_future: int | None = None,
        lambda_: float | None = None,
        source: str | None = None,
    ) -> None:
        """Raises UsageError for a ``max_future`` below 1, or where EXPONENTIAL lacks its mean."""
        super().__init__(source)
        if max_future is not None and max_future < 1:
            raise UsageError(f"max_future must be at least 1, not {max_future}")
        if distribution == self.Distribution.EXPONENTIAL and (lambda_ is None or not lambda_ > 0):
            raise UsageError("EXPONENTIAL needs lambda_, the mean distance in steps")
        self.distribution, self.max_future, self.lambda_ = self.Distribution(distribution), max_future, lambda_

    def sample(
        self,
        sampled_idx: Array,
        ep_begin: Array,
        ep_end: Array,
        key: np.random.Generator,
        dataset: Mapping[str, Array],
        source_name: str,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Values of shape (batch, …) under ``data``, and how many steps ahead each is under ``offset``."""
        if self.lambda_ is not None and self.distribution == self.Distribution.EXPONENTIAL:
            ahead = key.exponential(self.lambda_, sampled_idx.shape).astype(np.int64)
            chosen = np.minimum(sampled_idx + ahead, ep_end - 1)
        else:
            end = ep_end if self.max_future is None else np.minimum(ep_end, sampled_idx + self.max_future)
            chosen = key.integers(sampled_idx, end)
        data, valid = self._access(chosen, ep_begin, ep_end, dataset, source_name)
        return {"data": data, "offset": chosen - sampled_idx}, {"data": valid, "offset": valid}
