"""What the benchmark ``services`` compares: the services here, agentlace where it can be imported, raw pyzmq.

Each peer offers the same calls, with its servers in a process of their own.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

MEGABYTE = 1 << 20
NAMES = ("ours", "raw", "agentlace")
KEYS = ("small", "down", "up", "echo")
WEIGHTS_MB = 10


class Asking(Protocol):
    """One client of a peer's servers."""

    def small(self) -> None:
        """A small observation."""

    def down(self) -> None:
        """A megabyte from the server."""

    def up(self, array: np.ndarray[Any, Any]) -> None:
        """A megabyte to the server."""

    def echo(self, array: np.ndarray[Any, Any]) -> None:
        """A megabyte there and back."""

    def update(self, rows: Sequence[Any]) -> None:
        """Rows into a store of the server; returns when they are there."""


class Publishing(Protocol):
    """A publisher of weights in this process."""

    port: int

    def publish(self, weights: dict[str, np.ndarray[Any, Any]]) -> None:
        """Send weights to every subscriber."""

    def stop(self) -> None:
        """End it."""


def peer(name: str) -> Any:  # noqa: ANN401 - a module of this package
    """The module of a peer: ``serve(ports)``, ``client(ports)``, ``publisher()``, ``subscribe(port, on_weights)``."""
    return importlib.import_module(f"benchmarks.service_peers.{name}_peer")


def importable() -> list[str]:
    """The peers that can run here."""
    there = all(importlib.util.find_spec(name) for name in ("agentlace", "lz4", "cv2"))
    return list(NAMES) if there else list(NAMES[:2])


def random_array(size: int = MEGABYTE) -> np.ndarray[Any, Any]:
    """Bytes that no compression makes smaller, as float32."""
    return np.frombuffer(np.random.default_rng(0).bytes(size), np.float32).copy()


def small_rows(count: int) -> list[dict[str, Any]]:
    """Rows as an actor of CartPole inserts them."""
    chance = np.random.default_rng(1)
    return [
        {
            "observations": chance.random(4, np.float32),
            "next_observations": chance.random(4, np.float32),
            "actions": chance.random(2, np.float32),
            "rewards": np.float32(1.0),
            "masks": 1.0,
            "dones": False,
        }
        for _ in range(count)
    ]
