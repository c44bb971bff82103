"""What the daemon's API answers and the commands print with ``--json``: one set of models, each with a schema tag.

Only additions happen under one tag; a changed meaning is a new number. Ids are text (CIDv1), times are Unix
milliseconds.
"""

from __future__ import annotations

import msgspec

from autoresearch.views import NOBODY, LineageStep, MarkView, ProgramView, RunView, Who


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all answers."""


class RunInHand(Answer, frozen=True, kw_only=True):
    """The run that a worker is doing now, or with ``kind`` "verification" the one of ``who`` that it checks.

    Then ``checked`` is its id, ``stage`` and ``round`` say what is measured (see Measured), ``reason`` why it is here.
    """

    title: str
    hypothesis: str = ""
    kind: str = ""
    parent: str | None = None
    replicate: int = 0
    fraction: float = 0.0
    step: int = 0
    loss: float | None = None
    started_ms: int = 0
    checked: str = ""
    stage: str = ""
    round: int = 0
    who: Who = NOBODY
    reason: str = ""


class QueuedRun(Answer, frozen=True, kw_only=True):
    """A program that somebody proposed here and that waits for a worker. ``task`` is a digest, ``reason`` why it waits.

    Its events carry ``name`` as their assignment.
    """

    name: str
    title: str
    task: str
    proposed_ms: int
    hypothesis: str = ""
    parent: str | None = None
    replicate: int = 0
    reason: str = ""


class WorkerStatus(Answer, frozen=True, kw_only=True):
    """One worker: a loop bound to one device."""

    name: str
    device: str
    why: str
    reason: str
    run: RunInHand | None = None


class TaskStatus(Answer, frozen=True, kw_only=True):
    """The task this node works on, and how far the network has come with it."""

    name: str
    digest: str
    metric: str
    direction: str
    floor: float | None = None
    baseline: float | None = None
    best: ProgramView | None = None
    closed: float | None = None  # share of the way from the baseline to the floor, 0..1
    runs: int = 0
    failed: int = 0


class NetworkStatus(Answer, frozen=True, kw_only=True):
    """How the network stands, in a few numbers."""

    state: str
    reason: str = ""
    connected: int = 0
    bytes_today: int = 0
    exchanged_ms: int = 0  # when a peer and this node had the same records last, 0: never


class PeerView(Answer, frozen=True, kw_only=True):
    """One peer: connected now, or known from before. Times are Unix milliseconds, 0 is never; bytes are those of today.

    ``agent``, ``devices``, ``other_network`` and ``clock_ahead_ms`` are what a connected peer says of itself.
    ``device_key``, with which it signs records, is proven, by one that is offline when it was connected last; where it
    keeps that to itself nobody is known behind it.
    ``who`` is the participant for whom that key speaks, ``attested`` whether its word counts, ``marks`` what the log
    shows it to have done wrong, and ``banned_until_ms`` until when its word does not count, if it was ever banned.
    """

    peer: str
    address: str = ""
    connected: bool = False
    inbound: bool = False
    seen_ms: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    blocked: bool = False
    shut_out: str = ""  # why it is refused for a while, if it is
    agent: str = ""
    devices: list[str] = []
    other_network: bool = False
    clock_ahead_ms: int = 0
    exchanged_ms: int = 0  # when both had the same records last
    records_in: int = 0  # that the last exchange brought
    records_out: int = 0
    device_key: str = ""
    who: Who = NOBODY
    attested: bool = False
    marks: list[MarkView] = []
    banned_until_ms: int | None = None


class PeersAnswer(Answer, frozen=True, kw_only=True):
    """This node on the network, and its peers. ``addresses`` are what another node needs to reach this one."""

    schema: str = "autoresearch.peers/1"
    network: NetworkStatus
    peer: str = ""
    addresses: list[str] = []
    peers: list[PeerView] = []


class StorageStatus(Answer, frozen=True, kw_only=True):
    """What the blobs take of the disk, and how much those of others may: storage.blobs_mib."""

    blobs_bytes: int
    quota_bytes: int


class WaitingStatus(Answer, frozen=True, kw_only=True):
    """What this node measured of a run of ``who`` and did not tell yet: ``stage`` and ``round`` as in Measured.

    It tells as soon as ``missing`` others have measured it too, or at ``tells_ms``. ``verdict``, ``value`` and
    ``values`` are what came out, as far as the daemon says: they are not in the log yet.
    """

    run: str
    title: str
    who: Who = NOBODY
    stage: str
    round: int
    measured_ms: int
    missing: int
    tells_ms: int
    verdict: str = ""
    value: float | None = None
    values: list[float] = []


class VerifyingStatus(Answer, frozen=True, kw_only=True):
    """This device's part today (UTC): verifications, how long they took, their share of its computing time, runs.

    ``asked_share`` is the share of the time that it is asked to spend, 0 when it is not asked to work. ``waiting`` is
    what it measured and did not tell yet. ``note`` says why it checks nothing though it is asked to.
    """

    today: int
    spent_ms: int
    share: float
    runs_today: int
    asked_share: float = 0.0
    waiting: list[WaitingStatus] = []
    note: str = ""


class StatusAnswer(Answer, frozen=True, kw_only=True):
    """What the node does, and why.

    ``who`` is its participant as others see it, ``attested`` whether its word counts: null where nobody's does.
    ``to_count`` is what to do so that it counts, empty when it does.
    """

    schema: str = "autoresearch.status/1"
    running: bool = True
    state: str
    why: str
    reason: str
    since_ms: int | None = None
    until_ms: int | None = None
    runs_left: int | None = None
    version: str = ""
    pid: int | None = None
    started_ms: int | None = None
    network: str = ""
    participant: str = ""
    who: Who = NOBODY
    attested: bool | None = None
    to_count: str = ""
    device_key: str = ""
    sandbox: int | None = None
    sandbox_name: str = ""
    records: int = 0
    mine: int = 0
    task: TaskStatus | None = None
    net: NetworkStatus | None = None
    storage: StorageStatus | None = None
    verifying: VerifyingStatus | None = None
    workers: list[WorkerStatus] = []
    queue: list[QueuedRun] = []
    warnings: list[str] = []


class BestAnswer(Answer, frozen=True, kw_only=True):
    """The best confirmed program of a task, and beside it the best provisional and the best reported one.

    ``run`` is the one to build upon, ``@``: the first of these, but one's own before others' where nothing is checked.
    ``demoted`` was the best confirmed one before others came to another number.
    """

    schema: str = "autoresearch.best/1"
    task: TaskStatus
    confirmed: ProgramView | None = None
    provisional: ProgramView | None = None
    reported: ProgramView | None = None
    demoted: ProgramView | None = None
    run: RunView | None = None
    note: str = ""


class TopAnswer(Answer, frozen=True, kw_only=True):
    """The leaderboard of a task, section by section."""

    schema: str = "autoresearch.top/1"
    task: TaskStatus
    programs: list[ProgramView]
    note: str = ""


class TasksAnswer(Answer, frozen=True, kw_only=True):
    """All published tasks."""

    schema: str = "autoresearch.tasks/1"
    tasks: list[TaskStatus]


class RecordView(Answer, frozen=True, kw_only=True):
    """One record of any kind, in a line; of a run also how far others stand behind it. ``author`` is the device."""

    id: str
    kind: str
    author: str
    seq: int
    time_ms: int
    summary: str
    state: str = ""
    who: Who = NOBODY


class LogAnswer(Answer, frozen=True, kw_only=True):
    """Records, newest first."""

    schema: str = "autoresearch.log/1"
    records: list[RecordView]


class Measured(Answer, frozen=True, kw_only=True):
    """What one participant measured of a run.

    ``stage`` is "evaluate", its checkpoint or the run once more as it was, or "replicate", pairs with its parent and
    seeds of the verifier's own. ``values`` and ``parent_values`` are on new text where the task can write any.
    ``metrics`` has what the referee found of a checkpoint: ``challenges`` and how many were ``mismatches``, their
    ``mean_difference`` in nats, and the ``gap`` to new text in standard errors. ``counts`` unless its author is not
    attested, is the run's own author, or its proof does not hold. ``author`` is the key that signed, ``who`` the
    participant behind it, ``device`` the hardware. ``told`` is false of what this node measured and did
    not publish yet: ``id`` is then its commitment.
    """

    id: str
    author: str
    time_ms: int
    stage: str
    round: int
    verdict: str
    value: float | None
    values: list[float]
    parent_values: list[float]
    metrics: dict[str, float]
    counts: bool
    device: str
    who: Who = NOBODY
    told: bool = True


class StateChange(Answer, frozen=True, kw_only=True):
    """A run came into a state: by which record, and when."""

    state: str
    id: str
    time_ms: int


class VerificationStateView(Answer, frozen=True, kw_only=True):
    """How far others stand behind a run: the word and why, how many participants measured it, and what came out.

    ``value`` is the median of others' runs with seeds fixed by the protocol, on new text where the task can write
    any, with its standard error, half of its 95 % interval (``margin``) and their number. An evaluation that lies
    further than ``tolerance`` from the claim fails. ``changes`` are the states that it went through, the first first.
    ``retest``: the run that it builds on was refuted. ``copy_of`` is another participant's run that had its
    checkpoint or program before. ``marks`` are what its author did wrong, here or elsewhere. ``attested`` is false
    where the network names whose word counts and the author is not among them.
    """

    state: str
    reason: str
    voters: int
    value: float | None
    error: float | None
    runs: int
    tolerance: float
    measured: list[Measured]
    margin: float | None = None
    changes: list[StateChange] = []
    retest: bool = False
    marks: list[MarkView] = []
    attested: bool = True
    copy_of: str | None = None


class ShowAnswer(Answer, frozen=True, kw_only=True):
    """One record, whole. ``run`` and ``verification`` are there when it is a run; ``body`` has bytes as hex.

    ``withdrawn``: its author withdrew it at ``withdrawn_ms``, for a reason or none.
    """

    schema: str = "autoresearch.show/1"
    record: RecordView
    run: RunView | None = None
    verification: VerificationStateView | None = None
    body: dict[str, object] = {}
    links: list[str] = []
    forked: bool = False
    withdrawn: bool = False
    withdrawn_ms: int | None = None
    withdrawn_reason: str = ""


class DiffAnswer(Answer, frozen=True, kw_only=True):
    """The change from one run's source to another's: a unified diff and the constants that differ."""

    schema: str = "autoresearch.diff/1"
    old: str
    new: str
    old_value: float | None = None
    new_value: float | None = None
    change: dict[str, list[object]] = {}
    diff: str = ""


class LineageAnswer(Answer, frozen=True, kw_only=True):
    """The path from the baseline to a run."""

    schema: str = "autoresearch.lineage/1"
    task: TaskStatus | None = None
    steps: list[LineageStep]


class Health(Answer, frozen=True, kw_only=True):
    """Alive, or ready, and why not."""

    status: str
    reason: str = ""


class TrustAnswer(Answer, frozen=True, kw_only=True):
    """Whom this node trusts now, as keys in hexadecimal. ``changed``: it trusted others before."""

    changed: bool
    attestors: list[str]
    needed: int
    participants: list[str]


class RunAccepted(Answer, frozen=True, kw_only=True):
    """The run is queued; its events carry this name. ``note``: what a person should know of it."""

    schema: str = "autoresearch.run-accepted/1"
    assignment: str
    note: str = ""


class ProposedAnswer(Answer, frozen=True, kw_only=True):
    """The queue after a program was proposed. ``proposed`` has the names of its runs there, one for each seed."""

    schema: str = "autoresearch.proposed/1"
    proposed: list[str]
    title: str
    parent: str | None = None
    queue: list[QueuedRun] = []


class QueueAnswer(Answer, frozen=True, kw_only=True):
    """The programs that were proposed here and wait for a worker, the next first."""

    schema: str = "autoresearch.queue/1"
    queue: list[QueuedRun]


class Event(Answer, frozen=True, kw_only=True):
    """Something that happened here.

    ``id`` grows by one; ``kind`` is one of run_started, check_started, progress, run_finished, run_failed, best,
    committed, verified, confirmed, demoted, proof, trust, state, worker, record. Progress events have id 0 and are
    not replayed. ``stale`` says that the listener missed something.
    """

    id: int
    kind: str
    time_ms: int
    text: str
    data: dict[str, object] = {}


class Failure(Answer, frozen=True, kw_only=True):
    """An error: the sentence, what to do next, and the exit status that the command line would have."""

    error: str
    hint: str = ""
    exit_status: int = 1
