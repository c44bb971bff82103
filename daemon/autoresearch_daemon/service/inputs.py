"""What may happen to the node: the inputs of its state machine."""

from __future__ import annotations

from dataclasses import dataclass

from autoresearch.ask.node import RunInHand
from autoresearch.words import SEARCHING, Why, WorkKind
from autoresearch_daemon.service.agenda import Order


@dataclass(frozen=True, slots=True)
class Assignment:
    """One piece of work for one worker: a program that a person proposed, a verification, or a change of the search.

    With ``job``, the name of a verification that the node knows, a run is verified. ``run``: as people see it.
    ``shared``: a proposal is left to another node that runs it. ``order`` is the number of the order that it is for, 0
    where it is for none. ``again`` is the name of the assignment whose run was ended for other work, and is made now.
    """

    name: str
    task: str
    kind: WorkKind
    shared: bool = False
    job: str = ""
    run: RunInHand | None = None
    order: int = 0
    again: str = ""

    @property
    def is_proposal(self) -> bool:
        """Whether it runs a program that a person proposed."""
        return self.kind is WorkKind.PERSON and not self.job

    @property
    def is_search(self) -> bool:
        """Whether the worker invents what it runs."""
        return self.kind in SEARCHING

    @property
    def gives_way(self) -> bool:
        """Whether what another node runs already is not run here."""
        return self.is_search or self.shared


@dataclass(frozen=True, slots=True)
class WorkAsked:
    """A person orders work: behind the orders that end, or ``instead`` of all that there are."""

    order: Order
    instead: bool = False


@dataclass(frozen=True, slots=True)
class OrderCancelled:
    """A person does not want an order any more, nor its runs in hand."""

    number: int


@dataclass(frozen=True, slots=True)
class ShareChanged:
    """So many runs may go on at a time from now on, and with ``verify_share`` another share goes to verification."""

    workers: int
    verify_share: float | None = None


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """A person pauses the node, for ever or until a time."""

    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ResumeAsked:
    """A person ends a pause, or has the node go on at once after failures."""


@dataclass(frozen=True, slots=True)
class MachineChanged:
    """What this machine lacked may be there: packages that a person allowed, memory, a card."""


@dataclass(frozen=True, slots=True)
class FinishAsked:
    """A person wants the runs in hand to be the last."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The daemon is to end."""


@dataclass(frozen=True, slots=True)
class RunAsked:
    """A person wants a program of theirs to be run."""

    assignment: Assignment


@dataclass(frozen=True, slots=True)
class RunDropped:
    """A person does not want the run any more that waits under this name, or is in hand."""

    name: str


@dataclass(frozen=True, slots=True)
class JobReady:
    """The verification to do next, whose files are all here; ``None``: there is none now. ``task`` is its folder."""

    job: str | None
    run: RunInHand | None = None
    task: str = ""


@dataclass(frozen=True, slots=True)
class VerificationsChanged:
    """A verification was done here, others committed themselves or revealed, or others are trusted than before."""


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A worker process is up and has nothing to do."""

    worker: str
    device: str


@dataclass(frozen=True, slots=True)
class WorkerStage:
    """A worker says what it is doing before the run starts."""

    worker: str
    why: Why


@dataclass(frozen=True, slots=True)
class Proposed:
    """A worker wants to run this; ``key`` is (task digest, source digest, replicate).

    ``taken``: another node runs it now, or has. ``has_peers``: others hear of it, and may claim it at this moment.
    """

    worker: str
    assignment: str
    key: tuple[bytes, bytes, int]
    run: RunInHand
    taken: bool = False
    has_peers: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """What a worker had in hand goes on at another place, which has the name of the assignment; the worker is free."""

    worker: str


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A run that goes on at another place since before this daemon began; ``key`` as in Proposed.

    ``order`` is the number of the order that it is for; 0: it was proposed.
    """

    place: str
    run: RunInHand
    key: tuple[bytes, bytes, int]
    order: int


@dataclass(frozen=True, slots=True)
class Located:
    """Where a run is that goes on at another place: ``device`` has the engine's own name of it."""

    place: str
    device: str
    why: Why


@dataclass(frozen=True, slots=True)
class Settled:
    """The claim of what a worker proposed has been out for a while."""

    worker: str
    key: tuple[bytes, bytes, int]


@dataclass(frozen=True, slots=True)
class Outrun:
    """Another node claimed what is run here, and its claim wins."""

    key: tuple[bytes, bytes, int]


@dataclass(frozen=True, slots=True)
class Progressed:
    """The run in hand went on."""

    worker: str
    fraction: float
    step: int
    loss: float | None


@dataclass(frozen=True, slots=True)
class Finished:
    """The run in hand ended, its record is published; ``counted`` unless somebody stopped it.

    ``failed``: the record says that it came to nothing. ``is_best``: its program is the task's best now.
    ``reaches_goal``: that best is as good as its order wants it.
    """

    worker: str
    counted: bool = True
    failed: bool = False
    is_best: bool = False
    reaches_goal: bool = False


@dataclass(frozen=True, slots=True)
class Dropped:
    """The worker gave the assignment back before a run began."""

    worker: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The assignment could not even be begun; ``cannot_run_here``: because this machine lacks what it needs."""

    worker: str
    sentence: str
    cannot_run_here: bool = False


@dataclass(frozen=True, slots=True)
class Unworkable:
    """What a worker proposed can't be begun: its task is not the one that it was. The worker is told to drop it."""

    worker: str
    sentence: str


@dataclass(frozen=True, slots=True)
class WorkerLeaves:
    """A worker process was told to end after what it has in hand: it takes nothing more."""

    worker: str


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker process ended or hangs."""

    worker: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """Something outside forbids work (``sentence`` says what), or no longer does (``None``).

    ``stops``: the runs in hand on this machine are stopped too.
    """

    why: Why
    sentence: str | None
    stops: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """Time went on."""


Input = (
    WorkAsked
    | OrderCancelled
    | ShareChanged
    | PauseAsked
    | ResumeAsked
    | MachineChanged
    | FinishAsked
    | StopAsked
    | RunAsked
    | RunDropped
    | JobReady
    | VerificationsChanged
    | WorkerReady
    | WorkerStage
    | Proposed
    | Sent
    | TakenOver
    | Located
    | Settled
    | Outrun
    | Progressed
    | Finished
    | Dropped
    | Failed
    | Unworkable
    | WorkerLeaves
    | WorkerLost
    | Blocked
    | Tick
)
