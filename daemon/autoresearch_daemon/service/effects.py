"""The outputs of the node's state machine, what the node may have to do, and the values that it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoresearch.ask.node import RunInHand
from autoresearch.errors import Refused
from autoresearch.words import TASK_REASONS, Why, WorkState
from autoresearch_daemon.service.inputs import Assignment, Order


@dataclass(slots=True)
class Worker:
    """What the node knows of one worker, or of one run that an executor carries out ``elsewhere``."""

    device: str = ""
    ready: bool = False
    why: Why = Why.STARTING
    assignment: Assignment | None = None
    key: tuple[bytes, bytes, int] | None = None
    run: RunInHand | None = None
    announced: RunInHand | None = None
    refused: int = 0
    yielded: bool = False
    left: bool = False
    leaving: bool = False
    elsewhere: bool = False
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

    @property
    def goes_on(self) -> bool:
        """Whether other searches follow those in hand."""
        left = self.asked.order.runs_left
        searching = sum(1 for worker in self.workers if worker.assignment and worker.assignment.is_search)
        return self.asked.working and (left is None or left > searching)

    def run_of(self, worker: str) -> RunInHand | None:
        """What a worker runs, as people see it."""
        return next((one.run for one in self.workers if one.name == worker), None)

    def is_running(self, key: tuple[bytes, bytes, int]) -> bool:
        """Whether a worker runs this: (task digest, source digest, replicate)."""
        return any(worker.key == key for worker in self.workers)

    def check_measuring(self) -> None:
        """Whether a worker would take up what a person asks to have measured. Raises Refused."""
        if self.asked.paused:
            raise Refused("This node is paused, so it measures nothing.", hint="autoresearch node resume")
        if self.workers_wanted == 0:
            hint = "autoresearch node config set work.workers 1, then autoresearch down && autoresearch up"
            raise Refused("This node has no workers, so it measures nothing.", hint=hint)
        # A task that could not be worked on is tried again when somebody asks for something by name.
        if sentences := [sentence for why, sentence in self.blocks if why not in TASK_REASONS]:
            raise Refused(f"This node measures nothing now: {sentences[0]}.", hint="autoresearch status")


@dataclass(frozen=True, slots=True)
class WantWorkers:
    """So many worker processes shall be there."""

    count: int


@dataclass(frozen=True, slots=True)
class Assign:
    """Give a worker something to do; ``run`` is a verification's, as people see it."""

    worker: str
    assignment: Assignment
    run: RunInHand | None = None


@dataclass(frozen=True, slots=True)
class Announce:
    """Publish the claim of what a worker proposed, and say ``Settled`` of its ``key`` after so long."""

    worker: str
    assignment: str
    key: tuple[bytes, bytes, int]
    settle_ms: int


@dataclass(frozen=True, slots=True)
class Approve:
    """Let a worker start what it proposed: the claim is published first, unless it was announced."""

    worker: str
    assignment: str


@dataclass(frozen=True, slots=True)
class WithdrawClaim:
    """What was announced is not begun here: withdraw its claim."""

    assignment: str


@dataclass(frozen=True, slots=True)
class LeaveToOther:
    """What was proposed here is done by another worker or, where its proposer is content with that, node: forget it."""

    assignment: str


@dataclass(frozen=True, slots=True)
class Decline:
    """Somebody does the same already: have the worker propose something else."""

    worker: str
    assignment: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Have a worker stop its assignment at once."""

    worker: str
    assignment: str


@dataclass(frozen=True, slots=True)
class CloseAbandoned:
    """Publish the run that a lost worker had in hand as abandoned."""

    assignment: str


@dataclass(frozen=True, slots=True)
class Verify:
    """Reveal what may be revealed, and have the next verification ready.

    ``ready`` is the one that is ready by now: it is to be put back when something else goes before it. ``task`` is the
    folder of the task whose runs go first (empty: the configured one), None when none is wanted.
    """

    task: str | None
    ready: str | None


@dataclass(frozen=True, slots=True)
class RecordWaiting:
    """Try again to record what could not be recorded."""


@dataclass(frozen=True, slots=True)
class Save:
    """Keep what was asked across restarts."""


@dataclass(frozen=True, slots=True)
class Tell:
    """An event for people and pages."""

    kind: str
    text: str


Effect = (
    WantWorkers
    | Assign
    | Announce
    | Approve
    | WithdrawClaim
    | LeaveToOther
    | Decline
    | Cancel
    | CloseAbandoned
    | Verify
    | RecordWaiting
    | Save
    | Tell
)
