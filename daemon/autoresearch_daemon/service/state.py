"""What the node's state machine is made of. Values."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoresearch.api import RunInHand
from autoresearch.words import Why
from autoresearch_daemon.service.inputs import Assignment, Order


@dataclass(slots=True)
class Worker:
    """What the node knows of one worker."""

    device: str = ""
    ready: bool = False
    why: Why = Why.STARTING
    assignment: Assignment | None = None
    key: tuple[bytes, bytes, int] | None = None
    run: RunInHand | None = None
    refused: int = 0
    yielded: bool = False
    leaving: bool = False
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What survives a restart: whether to work, on what, and whether paused."""

    working: bool = False
    order: Order = field(default_factory=Order)
    paused: bool = False
    paused_until_ms: int | None = None


@dataclass(slots=True)
class Spent:
    """What the workers' time went to since the start."""

    search: int = 0
    verification: int = 0
