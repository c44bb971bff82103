"""What a node does, its peers, its voters, and what happens on it."""

from __future__ import annotations

from autoresearch.log.standing import answers
from autoresearch.services import Service

# Of less of a run nothing can be concluded about the rest.
LEAST_FRACTION = 0.02


class VoterView(answers.Answer, frozen=True, kw_only=True):
    """A participant whose verifications count. ``why`` is "founder", "admitted", "named by hand" or "attested".

    ``by`` is the founder that admitted it at ``since_ms``; ``token``: with the invite that has this token.
    """

    participant: answers.ParticipantView
    why: str
    by: answers.ParticipantView = answers.NOBODY
    since_ms: int = 0
    token: str = ""
    me: bool = False


class CandidateView(answers.Answer, frozen=True, kw_only=True):
    """A participant in the log that does not count. ``joined_ms``: when it joined with an invite that admits, 0: not.

    ``dismissed_ms`` is when a founder dismissed it, 0: never.
    """

    participant: answers.ParticipantView
    joined_ms: int = 0
    dismissed_ms: int = 0
    me: bool = False


class VotersAnswer(answers.Answer, frozen=True, kw_only=True):
    """The participants that count in a network, and others in its log. It takes ``least`` to confirm a run.

    ``note`` says how many more are needed, empty where they are enough. ``way`` is what this participant does or waits
    for so that it counts, empty when it does. ``named``: the network names its voters; else all are alike.
    """

    schema: str = "autoresearch.voters/1"
    network: str  # its id
    named: bool
    founder: bool
    voters: list[VoterView]
    least: int
    note: str = ""
    way: str = ""
    candidates: list[CandidateView] = []


class TaskStatus(answers.Answer, frozen=True, kw_only=True):
    """A task, and how far the network has come with it.

    ``best`` is the program to build upon, ``@``. ``baseline`` is the reported value of the task's own program.
    ``closed`` is the share of the way from the baseline to the floor, 0 to 1, by the verified value of the best or else
    its reported one. ``archived``: a person put it away on this machine. ``attacked`` says what attested participants
    found when they attacked it; empty: nothing yet. ``self_reported``: its programs print the number themselves.
    """

    name: str
    digest: str
    metric: str
    direction: str
    floor: float | None = None
    noise: float = 0.0  # the standard deviation of the value over seeds
    baseline: float | None = None
    best: answers.ProgramView | None = None
    closed: float | None = None
    runs: int = 0
    failed: int = 0
    archived: bool = False
    attacked: str = ""
    self_reported: bool = False


class RunInHand(answers.Answer, frozen=True, kw_only=True):
    """The run that a worker is doing now, or with ``kind`` "verification" the one of ``participant`` that it checks.

    Then ``checked`` is its id, ``stage`` and ``round`` say what is measured (see Measured), ``reason`` why it is here.
    ``headline`` tells what the search changed, in a line. ``task`` is the name of its task. ``left_ms`` is how long it
    goes on at its speed so far, null while nobody can say.
    """

    title: str
    headline: str = ""
    task: str = ""
    hypothesis: str = ""
    kind: str = ""
    parent: str | None = None
    replicate: int = 0
    fraction: float = 0.0
    step: int = 0
    loss: float | None = None
    started_ms: int = 0
    left_ms: int | None = None
    checked: str = ""
    stage: str = ""
    round: int = 0
    participant: answers.ParticipantView = answers.NOBODY
    reason: str = ""

    def elapsed_ms(self, now_ms: int) -> int:
        """How long it has been going on."""
        return max(0, now_ms - self.started_ms) if self.started_ms else 0

    def time_left_ms(self, now_ms: int) -> int | None:
        """How long it goes on if it goes on as fast as until now; None while that can't be said."""
        if self.fraction < LEAST_FRACTION or not self.started_ms:
            return None
        return round(self.elapsed_ms(now_ms) * (1 - min(self.fraction, 1.0)) / self.fraction)


class QueuedRun(answers.Answer, frozen=True, kw_only=True):
    """A program that somebody proposed here and that waits for a worker. ``task`` is a digest, ``reason`` why it waits.

    Its events carry ``name`` as their assignment. ``obstacle``: why it was tried in vain; it is tried again.
    """

    name: str
    title: str
    task: str
    proposed_ms: int
    hypothesis: str = ""
    parent: str | None = None
    replicate: int = 0
    reason: str = ""
    obstacle: str = ""
    source_digest: str = ""


class OrderView(answers.Answer, frozen=True, kw_only=True):
    """Work that a person ordered: on a task, by its name, for ``runs`` runs, ``for_ms`` milliseconds or without an end.

    ``goal``: it ends when the task's best is as good; ``patience``: when so many runs in a row were no new best, of
    which ``idle_runs`` were by now. ``runs_done`` since ``began_ms``, its first turn; ``ended_ms`` and ``end``: when
    and why it ended.

    ``runs_left`` are still to do; ``until_ms``: when it ends, as soon as it had its first turn. ``state`` is "working",
    "next" for what waits for a worker, "waiting" behind others, or "passed over"; ``reason`` says why. ``bound``: how
    long it waits at most.
    """

    number: int
    task: str
    state: str
    reason: str = ""
    bound: str = ""
    runs: int | None = None
    runs_left: int | None = None
    for_ms: int | None = None
    until_ms: int | None = None
    goal: float | None = None
    patience: int | None = None
    idle_runs: int = 0
    runs_done: int = 0
    began_ms: int | None = None
    ended_ms: int | None = None
    end: str = ""
    verify_share: float = 0.0
    proposer: str = ""
    executor: str = ""


class WorkerStatus(answers.Answer, frozen=True, kw_only=True):
    """One worker: a loop bound to one device.

    ``curve`` has pairs: milliseconds since its run began, and the loss then. ``lines`` are the last it printed.
    ``proposal`` is the name of what it does, where a person proposed it.
    """

    name: str
    device: str
    why: str
    reason: str
    run: RunInHand | None = None
    proposal: str = ""
    curve: list[list[float]] = []
    lines: list[str] = []


class CardStatus(answers.Answer, frozen=True, kw_only=True):
    """A graphics card: the share of the time that it computes, its memory, its power, its temperature."""

    name: str
    busy: float | None = None
    memory_bytes: int | None = None
    memory_total_bytes: int | None = None
    watts: float | None = None
    celsius: float | None = None


class OwnerStatus(answers.Answer, frozen=True, kw_only=True):
    """What the machine showed of its owner at the last look, as far as a setting asks for it.

    ``used_by`` is what showed the last use, at ``used_ms``. ``unknown`` says which source of use does not answer.
    """

    on_mains: bool | None = None
    celsius: float | None = None
    used_ms: int | None = None
    used_by: str = ""
    unknown: str = ""


class MachineStatus(answers.Answer, frozen=True, kw_only=True):
    """What the whole machine is busy with, by the kernel's counters over the last seconds: all programs on it.

    ``busy`` is the share of the processor's time. ``watts`` and ``joules``, since the daemon's start, are those of the
    processor; null where they can't be read. ``cards`` are looked at while runs go on.
    """

    processors: int
    busy: float
    memory_bytes: int
    memory_total_bytes: int
    watts: float | None = None
    joules: float | None = None
    cards: list[CardStatus] = []
    owner: OwnerStatus = OwnerStatus()


class NetworkStatus(answers.Answer, frozen=True, kw_only=True):
    """How the network stands, in a few numbers."""

    state: str
    reason: str = ""
    connected: int = 0
    bytes_today: int = 0
    exchanged_ms: int = 0  # when a peer and this node had the same records last, 0: never


class PeerView(answers.Answer, frozen=True, kw_only=True):
    """One peer: connected now, or known from before. Times are Unix milliseconds, 0 is never; bytes are those of today.

    ``agent``, ``devices``, ``other_network`` and ``clock_ahead_ms`` are what a connected peer says of itself.
    ``device_key`` is the proven key with which it signs records, empty where it did not tell. ``participant`` is the
    one for whom that key speaks; ``attested``: its verifications count. ``marks`` are what the log shows it to have
    done wrong. ``banned_until_ms`` is the end of its ban, if it was ever banned.
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
    participant: answers.ParticipantView = answers.NOBODY
    attested: bool = False
    marks: list[answers.MarkView] = []
    banned_until_ms: int | None = None


class PeersAnswer(answers.Answer, frozen=True, kw_only=True):
    """This node on the network, and its peers. ``addresses`` are what another node needs to reach this one."""

    schema: str = "autoresearch.peers/1"
    network: NetworkStatus
    peer: str = ""
    addresses: list[str] = []
    peers: list[PeerView] = []


class Check(answers.Answer, frozen=True, kw_only=True):
    """One thing that was looked at. ``result`` is "ok", "warning" or "failed"; ``fix`` says how to mend it.

    The checks of :func:`autoresearch.ask.health.examine` that are not ok are the node's conditions.
    """

    name: str
    result: str
    detail: str
    fix: str = ""

    @property
    def sentence(self) -> str:
        """What was found, and how to mend it."""
        return f"{self.detail} → {self.fix}" if self.fix else self.detail


class StorageStatus(answers.Answer, frozen=True, kw_only=True):
    """What the blobs take of the disk, and how much those of others may: storage.blobs_mib."""

    blobs_bytes: int
    quota_bytes: int


class WaitingStatus(answers.Answer, frozen=True, kw_only=True):
    """What this node measured of a run of ``participant`` and did not reveal yet. ``stage``, ``round``: see Measured.

    It reveals as soon as ``missing`` others have measured it too, or at ``tells_ms``. ``verdict``, ``value`` and
    ``values`` are the result, which is not in the log yet.
    """

    run: str
    title: str
    participant: answers.ParticipantView = answers.NOBODY
    stage: str
    round: int
    measured_ms: int
    missing: int
    tells_ms: int
    verdict: str = ""
    value: float | None = None
    values: list[float] = []


class VerifyingStatus(answers.Answer, frozen=True, kw_only=True):
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


class ProposerStatus(answers.Answer, frozen=True, kw_only=True):
    """Who invents changes: the search, a language model (``llm``) or a command.

    ``runs`` are this node's newest on the task, ``better`` those that beat their parent beyond the noise of one seed,
    by ``gain`` in all. ``cost`` is the money that they cost. ``state`` is ready, or waiting: ``reason`` says for what.
    """

    name: str
    model: str = ""
    state: str
    reason: str = ""
    runs: int = 0
    better: int = 0
    gain: float = 0.0
    cost: float = 0.0
    tokens_today: int = 0
    cost_today: float = 0.0
    failures_today: int = 0


class LimitView(answers.Answer, frozen=True, kw_only=True):
    """A limit that is in force on this node, in words, and the setting that gives it; ``number``: what that is now."""

    name: str
    value: str
    setting: str
    number: float | None = None


class StatusAnswer(answers.Judged, frozen=True, kw_only=True):
    """What the node does, and why.

    ``participant`` is the node's as others see it, ``attested`` whether its word counts: null where nobody's does.
    ``to_count`` is what to do or wait for so that it counts, empty when it does; ``voter`` is why it does.
    ``note`` says how many more participants it takes so that runs can be confirmed. ``past_orders`` are the last that
    began and ended, the newest last. ``contest_ends_ms``: when the network's contest ends; null without one.
    ``pages`` is the address of the local pages, empty where they are off. ``conditions`` is what ails the node.
    ``machine``: null in the first seconds.
    """

    schema: str = "autoresearch.status/2"
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
    network_id: str = ""
    contest_ends_ms: int | None = None
    participant: answers.ParticipantView = answers.NOBODY
    attested: bool | None = None
    to_count: str = ""
    voter: VoterView | None = None
    note: str = ""
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
    machine: MachineStatus | None = None
    orders: list[OrderView] = []
    past_orders: list[OrderView] = []
    queue: list[QueuedRun] = []
    proposers: list[ProposerStatus] = []
    conditions: list[Check] = []
    pages: str = ""
    limits: list[LimitView] = []


class Setting(answers.Answer, frozen=True, kw_only=True):
    """One setting. ``origin`` is "default", "file" or "environment". ``live``: a running node goes by it at once."""

    name: str
    value: bool | int | float | str
    origin: str
    description: str
    variable: str
    live: bool = False

    @property
    def text(self) -> str:
        """The value as a person types it."""
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)


class ConfigAnswer(answers.Answer, frozen=True, kw_only=True):
    """All settings, or the one asked for. ``note`` says from when on a changed one counts."""

    schema: str = "autoresearch.config/1"
    file: str
    settings: list[Setting]
    note: str = ""


class Health(answers.Answer, frozen=True, kw_only=True):
    """Alive, or ready, and why not. ``conditions`` is what ails the node, also while it is ready."""

    status: str
    reason: str = ""
    conditions: list[Check] = []


class JoinedAnswer(answers.Answer, frozen=True, kw_only=True):
    """The network that this node is in now, and what to know of it. ``restarts``: the daemon begins again in it."""

    schema: str = "autoresearch.joined/1"
    network: str
    network_id: str
    restarts: bool
    note: str


class NewTaskAnswer(answers.Answer, frozen=True, kw_only=True):
    """A folder that is a task now, or was one before, and what was found out of its program."""

    schema: str = "autoresearch.new-task/1"
    folder: str
    name: str
    metric: str
    direction: str
    note: str


class TrustAnswer(answers.Answer, frozen=True, kw_only=True):
    """Whom this node trusts now, as keys in hexadecimal. ``changed``: it trusted others before."""

    changed: bool
    attestors: list[str]
    needed: int
    participants: list[str]
    founders: list[str] = []


class HistoryAnswer(answers.Answer, frozen=True, kw_only=True):
    """How many of the notes are new; the others were published before."""

    added: int


class BroughtAnswer(answers.Answer, frozen=True, kw_only=True):
    """How many runs were published; ``left`` are still to come, after the ``most`` that were asked for.

    ``skipped`` were left out because their program is not on this machine, ``repeated`` because another participant has
    run it in this network.
    """

    brought: int
    skipped: int
    repeated: int
    left: int


class RunAccepted(answers.Answer, frozen=True, kw_only=True):
    """The run is queued; its events carry this name. ``note``: what a person should know of it."""

    schema: str = "autoresearch.run-accepted/1"
    assignment: str
    note: str = ""


class ProposedAnswer(answers.Answer, frozen=True, kw_only=True):
    """The queue after a program was proposed. ``proposed`` has the names of its runs there, one for each seed."""

    schema: str = "autoresearch.proposed/1"
    proposed: list[str]
    title: str
    parent: str | None = None
    queue: list[QueuedRun] = []


class QueueAnswer(answers.Answer, frozen=True, kw_only=True):
    """The programs that were proposed here and wait for a worker, the next first."""

    schema: str = "autoresearch.queue/1"
    queue: list[QueuedRun]


class Event(answers.Answer, frozen=True, kw_only=True):
    """Something that happened here.

    ``id`` grows by one; ``kind`` is one of run_started, check_started, progress, run_finished, run_failed, best,
    committed, verified, confirmed, demoted, verdict, evidence, trust, state, condition, worker, order_ended, record,
    records. Progress events have id 0, come at most once a second for each worker, and are not replayed. ``stale``
    says that the listener missed something.

    Of a run ``data`` has ``task``, ``title``, ``status``, ``reported``, ``parent``, ``gain_reported`` and ``id``
    when it ended (``record``: another node's), and of one in hand ``fraction``, ``elapsed_ms`` and ``left_ms``.
    """

    id: int
    kind: str
    time_ms: int
    text: str
    data: dict[str, object] = {}


class ServicesAnswer(answers.Answer, frozen=True, kw_only=True):
    """The services that run on this machine, by name, then those of this participant's other machines."""

    schema: str = "autoresearch.services/1"
    services: list[Service]
