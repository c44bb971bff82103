"""What daemon and worker say to each other over the ZeroMQ link: MessagePack, one tagged struct a message."""

from __future__ import annotations

from typing import Literal

import msgspec

from autoresearch.record.kinds import RunOutcome
from autoresearch.run.experiment import Plan


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
    """Worker: this is what I would run; may I? ``claim_seconds`` is how long it may take."""

    assignment: str
    plan: Plan
    claim_seconds: int


class Progress(Message, frozen=True, kw_only=True):
    """Worker: how far the run is."""

    assignment: str
    fraction: float
    step: int
    loss: float | None


class Result(Message, frozen=True, kw_only=True):
    """Worker: the run ended. ``folder`` holds the files ``log`` and, if there is one, ``checkpoint.safetensors``."""

    assignment: str
    outcome: RunOutcome
    folder: str
    checkpoint: str | None = None


class Verified(Message, frozen=True, kw_only=True):
    """Worker: what a check came to. ``verdict`` is "pass" when it could be measured, whatever the number says.

    ``cancelled``: the daemon stopped it before it came to anything.
    """

    assignment: str
    verdict: Literal["pass", "fail", "error"]
    value: float | None = None
    values: list[float] = []
    parent_values: list[float] = []
    baseline_values: list[float] = []
    metrics: dict[str, float] = {}
    reason: str = ""
    device: str = ""
    sandbox: int = 0
    duration_ms: int = 0
    cancelled: bool = False


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


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A run of somebody else to be measured.

    To ``evaluate`` it, the referee asks its checkpoint (a blob), on new text from ``seeds`` as well, beside its
    parent's where there is one; without a checkpoint the run is repeated. To ``replicate`` it, it is run beside its
    parent and the task's baseline with each of ``seeds``. ``state_only``: it claims what its learned state is worth,
    and no budget.
    """

    run: bytes
    task: bytes
    stage: str
    round: int
    proof: bytes
    seeds: list[int]
    source: str
    source_digest: bytes
    parent_source: str | None
    checkpoint: bytes | None
    parent_checkpoint: bytes | None
    replicate: int
    claim: float | None
    state_only: bool = False


class Work(Message, frozen=True, kw_only=True):
    """Daemon: do this. ``level`` is the sandbox level; ``plan`` is what somebody proposed, None: search.

    ``recheck``: the baseline has to take its first step here again. ``author`` is this node's device key. ``proposer``
    is who is to make the change (empty: whom the settings name). ``counted``: a person asked for a number of runs, so
    each is by that proposer. ``goes_on``: another search follows this one.
    """

    assignment: str
    task: str
    plan: Plan | None
    level: int
    author: bytes
    check: Check | None = None
    recheck: bool = False
    proposer: str = ""
    counted: bool = False
    goes_on: bool = False


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


FromWorker = Ready | Alive | Stage | Proposal | Progress | Result | Verified | Dropped | Failed
FromDaemon = Work | Approve | Decline | Cancel | Quit

encode = msgspec.msgpack.Encoder().encode
decode_from_worker = msgspec.msgpack.Decoder(FromWorker).decode
decode_from_daemon = msgspec.msgpack.Decoder(FromDaemon).decode
