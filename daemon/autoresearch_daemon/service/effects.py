"""What the node may have to do: the outputs of its state machine."""

from __future__ import annotations

from dataclasses import dataclass

from autoresearch.api import RunInHand
from autoresearch_daemon.service.inputs import Assignment


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
    folder of the task to find one on (empty: the configured one), None when none is wanted.
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
    | Decline
    | Cancel
    | CloseAbandoned
    | Verify
    | RecordWaiting
    | Save
    | Tell
)
