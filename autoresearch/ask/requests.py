r"""What the API is asked: the bodies of requests, and the parameters of operations that take no body.

A parameter is a part of the path or of the query string. Fields that are not named here are refused. Every number has a
least and a most, every text and list a length: a test holds this. A pattern ends with ``(?!\n)$``, since ``$`` alone
lets a line end through.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from autoresearch.log.standing.answers import Answer
from autoresearch.record.kinds import RunOutcome
from autoresearch.text import (
    HIDE_REASON_CHARACTERS,
    NAME_CHARACTERS,
    NOTE_CHARACTERS,
    NOTE_EVIDENCE,
    QUESTION_CHARACTERS,
)
from autoresearch.words import EvidenceKind

Reference = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        description="an id, a prefix of it, `@` (best), `@mine`, `@baseline`, `#N` (row of the board); `~N`: a parent",
    ),
]
TaskName = Annotated[
    str, Meta(max_length=128, description="a task's name or a prefix of its digest; left out: the one worked on last")
]
# No answer has more rows than a person or a page can use; the next page is asked for with `before`.
MAXIMUM_ROWS = 200
SUGGESTIONS_MOST = 20
Limit = Annotated[int, Meta(ge=1, le=MAXIMUM_ROWS, description="rows in the answer")]
Author = Annotated[str, Meta(max_length=64, description="only this key, in hex; or `me`")]
Before = Annotated[str, Meta(max_length=128, description="only records older than this one: the next page")]
Since = Annotated[int, Meta(ge=0, le=2**53, description="first replay events with a larger id, as Last-Event-ID does")]


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all parameters; unknown ones are refused."""


class Nothing(Parameters, frozen=True, kw_only=True):
    """No parameters."""


Hidden = Annotated[bool, Meta(description="what is hidden on this machine too")]


class OfTask(Parameters, frozen=True, kw_only=True):
    """Which task."""

    task: TaskName | None = None


class TasksOf(Parameters, frozen=True, kw_only=True):
    """Which tasks."""

    archived: Annotated[bool, Meta(description="those too that are archived on this machine")] = False
    hidden: Hidden = False


class TopOf(OfTask, frozen=True, kw_only=True):
    """Which task, how many rows, and how long the agents on them may have been trained."""

    limit: Limit = 20
    budget: Annotated[float, Meta(ge=0, le=1e24, description="only programs with at most this budget")] | None = None
    hidden: Hidden = False


class OfParticipant(Parameters, frozen=True, kw_only=True):
    """Whose."""

    participant: (
        Annotated[str, Meta(max_length=64, description="`me`, or a beginning of a participant's key; left out: all")]
        | None
    ) = None


class RecordsOf(OfTask, frozen=True, kw_only=True):
    """Which records."""

    kind: Annotated[str, Meta(max_length=32, description="only this kind of record")] | None = None
    author: Author | None = None
    limit: Annotated[int, Meta(ge=1, le=100_000, description="rows in the answer")] = 50
    before: Before | None = None
    claims: Annotated[bool, Meta(description="claims too: intentions to try a change, one before each run")] = True
    starred: Annotated[bool, Meta(description="only records that are starred on this machine")] = False
    since_ms: Annotated[int, Meta(ge=0, le=2**53, description="only records of this time and later")] = 0
    where: Annotated[
        list[Annotated[str, Meta(max_length=500)]],
        Meta(max_length=16, description="only runs that meet this, such as value<1.1; may be given again"),
    ] = []
    hidden: Hidden = False


class ChallengeOf(Parameters, frozen=True, kw_only=True):
    """Whether all submissions of the contest are told, each with a reason."""

    every: Annotated[bool, Meta(description="all submissions with a reason each, and how the first places differ")] = (
        False
    )


class OneRecord(OfTask, frozen=True, kw_only=True):
    """Which record; ``@`` and ``@mine`` are those of ``task``."""

    id: Reference


class SinceOf(OfTask, frozen=True, kw_only=True):
    """From which time on, until which."""

    since_ms: Annotated[int, Meta(ge=0, le=2**53, description="Unix milliseconds; 0: the last 24 hours")] = 0
    to_ms: Annotated[int, Meta(ge=0, le=2**53, description="Unix milliseconds; 0: now")] = 0


class TimelineOf(OfTask, frozen=True, kw_only=True):
    """Of how much time up to the last run."""

    last_ms: Annotated[
        int, Meta(ge=0, le=2**53, description="milliseconds up to the last run; 0: from the first on")
    ] = 0


class PathOf(OneRecord, frozen=True, kw_only=True):
    """Of which run, how many of its steps are told, and whether their branches are too."""

    steps: Annotated[int, Meta(ge=2, le=MAXIMUM_ROWS, description="steps in the answer")] = MAXIMUM_ROWS
    branches: Annotated[bool, Meta(description="the branches beside each step too")] = True


class NotesOf(OfTask, frozen=True, kw_only=True):
    """Which notes."""

    query: Annotated[str, Meta(max_length=500, description="only notes with these words, the best fit first")] = ""
    topic: Annotated[
        Literal["", "insight", "hypothesis", "history"],
        Meta(description="only notes of this kind"),
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=10_000, description="rows in the answer")] = 20
    hidden: Hidden = False


SearchKind = Literal["command", "setting", "participant", "component", "note", "run"]


class SearchOf(OfTask, frozen=True, kw_only=True):
    """What to find. Runs, settings and notes are those of ``task``."""

    query: Annotated[str, Meta(max_length=500, description="only what has all of these words")] = ""
    kind: Annotated[SearchKind | None, Meta(description="only this kind of thing")] = None
    type: Annotated[str, Meta(max_length=32, description="only components of this type, such as policy")] = ""
    yanked: Annotated[bool, Meta(description="components with yanked releases alone too")] = False
    limit: Annotated[int, Meta(ge=1, le=MAXIMUM_ROWS, description="rows of each kind in the answer")] = 20
    hidden: Hidden = False


class HiddenOf(Parameters, frozen=True, kw_only=True):
    """Which of the things that are hidden."""

    what: Annotated[str, Meta(max_length=128, description="only those whose key, digest or words begin so")] = ""
    limit: Annotated[int, Meta(ge=1, le=100_000, description="rows in the answer")] = 50


class HiddenListOf(Parameters, frozen=True, kw_only=True):
    """Whose list: a beginning of a key, or a name that only one has."""

    limit: Annotated[int, Meta(ge=1, le=100_000, description="rows in the answer")] = 50
    participant: Annotated[str, Meta(min_length=1, max_length=64)]


Kind = Annotated[EvidenceKind, Meta(description="only evidence of this kind; of a record: which kind it may be")]


class OfTaskAndParticipant(OfParticipant, frozen=True, kw_only=True):
    """Whose, and on which task."""

    task: Annotated[str, Meta(max_length=128, description="only on this task; left out: on all")] | None = None
    hidden: Hidden = False


class EvidenceOf(OfParticipant, frozen=True, kw_only=True):
    """Which evidence."""

    kind: Kind | None = None


class OneEvidence(OneRecord, frozen=True, kw_only=True):
    """The record that is evidence, or the run that it is about."""

    kind: Kind | None = None


class Difference(OfTask, frozen=True, kw_only=True):
    """Which two runs; ``old`` left out is the parent of the newer one."""

    old: Reference | None = None
    new: Reference


State = Annotated[str, Meta(max_length=200, description="only runs with these marks, with commas between them")]
By = Annotated[str, Meta(max_length=64, description="only runs of this participant: a beginning of its key, or me")]
Has = Annotated[str, Meta(max_length=64, description="only runs that change this setting or part")]
Words = Annotated[str, Meta(max_length=200, description="only runs with this text in id, title or hypothesis")]
WHERE_CHARACTERS = 400
Where = Annotated[
    str,
    Meta(
        max_length=WHERE_CHARACTERS,
        description="only runs whose settings and value are so, such as LR>=0.01,LR<0.1,OPT=adam|sgd,value<1.1",
    ),
]
Hardware = Annotated[str, Meta(max_length=128, description="only runs on this kind of hardware")]
Axis = Literal["number", "time", "cost"]
Sort = Annotated[str, Meta(max_length=16, description="number, time, value, change or cost; with -: largest first")]
Until = Annotated[int, Meta(ge=0, le=2**53, description="only records that were here then: see `until` of page 1")]


class Filtered(OfTask, frozen=True, kw_only=True):
    """Which runs of a task. ``since`` and ``to`` bound the axis in its unit: number or milliseconds."""

    state: State = ""
    by: By = ""
    has: Has = ""
    q: Words = ""
    hardware: Hardware = ""
    where: Where = ""
    x: Annotated[Axis, Meta(description="the axis: number of the run, time, or cumulated processor time")] = "number"
    since: Annotated[int, Meta(ge=0, le=2**53, description="the beginning of the axis; 0: the first run")] = 0
    to: Annotated[int, Meta(ge=0, le=2**53, description="the end of the axis; 0: the last run")] = 0
    hidden: Hidden = False


class RunsOf(Filtered, frozen=True, kw_only=True):
    """Which runs, in which order, which page."""

    sort: Sort = "-time"
    page: Annotated[int, Meta(ge=1, le=2**31, description="the page, from 1")] = 1
    size: Limit = 50
    until: Until = 0


class RunsOfParticipant(Parameters, frozen=True, kw_only=True):
    """Whose runs: a beginning of its key, or me."""

    participant: Annotated[str, Meta(min_length=1, max_length=64)]
    limit: Limit = 8


class ProgressOf(Filtered, frozen=True, kw_only=True):
    """Which runs, over what."""


# Names that can stand in JSON as they are.
SettingName = Annotated[str, Meta(max_length=64, pattern=r'^[^"\\\x00-\x1f]*(?!\n)$')]


class GroupsOf(Filtered, frozen=True, kw_only=True):
    """Which runs, in groups by which setting, or by two."""

    setting: Annotated[
        list[Annotated[str, Meta(max_length=64)]],
        Meta(max_length=2, description="a setting, such as LR or +muon; may be given twice"),
    ] = []


class ColumnsOf(OfTask, frozen=True, kw_only=True):
    """Which settings of the runs of a task, and of how many runs."""

    setting: Annotated[
        list[Annotated[SettingName, Meta(min_length=1)]],
        Meta(max_length=32, description="a setting, such as LR or +muon; may be given again"),
    ] = []
    sample: Annotated[
        int, Meta(ge=0, le=200_000, description="at most about so many runs by chance, and those that led; 0: all")
    ] = 0


class EventsSince(Parameters, frozen=True, kw_only=True):
    """From where."""

    since: Since | None = None


# Bounds of what a request may say, so that no number is too large for what keeps it.
TimeMs = Annotated[int, Meta(ge=0, le=2**53)]


FolderPath = Annotated[str, Meta(max_length=4096)]
ShortText = Annotated[str, Meta(max_length=300)]


class DialRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Connect to a multiaddr that ends in ``/p2p/PEER``, and stay connected."""

    address: Annotated[str, Meta(max_length=4096)]


class WorkRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Order work: on a task folder (empty: the configured one), for a number of runs or so many milliseconds.

    It waits for the orders before it that end, and goes before one that does not; ``instead``: those before it end.
    ``verify_share`` is the share of the time that goes to checking others' runs; left out, it is the setting.
    ``proposer`` is who invents the changes; left out, it is the setting. ``executor`` carries the runs out, ``at_most``
    so many at a time: ``here``, ``slurm``, ``ssh`` on ``host`` or another extension; left out, they are the settings.
    ``goal``: it ends when the task's best value is as good. ``patience``: when so many runs in a row were no new best.
    """

    task: FolderPath = ""
    goal: Annotated[float, Meta(ge=-1e300, le=1e300)] | None = None
    patience: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    runs: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    for_ms: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    instead: bool = False
    verify_share: Annotated[float, Meta(ge=0, le=1)] | None = None
    proposer: Literal["", "search", "llm", "command", "mix"] = ""
    executor: Annotated[str, Meta(pattern=r"^[\w.-]{0,40}(?!\n)$")] = ""
    host: Annotated[str, Meta(pattern=r"^[\w.:@-]{0,255}(?!\n)$")] = ""
    at_most: Annotated[int, Meta(ge=1, le=10_000)] | None = None


class CancelRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cancel an order by its number, and end its runs in hand."""

    number: Annotated[int, Meta(ge=1, le=2**53)]


class PauseRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pause, for ever or until a time."""

    until_ms: TimeMs | None = None


class SettingRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Change a setting, such as ``work.workers``, to a value as a person types it."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    value: Annotated[str, Meta(max_length=4096)]


class JoinRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Join the network of an invite, of a manifest's file on this machine, or of a node at an address."""

    where: Annotated[str, Meta(min_length=1, max_length=65_536)]


class NewTaskRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make the program in a folder of this machine a task, by running it; with ``work`` the node then works on it.

    ``metric``, ``direction`` and ``seconds`` of a run are found out where they are left out.
    """

    folder: Annotated[str, Meta(min_length=1, max_length=4096)]
    metric: Annotated[str, Meta(max_length=64)] = ""
    direction: Literal["", "minimize", "maximize"] = ""
    seconds: Annotated[float, Meta(ge=1, le=86_400)] | None = None
    work: bool = False


class NameRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say what this participant calls itself, for all to read; empty: that it has no name any more."""

    name: Annotated[str, Meta(max_length=NAME_CHARACTERS)]


class AdmitRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Count a participant as a founder, or with ``admits`` false no longer; and why, for all to read.

    ``participant`` is a whole root key, the beginning of a key in the log, or a name that only one has.
    """

    participant: Annotated[str, Meta(min_length=1, max_length=128)]
    admits: bool = True
    reason: Annotated[str, Meta(max_length=2048)] = ""


class ChallengeEndRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """As a founder, give the contest of this network another end, Unix milliseconds; 0: now."""

    ends_ms: TimeMs = 0


class WithdrawRecordRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Withdraw a run or a note of this node: its id, a beginning of it, or ``@mine``; and why, for all to read."""

    record: Annotated[str, Meta(min_length=1, max_length=128)]
    reason: Annotated[str, Meta(max_length=2048)] = ""


class NoteRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish a note, an insight or a hypothesis, with runs as its evidence: ids, beginnings of ids, or ``@``.

    Without evidence it is on the task that is named, by its name or digest, or on the one worked on last.
    ``instead_of`` is an own note, its id or a beginning of it: this one has its task and evidence, and it is withdrawn.
    An empty ``topic`` is that of the note which it replaces, or an insight.
    """

    text: Annotated[str, Meta(min_length=1, max_length=NOTE_CHARACTERS)]
    evidence: Annotated[list[Annotated[str, Meta(min_length=1, max_length=128)]], Meta(max_length=NOTE_EVIDENCE)] = []
    topic: Literal["", "insight", "hypothesis"] = ""
    task: Annotated[str, Meta(max_length=128)] = ""
    instead_of: Annotated[str, Meta(max_length=128)] = ""


class ClaimRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say for all to read that this node tries a program on a task folder (empty: the configured one), for ``minutes``.

    ``parent`` and ``hypothesis`` are those of the run that is to come, as for a proposal.
    """

    task: FolderPath = ""
    program: Annotated[str, Meta(min_length=1, max_length=1 << 20)]
    parent: Annotated[str, Meta(max_length=128)] = ""
    hypothesis: Annotated[str, Meta(max_length=2048)] = ""
    minutes: Annotated[int, Meta(ge=1, le=1440)] = 30


class AskRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question about a task: by its name or digest, or the one worked on last. ``model`` false asks no model."""

    question: Annotated[str, Meta(min_length=1, max_length=QUESTION_CHARACTERS)]
    task: Annotated[str, Meta(max_length=128)] = ""
    model: bool = True


class VerifyRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Measure a run of somebody else here: its id, an unambiguous beginning of it, or ``@``."""

    run: Annotated[str, Meta(min_length=1, max_length=128)]


class BlockRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Refuse a peer, named by its id or the end of it, from now on, or with ``blocked`` false no longer."""

    peer: Annotated[str, Meta(max_length=4096)]
    blocked: bool = True


class FetchRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get a blob from other nodes: its SHA-256, its size in bytes, and its chunk manifest if it has one.

    After ``seconds`` the answer is that it is not here yet; what came is kept for the next time.
    """

    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}(?!\n)$")]
    size: Annotated[int, Meta(ge=0, le=2**53)]
    manifest: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}(?!\n)$")] | None = None
    seconds: Annotated[float, Meta(gt=0, le=3600)] = 20.0


class ProposeRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Run a program on a task folder (empty: the configured one), with ``seeds`` seeds from ``replicate`` on.

    ``program`` is its text. ``parent`` names the run whose program was edited: an id, the beginning of one, ``@``,
    ``@baseline``. Left out, it is the known run whose program differs in the fewest lines. ``shared``: a seed that
    another node runs, or has run, when its turn comes is left to that. ``once``: refused where a run of the program
    with the same seed has ended, waits or goes on here.
    """

    task: FolderPath = ""
    program: Annotated[str, Meta(min_length=1, max_length=1 << 20)]
    parent: Annotated[str, Meta(max_length=128)] = ""
    hypothesis: Annotated[str, Meta(max_length=2048)] = ""
    replicate: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    seeds: Annotated[int, Meta(ge=1, le=100)] = 1
    shared: bool = False
    once: bool = False


class DropRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take a proposal out of the queue, by the name that it has there."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]


class StarRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Star a record on this machine, by its id, the beginning of it or ``@``; with ``starred`` false no longer."""

    id: Annotated[str, Meta(min_length=1, max_length=128)]
    starred: bool = True


class BelieveRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Believe the value of a run although its program measures itself; with ``believed`` false no longer.

    It holds on this machine alone.
    """

    id: Annotated[str, Meta(min_length=1, max_length=128)]
    believed: bool = True


class HideRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hide a participant, a record or a task on this machine, or with ``words`` a phrase; ``undo``: no longer.

    ``what`` is a key, an id, the beginning of one that is here, or a name that only one has.
    """

    what: Annotated[str, Meta(min_length=1, max_length=2048)]
    words: bool = False
    reason: Annotated[str, Meta(max_length=HIDE_REASON_CHARACTERS)] = ""
    undo: bool = False


class TakeHiddenRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hide what the newest list of a participant has; with ``undo`` the entries of its lists are removed."""

    participant: Annotated[str, Meta(min_length=1, max_length=64)]
    undo: bool = False


class ShareHiddenRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish what this participant hides, with a text for all to read; entries of others' lists are left out."""

    text: Annotated[str, Meta(max_length=HIDE_REASON_CHARACTERS)] = ""


class HistoryNote(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Past work on a task (its digest), as a note. ``origin`` names where it comes from: it is added only once."""

    task: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}(?!\n)$")]
    origin: Annotated[str, Meta(min_length=1, max_length=120)]
    text: Annotated[str, Meta(max_length=2048)]
    metrics: Annotated[dict[ShortText, Annotated[float, Meta(ge=-1e100, le=1e100)]], Meta(max_length=64)] = {}
    status: Annotated[str, Meta(max_length=32)] = ""


class HistoryRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish notes about past work."""

    notes: Annotated[list[HistoryNote], Meta(max_length=500)]


class BringRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish own finished runs of another network of this home, by its name or id, ``most`` of them at a time."""

    network: Annotated[str, Meta(min_length=1, max_length=128)]
    most: Annotated[int, Meta(ge=1, le=1000)] = 20


class Description(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A publisher's words about a component; what is left out stands in its ``component.ini`` or in its files."""

    type: Annotated[str, Meta(max_length=32)] = ""
    name: Annotated[str, Meta(max_length=64)] = ""
    version: Annotated[str, Meta(max_length=64)] = ""
    description: Annotated[str, Meta(max_length=2048)] = ""
    class_name: ShortText = ""
    requirements_path: ShortText = ""
    license: Annotated[str, Meta(max_length=64)] = ""
    needs: Annotated[list[ShortText], Meta(max_length=32)] = []
    interfaces: Annotated[list[ShortText], Meta(max_length=32)] = []


class PublishRequest(Description, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish a component: the folder or the file ``place``, or a ``commit`` of the repository ``git``.

    What is left out stands in its ``component.ini`` or follows from its files.
    """

    place: FolderPath = ""
    git: Annotated[str, Meta(max_length=512)] = ""
    commit: Annotated[str, Meta(max_length=64)] = ""


class PublishTaskRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish the task of a folder; with ``attacked`` the report of attacks on it, attack.json there, too."""

    task: FolderPath
    attacked: bool = False


class CheatRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have the model or the agent write a cheat on the task of a folder, or with ``holes`` a mend against them.

    ``tried`` says in a line what came of each earlier one, by its source digest in hex. Each of ``holes`` is what a
    cheat got through, with what it changes in the program.
    """

    task: FolderPath
    tried: Annotated[dict[str, Annotated[str, Meta(max_length=1000)]], Meta(max_length=100)] = {}
    holes: Annotated[list[Annotated[str, Meta(max_length=40_000)]], Meta(max_length=20)] = []


class PublishRunRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish a kept run of a project: a trained agent (mode "train") or the benchmark of a frozen one ("bench").

    ``task`` is the folder of its environment's task, ``program`` the project as one text, ``checkpoint`` the file with
    its learned state. ``outcome`` is what the task's evaluator measured of that, ``budget`` the training episodes of
    the run and its ancestors. ``parents`` are the published runs that it went on from, the nearest first.
    """

    task: FolderPath
    program: Annotated[str, Meta(min_length=1, max_length=1 << 20)]
    checkpoint: FolderPath
    mode: Literal["train", "bench"]
    outcome: RunOutcome
    budget: Annotated[float, Meta(ge=0, le=1e24)]
    parents: Annotated[list[Annotated[str, Meta(min_length=1, max_length=128)]], Meta(max_length=10_000)] = []
    title: Annotated[str, Meta(max_length=120)] = ""
    hypothesis: Annotated[str, Meta(max_length=2048)] = ""


class YankRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Advise against an own release, by its id or a beginning of it; and why, for all to read."""

    release: Annotated[str, Meta(min_length=1, max_length=128)]
    reason: Annotated[str, Meta(max_length=2048)] = ""
