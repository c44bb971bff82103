"""What the node may have to do, for its state machine and for its parts, and the values that this is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autoresearch.ask.node import RunInHand
from autoresearch.errors import Refused
from autoresearch.words import Why, WorkState
from autoresearch_daemon.owner.rules import NetworkRest
from autoresearch_daemon.service.agenda import Agenda, Order
from autoresearch_daemon.service.inputs import Assignment, Input


@dataclass(slots=True)
class WorkerState:
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
    overtaken: bool = False
    elsewhere: bool = False
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """Why a proposal or an order is passed over, and when it is tried again; ``wait_ms`` after it was tried last."""

    why: Why
    sentence: str
    wait_ms: int
    retry_ms: int


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

    ``agenda`` has the orders; ``front`` is the first that can be worked on, else what holds while there is none.
    ``workers`` are ordered by name. ``queue`` waits for a worker, the next first. ``held`` says why proposals, by name,
    and orders, by number, are passed over. ``blocks`` has what forbids all work, each with its sentence, the first that
    came first. ``job`` is the verification at hand, which no worker has yet; ``verification_wait_ms`` as in Agenda.
    """

    state: WorkState
    why: Why
    reason: str
    since_ms: int
    agenda: Agenda
    front: Order
    workers_wanted: int
    workers: tuple[WorkerNow, ...]
    queue: tuple[Assignment, ...]
    held: dict[str | int, Held]
    blocks: tuple[tuple[Why, str], ...]
    job: str | None
    verification_wait_ms: int | None

    @property
    def is_working(self) -> bool:
        """Whether a person ordered work that has not ended."""
        return bool(self.agenda.orders)

    @property
    def jobs(self) -> list[str]:
        """The verifications that are in hand or queued."""
        assignments = [worker.assignment for worker in self.workers if worker.assignment]
        return [assignment.job for assignment in (*assignments, *self.queue) if assignment.job]

    def order_of(self, assignment: Assignment) -> Order:
        """The order that an assignment is for; for a proposal or a verification what holds for them."""
        return self.agenda.find(assignment.order) or self.front

    def searched_for(self, worker: str) -> Order | None:
        """The order for which a worker searches."""
        numbers = (row.assignment.order for row in self.workers if row.name == worker and row.assignment)
        return self.agenda.find(next(numbers, 0))

    def goes_on(self, order: Order) -> bool:
        """Whether other searches of an order follow those in hand."""
        searching = [w.assignment for w in self.workers if w.assignment and w.assignment.order == order.number]
        return order in self.agenda.orders and (order.runs_left is None or order.runs_left > len(searching))

    def run_of(self, worker: str) -> RunInHand | None:
        """What a worker runs, as people see it."""
        return next((row.run for row in self.workers if row.name == worker), None)

    def is_running(self, key: tuple[bytes, bytes, int]) -> bool:
        """Whether a worker runs this: (task digest, source digest, replicate)."""
        return any(worker.key == key for worker in self.workers)

    def check_measuring(self) -> None:
        """Whether a worker would take up what a person asks to have measured. Raises Refused."""
        if self.agenda.paused:
            raise Refused("This node is paused, so it measures nothing.", hint="autoresearch node resume")
        if self.workers_wanted == 0:
            hint = "autoresearch node config set work.workers 1, then autoresearch down && autoresearch up"
            raise Refused("This node has no workers, so it measures nothing.", hint=hint)
        if self.blocks:
            raise Refused(f"This node measures nothing now: {self.blocks[0][1]}.", hint="autoresearch status")


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
class Overtake:
    """Have a worker stop the run of a search at once for what goes before it: ``reason`` says what, and what is lost.

    Its program is run later, by an assignment ``again``.
    """

    worker: str
    assignment: str
    reason: str


@dataclass(frozen=True, slots=True)
class CloseAbandoned:
    """Publish the run that a lost worker had in hand as abandoned."""

    assignment: str


@dataclass(frozen=True, slots=True)
class Verify:
    """Reveal what may be revealed, and have the next verification ready.

    ``ready`` is the one that is ready by now: it is to be put back when something else goes before it. ``tasks`` are
    the folders of the tasks worked on (empty: the configured one), None when none is to be made ready.
    """

    tasks: tuple[str, ...] | None
    ready: str | None


@dataclass(frozen=True, slots=True)
class RecordWaiting:
    """Try again to record what could not be recorded."""


@dataclass(frozen=True, slots=True)
class Save:
    """Keep what was asked across restarts."""


@dataclass(frozen=True, slots=True)
class Tell:
    """An event for people and pages; ``order`` is the number of the order that it is about."""

    kind: str
    text: str
    order: int = 0


@dataclass(frozen=True, slots=True)
class TellPeople:
    """An event for people and pages, with its fields."""

    kind: str
    text: str
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TrustChanged:
    """Others count than before: peers are given the manifest of now, and runs are judged again."""


@dataclass(frozen=True, slots=True)
class SeekAdmissions:
    """Records came that may admit somebody, or ask for it."""


@dataclass(frozen=True, slots=True)
class SeekLeaders:
    """Tell soon when the best that others confirmed changed, also if no verification came."""


@dataclass(frozen=True, slots=True)
class RestNetwork:
    """Have the network, and the blobs, rest or go on."""

    rest: NetworkRest


@dataclass(frozen=True, slots=True)
class GreetPerson:
    """Show a person who has just chosen this way of notices that it works."""

    way: str


Effect = (
    WantWorkers
    | Assign
    | Announce
    | Approve
    | WithdrawClaim
    | LeaveToOther
    | Decline
    | Cancel
    | Overtake
    | CloseAbandoned
    | Verify
    | RecordWaiting
    | Save
    | Tell
    | TellPeople
    | TrustChanged
    | SeekAdmissions
    | SeekLeaders
    | RestNetwork
    | GreetPerson
)
Happening = Input | Effect
