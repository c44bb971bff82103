"""Records of any kind, and how far others stand behind a run."""

from __future__ import annotations

import msgspec

from autoresearch.ask.discussion import NoteView
from autoresearch.ask.registry.components import ComponentView, ReleaseView
from autoresearch.ask.runs.answers import ChangeView, RunRow
from autoresearch.log.standing.answers import NOBODY, Answer, Judged, MarkView, ParticipantView, ProgramView, RunView
from autoresearch.words import Verdict


class RecordView(Answer, frozen=True, kw_only=True):
    """One record of any kind, in a line; of a run also how far others stand behind it. ``author`` is the device.

    ``starred``: a person starred it on this machine, which no other node knows.
    """

    id: str
    kind: str
    author: str
    seq: int
    time_ms: int
    summary: str
    state: str = ""
    participant: ParticipantView = NOBODY
    starred: bool = False


class HiddenView(Answer, frozen=True, kw_only=True):
    """A thing that is hidden on this machine, or stands in a list of such things.

    ``what`` is participant, task, words, the kind of a record, or unknown: no record here says what it is. ``thing`` is
    its key, digest, id, or the words; ``name`` says it in a line. ``records``: so many records that are here are hidden
    by it. ``origin`` is the participant whose list it was taken from, null where a person chose it here.
    """

    what: str
    thing: str
    name: str = ""
    reason: str = ""
    time_ms: int = 0
    records: int = 0
    origin: ParticipantView | None = None


class HiddenAnswer(Answer, frozen=True, kw_only=True):
    """What is hidden on this machine, the newest first: ``total`` things, which hide ``records`` records."""

    schema: str = "autoresearch.hidden/1"
    hidden: list[HiddenView]
    total: int
    records: int


class HiddenListAnswer(Answer, frozen=True, kw_only=True):
    """The newest list of what a participant hides: its ``note``, what it says, ``total`` things and the first of them.

    ``left_out`` are things in it that hide nothing here: this participant itself, or what nobody can hide.
    """

    schema: str = "autoresearch.hidden-list/1"
    participant: ParticipantView
    note: str
    time_ms: int
    text: str = ""
    hidden: list[HiddenView]
    total: int
    left_out: int = 0


class HideAnswer(Answer, frozen=True, kw_only=True):
    """What is hidden now, or with ``undo`` no longer. ``changed`` things were not so before.

    ``records``: so many more of those that are here are hidden now, or no longer. ``things`` are the first of them.
    """

    schema: str = "autoresearch.hide/1"
    things: list[HiddenView]
    undo: bool = False
    changed: int
    records: int


class SharedHiddenAnswer(Answer, frozen=True, kw_only=True):
    """What this participant hides was published: the ``note``, and so many ``things``. ``left_out`` are too many."""

    schema: str = "autoresearch.shared-hidden/1"
    note: str
    things: int
    left_out: int = 0


class LogAnswer(Answer, frozen=True, kw_only=True):
    """Records, newest first. ``hidden``: so many records of that kind and time are hidden here."""

    schema: str = "autoresearch.log/1"
    records: list[RecordView]
    hidden: int = 0


class CommandView(Answer, frozen=True, kw_only=True):
    """A command of the command line, by the words after ``autoresearch``, and what it does."""

    command: str
    summary: str


class SearchAnswer(Judged, frozen=True, kw_only=True):
    """What has all words of ``query``, by kind: components and notes the best fit first, runs the newest first.

    Where no note has all words, ``notes`` have some. Without ``query`` the newest of each kind, and no commands.
    ``task`` is the name of the task whose runs, settings and notes these are, empty where no task is here. ``total``
    are the runs that were found; ``runs`` are the newest. ``hidden``: so many more runs are hidden here.
    """

    schema: str = "autoresearch.search/2"
    query: str = ""
    task: str = ""
    commands: list[CommandView] = []
    settings: list[str] = []
    participants: list[ParticipantView] = []
    components: list[ComponentView] = []
    notes: list[NoteView] = []
    runs: list[RunRow] = []
    total: int = 0
    hidden: int = 0


class Measured(Answer, frozen=True, kw_only=True):
    """What one participant measured of a run.

    ``stage`` is "evaluate", its checkpoint or the run once more as it was, or "replicate", pairs with its parent and
    seeds of the verifier's own. ``values``, ``parent_values`` and ``baseline_values``, those of the task's baseline
    beside them, are on new text where the task can write any.
    ``metrics`` has what the referee found of a checkpoint: ``challenges`` and how many were ``mismatches``, their
    ``mean_difference`` in nats, and the ``gap`` to new text in standard errors. Where the task's evaluator measured the
    artifact, ``evaluated`` is 1, and ``standard_error`` is what that states of its value. An evaluation that lies
    further than ``allowed`` from the reported value fails. ``counts`` unless its author is not attested, is the run's
    own author, or its proof does not hold. ``author`` is the key that signed, ``participant`` who is behind it,
    ``device`` the hardware. ``published`` is false of what this node measured and did not reveal yet: ``id`` is then
    its commitment.
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
    baseline_values: list[float] = []
    metrics: dict[str, float]
    counts: bool
    device: str
    participant: ParticipantView = NOBODY
    published: bool = True
    allowed: float | None = None


class StateChange(Answer, frozen=True, kw_only=True):
    """A run came into a state: by which record, and when."""

    state: str
    id: str
    time_ms: int


class VerificationStateView(Answer, frozen=True, kw_only=True):
    """The verification state of a run and its reason, and who measured what. Its numbers are in the run's standing.

    ``tolerance`` is how far an evaluation as precise as the author's may lie from the reported value. ``changes`` are
    the states that it went through, the oldest first. ``retest``: the run that it builds on was refuted. ``copy_of`` is
    another participant's run that had its checkpoint or program before. ``marks`` are what its author did wrong, here
    or elsewhere. ``attested`` is false where the network attests participants and the author is not attested. ``noise``
    says so where the replicates here vary otherwise than the task states: intervals go by the stated noise.
    """

    state: str
    reason: str
    tolerance: float
    measured: list[Measured]
    changes: list[StateChange] = []
    retest: bool = False
    marks: list[MarkView] = []
    attested: bool = True
    copy_of: str | None = None
    noise: str = ""


class UsedComponent(msgspec.Struct, frozen=True, kw_only=True):
    """A component of a published agent.

    ``source`` says where it came from: ``shipped``, ``gym:ID``, ``log`` with the id of its ``release``; empty: a file
    of the agent's author.
    """

    type: str
    name: str
    version: str = ""
    source: str = ""
    release: str = ""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool of `autoresearch mcp`. ``add`` names the arguments that the caller has to invent."""

    tool: str
    arguments: dict[str, str | int]
    add: list[str] = []


class EditOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a run of one's own, beside the run that its program was edited from.

    ``value`` and ``parent_value`` are means over ``seeds`` and ``parent_seeds`` runs of the two programs. ``gain`` is
    positive where the run's is better; it is ``within_noise`` where it is smaller than ``margin``, two standard errors.
    ``parent`` is the short id of the other run, also where the run has no value. ``cause`` is how a failed program
    explains itself: words of its author. ``notes`` are what else to know of it. ``next`` is the command that one would
    type now, and ``calls`` are the same step as calls of MCP's tools.
    """

    verdict: Verdict
    sentence: str
    next: str
    calls: list[ToolCall] = []
    run: str
    cause: str = ""
    notes: list[str] = []
    value: float | None = None
    seeds: int = 0
    parent: str = ""
    parent_value: float | None = None
    parent_seeds: int = 0
    gain: float | None = None
    margin: float = 0.0
    within_noise: bool = False


class ShowAnswer(Judged, frozen=True, kw_only=True):
    """One record, whole. ``run`` and ``verification`` are there when it is a run, else ``body``.

    ``withdrawn``: its author withdrew it at ``withdrawn_ms``, for a reason or none. ``measured_by`` is what gives the
    numbers of a run's task: ``referee``, ``evaluator``, ``harness`` or ``stdout``; ``budget_unit`` that of its budget:
    ``work``, ``seconds`` or ``episodes``. Both are empty where the task is not here.
    ``notes`` are the newest of which a run is the evidence. ``changes`` are those of a run from its parent, the most
    important first, and ``because`` says why it was tried; ``outcome`` is there for who had it run here.
    ``release`` is there when it is a release of a component;
    ``used_by`` are then the best runs of agents that use it, and ``components`` what the agent of a run uses, where
    they were looked up (show does). ``hidden_by``: what hides it on this machine; empty where nothing does.
    """

    schema: str = "autoresearch.show/1"
    record: RecordView
    run: RunView | None = None
    verification: VerificationStateView | None = None
    body: dict[str, object] = {}
    links: list[str] = []
    measured_by: str = ""
    budget_unit: str = ""
    forked: bool = False
    withdrawn: bool = False
    withdrawn_ms: int | None = None
    withdrawn_reason: str = ""
    notes: list[NoteView] = []
    because: str = ""
    outcome: EditOutcome | None = None
    changes: list[ChangeView] = []
    release: ReleaseView | None = None
    used_by: list[ProgramView] = []
    components: list[UsedComponent] = []
    hidden_by: list[HiddenView] = []


class WithdrawnAnswer(Answer, frozen=True, kw_only=True):
    """The record ``id`` is withdrawn by the record ``withdrawal``. Both stay in the log; the first ranks nowhere."""

    schema: str = "autoresearch.withdrawn/1"
    id: str
    kind: str
    withdrawal: str
    reason: str = ""


class BeliefAnswer(Answer, frozen=True, kw_only=True):
    """A run is believed on this machine, or is no more; ``changed`` is false where it was so before.

    ``state`` is its state now. ``others`` are further runs whose state this changed, since they measure alike, or their
    values are as good.
    """

    schema: str = "autoresearch.belief/1"
    id: str
    believed: bool
    changed: bool
    state: str
    others: int = 0


class StarAnswer(Answer, frozen=True, kw_only=True):
    """A record is starred on this machine, or is no more; ``changed`` is false where it was so before."""

    schema: str = "autoresearch.star/1"
    id: str
    starred: bool
    changed: bool
