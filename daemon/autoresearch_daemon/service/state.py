"""What the node's state machine is made of. Values."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoresearch.api import RunInHand
from autoresearch.errors import Refused
from autoresearch.words import Why, WorkState
from autoresearch_daemon.service.inputs import Assignment, Order

# What keeps this node from a task, and not from verifying runs on others.
OF_THE_TASK = frozenset({Why.TASK_BROKEN, Why.CANNOT_RUN_HERE})


@dataclass(slots=True)
class Worker:
    """What the node knows of one worker."""

    device: str = ""
    ready: bool = False
    why: Why = Why.STARTING
    assignment: Assignment | None = None
    key: tuple[bytes, bytes, int] | None = None
    run: RunInHand | None = None
    announced: RunInHand | None = None
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


@dataclass(frozen=True, slots=True)
class WorkerNow:
    """One worker at a moment. ``key`` is what it runs: task digest, source digest, replicate."""

    name: str
    device: str
    why: Why
    run: RunInHand | None
    assignment: Assignment | None
    key: tuple[bytes, bytes, int] | None


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The state machine at a moment: all that the rest of the node sees of it.

    ``blocks`` has what forbids work, each with its sentence, the first that came first. ``workers`` are ordered by
    name. ``queue`` waits for a worker, the next first. ``job`` is the verification at hand, which no worker has yet.
    """

    state: WorkState
    why: Why
    reason: str
    since_ms: int
    asked: Asked
    workers_wanted: int
    workers: tuple[WorkerNow, ...]
    queue: tuple[Assignment, ...]
    blocks: tuple[tuple[Why, str], ...]
    job: str | None

    @property
    def jobs(self) -> list[str]:
        """The verifications that are in hand or queued."""
        given = [worker.assignment for worker in self.workers if worker.assignment]
        return [assignment.job for assignment in (*given, *self.queue) if assignment.job]

    def run_of(self, worker: str) -> RunInHand | None:
        """What a worker runs, as people see it."""
        return next((one.run for one in self.workers if one.name == worker), None)

    def is_running(self, key: tuple[bytes, bytes, int]) -> bool:
        """Whether a worker runs this: (task digest, source digest, replicate)."""
        return any(worker.key == key for worker in self.workers)

    def check_measuring(self) -> None:
        """Whether a worker would take up what a person asks to have measured. Raises Refused."""
        if self.asked.paused:
            raise Refused("This node is paused, so it measures nothing.", hint="autoresearch resume")
        if self.workers_wanted == 0:
            hint = "autoresearch config set work.workers 1, then autoresearch down && autoresearch up"
            raise Refused("This node has no workers, so it measures nothing.", hint=hint)
        # A task that could not be worked on is tried again when somebody asks for something by name.
        if found := [sentence for why, sentence in self.blocks if why not in OF_THE_TASK]:
            raise Refused(f"This node measures nothing now: {found[0]}.", hint="autoresearch status")
