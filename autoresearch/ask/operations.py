"""Every operation of the daemon's API, declared once.

Its routes, its OpenAPI document, the calls of the command line and the tables of docs/reference/api.md follow from
these declarations. The daemon answers an operation by the method or the function that has its name, in small letters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from autoresearch.ask.ideas import AskAnswer, ClaimAnswer, ClaimsAnswer, NoteAnswer, NotesAnswer
from autoresearch.ask.node import (
    BroughtAnswer,
    Health,
    HistoryAnswer,
    PeersAnswer,
    ProposedAnswer,
    QueueAnswer,
    RunAccepted,
    ServicesAnswer,
    StatusAnswer,
    TaskStatus,
    TrustAnswer,
    VotersAnswer,
)
from autoresearch.ask.people.participants import (
    AllowRequest,
    AttestAnswer,
    AttestorAnswer,
    AttestRequest,
    ConfirmRequest,
    EvidenceAnswer,
    EvidenceListAnswer,
    VerificationsAnswer,
    WithdrawRequest,
)
from autoresearch.ask.records import LogAnswer, ShowAnswer, StarAnswer, WithdrawnAnswer
from autoresearch.ask.registry.components import ReleaseAnswer, SearchAnswer, YankedAnswer
from autoresearch.ask.requests import (
    AdmitRequest,
    AskRequest,
    BlockRequest,
    BringRequest,
    ClaimRequest,
    DialRequest,
    Difference,
    DropRequest,
    EventsSince,
    EvidenceOf,
    FetchRequest,
    HistoryRequest,
    NameRequest,
    NoteRequest,
    NotesOf,
    Nothing,
    OfTask,
    OfTaskAndParticipant,
    OneEvidence,
    OneRecord,
    Parameters,
    PauseRequest,
    ProgressOf,
    ProposeRequest,
    PublishRequest,
    PublishRunRequest,
    PublishTaskRequest,
    Records,
    ReleasesOf,
    RunsOf,
    StarRequest,
    TasksOf,
    TopOf,
    VerifyRequest,
    WithdrawRecordRequest,
    WorkRequest,
    YankRequest,
)
from autoresearch.ask.runs.answers import (
    BestAnswer,
    DiffAnswer,
    EffectsAnswer,
    LineageAnswer,
    PathAnswer,
    ProgressAnswer,
    RunContextAnswer,
    RunnersAnswer,
    RunsAnswer,
    TasksAnswer,
    TopAnswer,
)
from autoresearch.log.standing.answers import Answer, CreditAnswer

JSON = "application/json"
# The daemon answers from memory; ten seconds mean that it hangs or the machine is out of memory.
USUAL_SECONDS = 10.0
# The daemon may fetch the run's files from other nodes first.
VERIFY_SECONDS = 150.0
# A repository is fetched first.
PUBLISH_SECONDS = 300.0
# Checkpoints are copied, and each record is on the disk before the next one.
BRING_SECONDS = 150.0
# Attestors hash the address and hand a mail to their server; the next is asked in place of one that says no.
ATTEST_SECONDS = 300.0

# As long as the setting `llm.seconds` lets a model think at most.
ASK_SECONDS = 3600.0


class Text(str):
    """An answer that is text, as somebody wrote it."""

    __slots__ = ()


A = TypeVar("A", bound="Answer | Text")


@dataclass(frozen=True, slots=True)
class Operation(Generic[A]):
    """One address of the API: what it takes, what it answers, what it is for, how long a client waits."""

    address: str  # method and path
    takes: type[msgspec.Struct]
    answers: type[A]
    summary: str
    media: str = JSON
    seconds: float = USUAL_SECONDS

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.address.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path, with its parameters in braces."""
        return self.address.partition(" ")[2]

    @property
    def has_body(self) -> bool:
        """Whether it takes a body; else it takes parameters."""
        return not issubclass(self.takes, Parameters)

    @property
    def in_path(self) -> frozenset[str]:
        """The parameters that are parts of the path."""
        return frozenset(re.findall(r"{(\w+)}", self.path))

    def target(self, asked: msgspec.Struct | None) -> str:
        """The path and the query string of a request."""
        if asked is None or self.has_body:
            return self.path
        given = {name: value for name, value in msgspec.to_builtins(asked).items() if value is not None}
        query = urlencode({name: value for name, value in given.items() if name not in self.in_path})
        path = self.path.format(**{name: quote(str(value), safe="@~") for name, value in given.items()})
        return f"{path}?{query}" if query else path


HEALTH = Operation("GET /healthz", Nothing, Health, "Whether the daemon is alive.")
READY = Operation(
    "GET /readyz", Nothing, Health, "Whether the node can work; with HTTP status 503 and the reason if not."
)
METRICS = Operation(
    "GET /metrics", Nothing, Text, "The node in numbers, for Prometheus.", media="text/plain; version=0.0.4"
)
OPENAPI = Operation("GET /openapi.json", Nothing, Text, "This API, described by OpenAPI 3.1.")

STATUS = Operation("GET /v1/status", Nothing, StatusAnswer, "What the node does, and why.")
BEST = Operation(
    "GET /v1/best",
    OfTask,
    BestAnswer,
    "The best confirmed run of a task, and beside it the best provisional and the best reported one.",
)
TASKS = Operation("GET /v1/tasks", TasksOf, TasksAnswer, "The tasks of the log, those with the most runs first.")
TOP = Operation("GET /v1/top", TopOf, TopAnswer, "The leaderboard of a task.")
CREDIT = Operation(
    "GET /v1/credit",
    OfTaskAndParticipant,
    CreditAnswer,
    "What participants have done that others can count; without `participant` all, without `task` on all tasks.",
)
EVIDENCE_LIST = Operation(
    "GET /v1/evidence",
    EvidenceOf,
    EvidenceListAnswer,
    "Signed records that prove misbehaviour, the newest first; without `participant` of everybody.",
)
EVIDENCE = Operation(
    "GET /v1/evidence/{id}",
    OneEvidence,
    EvidenceAnswer,
    "One piece of evidence, checked step by step from the bytes of the records. `holds` is null where a value has to "
    "be measured; `nothing_found` is true where no misbehaviour was found.",
)
CHECK_EVIDENCE = Operation(
    "POST /v1/evidence/{id}/check",
    OneEvidence,
    RunAccepted,
    "Measure again here what a verifier states. The event `evidence` has the answer in `evidence`; nothing goes out.",
    seconds=VERIFY_SECONDS,
)
RECORDS = Operation("GET /v1/records", Records, LogAnswer, "Records, newest first; `before` asks for the next page.")
RECORD = Operation("GET /v1/records/{id}", OneRecord, ShowAnswer, "One record of any kind, whole.")
RUN = Operation("GET /v1/runs/{id}", OneRecord, ShowAnswer, "One run, whole.")
RUNS = Operation(
    "GET /v1/runs",
    RunsOf,
    RunsAnswer,
    "The runs of a task that a filter finds, page by page, each with its change, its state and what led to it.",
)
PROGRESS = Operation(
    "GET /v1/progress",
    ProgressOf,
    ProgressAnswer,
    "The runs of a task as marks of a chart; where they are too many, dots are counted in cells.",
)
RUN_CONTEXT = Operation(
    "GET /v1/runs/{id}/context",
    OneRecord,
    RunContextAnswer,
    "What stands around a run: its row, its parent's, its children, runs of the same program.",
)
PATH = Operation(
    "GET /v1/runs/{id}/path", OneRecord, PathAnswer, "The way from the baseline to a run, with the branches beside it."
)
RUNNERS = Operation("GET /v1/runners", OfTask, RunnersAnswer, "Who has runs on a task, and on which hardware.")
SOURCE = Operation(
    "GET /v1/runs/{id}/source",
    OneRecord,
    Text,
    "The program of a run as one text; fetched from other nodes when it is not here.",
    media="text/plain",
)
TRAINING_LOG = Operation("GET /v1/runs/{id}/log", OneRecord, Text, "What a run printed.", media="text/plain")
LINEAGE = Operation("GET /v1/runs/{id}/lineage", OneRecord, LineageAnswer, "The steps from the baseline to a run.")
DIFF = Operation("GET /v1/diff", Difference, DiffAnswer, "What changed between two runs.")
EFFECTS = Operation(
    "GET /v1/effects",
    OfTask,
    EffectsAnswer,
    "What each setting of a task did to the metric, in pairs of a run and its parent; the surest improvement first.",
)
NOTES = Operation(
    "GET /v1/notes", NotesOf, NotesAnswer, "The notes on a task: the newest, or those that fit words best."
)
CLAIMS = Operation("GET /v1/claims", OfTask, ClaimsAnswer, "What is being tried on a task now, by whom, until when.")
EVENTS = Operation(
    "GET /v1/events",
    EventsSince,
    Text,
    "Events as they happen, as server-sent events; after a gap, first those that were missed.",
    media="text/event-stream",
)
PEERS = Operation(
    "GET /v1/peers",
    Nothing,
    PeersAnswer,
    "This node on the network, its peers, the participants behind them and what the log shows of them.",
)
ATTESTATION = Operation(
    "GET /v1/attest",
    Nothing,
    AttestAnswer,
    "How this participant stands with the attestors, and which codes are awaited.",
)
ATTESTOR = Operation(
    "GET /v1/attestor",
    Nothing,
    AttestorAnswer,
    "What this node mailed, attested and refused as an attestor; never an address.",
)

WORK = Operation(
    "POST /v1/work",
    WorkRequest,
    StatusAnswer,
    "Work until told otherwise, for a number of runs, or until a time; verify others' runs for that share of the time.",
)
PAUSE = Operation("POST /v1/pause", PauseRequest, StatusAnswer, "Pause, until a time or for ever.")
RESUME = Operation("POST /v1/resume", Nothing, StatusAnswer, "End a pause.")
FINISH = Operation("POST /v1/finish", Nothing, StatusAnswer, "End the run in hand, then stop working.")
PROPOSALS = Operation(
    "GET /v1/proposals", Nothing, QueueAnswer, "The programs that were proposed and wait for a worker."
)
PROPOSE = Operation(
    "POST /v1/proposals",
    ProposeRequest,
    ProposedAnswer,
    "Queue a program, given as text: it is run as a change of `parent`, with `seeds` seeds.",
)
DROP_PROPOSAL = Operation(
    "POST /v1/proposals/drop",
    DropRequest,
    QueueAnswer,
    "Take a proposal out of the queue; 404 when it does not wait there.",
)
VERIFY = Operation(
    "POST /v1/verify", VerifyRequest, RunAccepted, "Measure a run of another participant here.", seconds=VERIFY_SECONDS
)
DIAL = Operation(
    "POST /v1/peers",
    DialRequest,
    PeersAnswer,
    "Connect to another node and stay connected; 409 while the network is off.",
)
BLOCK = Operation(
    "POST /v1/peers/block", BlockRequest, PeersAnswer, "Refuse a peer from now on; with `blocked` false no longer."
)
FETCH = Operation(
    "POST /v1/fetch", FetchRequest, Health, "Get a blob from other nodes, within `seconds`, unless it is here."
)
SET_NAME = Operation(
    "POST /v1/name",
    NameRequest,
    StatusAnswer,
    "Publish the name that stands beside this participant's key; an empty one takes it away.",
)
VOTERS = Operation("GET /v1/voters", Nothing, VotersAnswer, "Who counts in this network, why, and who could.")
VERIFICATIONS = Operation(
    "GET /v1/verifications",
    OfTask,
    VerificationsAnswer,
    "The runs of a task that wait for verifiers, what this node has to do with each, and the newest verifications.",
)
ADMIT = Operation(
    "POST /v1/admissions",
    AdmitRequest,
    VotersAnswer,
    "As a founder, count a participant from now on, or no longer; 409 for anybody else.",
)
WITHDRAW = Operation(
    "POST /v1/withdraw",
    WithdrawRecordRequest,
    WithdrawnAnswer,
    "Withdraw a run or a note of this node: it stays in the log and ranks nowhere; 409 for another's.",
)
STAR = Operation(
    "POST /v1/stars", StarRequest, StarAnswer, "Star a record on this machine, or with `starred` false no longer."
)
NOTE = Operation("POST /v1/notes", NoteRequest, NoteAnswer, "Publish a note: what runs show, or what is worth trying.")
RELEASES = Operation(
    "GET /v1/releases",
    ReleasesOf,
    SearchAnswer,
    "Components in the log: the newest, or those that fit words best, each by the release that is its default.",
)
RELEASE = Operation("GET /v1/releases/{id}", OneRecord, ReleaseAnswer, "One release of a component, whole.")
PUBLISH_RELEASE = Operation(
    "POST /v1/releases",
    PublishRequest,
    ReleaseAnswer,
    "Publish a folder, a file or a commit of a git repository as a release; 409 where that version is published.",
    seconds=PUBLISH_SECONDS,
)
PUBLISH_TASK = Operation(
    "POST /v1/tasks",
    PublishTaskRequest,
    TaskStatus,
    "Publish the task of a folder, with its fixed files and its baseline; nothing where it is published already.",
)
PUBLISH_RUN = Operation(
    "POST /v1/runs",
    PublishRunRequest,
    ShowAnswer,
    "Publish a kept run of a project as it was measured by the task of its environment.",
    seconds=PUBLISH_SECONDS,
)
YANK = Operation(
    "POST /v1/yanks",
    YankRequest,
    YankedAnswer,
    "Advise against an own release: it stays in the log and is no default any more; 409 for another's.",
)
SERVICES = Operation(
    "GET /v1/services",
    Nothing,
    ServicesAnswer,
    "The components that this machine serves to other programs: where, since when, how many questions they answered.",
)
CLAIM = Operation(
    "POST /v1/claims",
    ClaimRequest,
    ClaimAnswer,
    "Claim a program, so that no other node tries it; 409 when one does, or has run it.",
)
ASK = Operation(
    "POST /v1/ask",
    AskRequest,
    AskAnswer,
    "What the log says to a question: values tried, notes, runs and failures; in sentences where a model is set up.",
    seconds=ASK_SECONDS,
)
IMPORT_HISTORY = Operation(
    "POST /v1/history",
    HistoryRequest,
    HistoryAnswer,
    "Publish notes about past work, such as the rows of a results.tsv; what was published before is left alone.",
    seconds=BRING_SECONDS,
)
BRING = Operation(
    "POST /v1/bring",
    BringRequest,
    BroughtAnswer,
    "Publish this participant's finished runs of another network of this home in the one in use; each only once.",
    seconds=BRING_SECONDS,
)
TRUST = Operation(
    "POST /v1/trust",
    Nothing,
    TrustAnswer,
    "Read the trusted keys from the network's file again; 409 when it is another network's file.",
)
ATTEST = Operation(
    "POST /v1/attest",
    AttestRequest,
    AttestAnswer,
    "Have attestors write to an address, which is kept nowhere.",
    seconds=ATTEST_SECONDS,
)
CONFIRM = Operation(
    "POST /v1/attest/confirm",
    ConfirmRequest,
    AttestAnswer,
    "Bring an attestor the root key's answer to its code.",
    seconds=ATTEST_SECONDS,
)
WITHDRAW_ATTESTATION = Operation(
    "POST /v1/attestor/withdraw",
    WithdrawRequest,
    AttestorAnswer,
    "Withdraw this attestor's attestation of a participant, and refuse its mailbox.",
)
ALLOW = Operation(
    "POST /v1/attestor/allow", AllowRequest, AttestorAnswer, "Attest that mailbox again, when it is shown anew."
)
RESTART = Operation(
    "POST /v1/restart",
    Nothing,
    Health,
    "End the daemon and begin again in the same process, with the settings and the network in use of then.",
)
STOP = Operation("POST /v1/stop", Nothing, Health, "End the daemon.")

# All of the above, by name.
OPERATIONS: dict[str, Operation[Any]] = {
    name.lower(): one for name, one in list(globals().items()) if isinstance(one, Operation)
}
