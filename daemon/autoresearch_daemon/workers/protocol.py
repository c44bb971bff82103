"""What daemon and worker say to each other over their link (autoresearch.link): one tagged struct a message."""

from __future__ import annotations

import msgspec

from autoresearch.run.checking import VerificationPlan
from autoresearch.run.experiment import Plan
from autoresearch.run.sandbox.capture import RunProgress


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of all messages."""


class Ready(Message, frozen=True, kw_only=True):
    """Worker: I am up."""

    pid: int
    device: str


class Alive(Message, frozen=True, kw_only=True):
    """Worker: still here (sent every few seconds, whatever else happens)."""


class Stage(Message, frozen=True, kw_only=True):
    """Worker: what I do before the run starts; ``why`` is a word of ``autoresearch.words.Why``."""

    assignment: str
    why: str


class Proposal(Message, frozen=True, kw_only=True):
    """Worker: this is what I would run; may I? ``run`` as in Work; ``claim_seconds`` is how long it may take."""

    assignment: str
    run: str
    plan: Plan
    claim_seconds: int


class Progress(Message, frozen=True, kw_only=True):
    """Worker: how far the run is. ``lines``: the last that it printed, where they are new."""

    assignment: str
    fraction: float
    step: int
    loss: float | None
    lines: tuple[str, ...] = ()

    @classmethod
    def of(cls, assignment: str, progress: RunProgress) -> Progress:
        """What a run said of itself."""
        return cls(
            assignment=assignment,
            fraction=progress.fraction,
            step=progress.step,
            loss=progress.loss,
            lines=progress.lines,
        )


class Ended(Message, frozen=True, kw_only=True):
    """Worker: the outcome is in ``folder``, the run's own."""

    assignment: str
    folder: str


class Written(Message, frozen=True, kw_only=True):
    """Worker: the request is in ``folder``, for ``executor`` to carry out."""

    assignment: str
    folder: str
    executor: str


class Dropped(Message, frozen=True, kw_only=True):
    """Worker: I gave the assignment back before a run began."""

    assignment: str


class Failed(Message, frozen=True, kw_only=True):
    """Worker: the assignment could not be begun; the sentence says why.

    ``cannot_run_here``: because this machine lacks what the task needs.
    """

    assignment: str
    sentence: str
    cannot_run_here: bool = False


class AssignWork(Message, frozen=True, kw_only=True):
    """Daemon: do this. ``level`` is the sandbox level; ``plan`` is what somebody proposed, None: search.

    ``run`` is the name of its folder, another one for each attempt. ``executor`` carries it out (empty: this worker).

    ``recheck``: the baseline has to take its first step here again. ``author`` is this node's device key. ``proposer``
    is who is to make the change (empty: whom the settings name). ``counted``: a person asked for a number of runs, so
    each is by that proposer. ``goes_on``: another search follows this one.
    """

    assignment: str
    run: str
    task: str
    plan: Plan | None
    level: int
    author: bytes
    check: VerificationPlan | None = None
    recheck: bool = False
    proposer: str = ""
    counted: bool = False
    goes_on: bool = False
    executor: str = ""
    executor_device: str = "cpu"


class Approve(Message, frozen=True, kw_only=True):
    """Daemon: run what you proposed."""

    assignment: str


class Decline(Message, frozen=True, kw_only=True):
    """Daemon: propose something else."""

    assignment: str


class Cancel(Message, frozen=True, kw_only=True):
    """Daemon: stop this assignment at once."""

    assignment: str


class Quit(Message, frozen=True, kw_only=True):
    """Daemon: end, after the assignment in hand."""


FromWorker = Ready | Alive | Stage | Proposal | Progress | Ended | Written | Dropped | Failed
FromDaemon = AssignWork | Approve | Decline | Cancel | Quit
