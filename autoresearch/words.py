"""The words for states and reasons, shared by CLI, API, pages and log. A state without words here does not exist."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Verdict(StrEnum):
    """What somebody who had a run made learns of it: whether its program is the one to edit next."""

    KEEP = "keep"
    UNSURE = "unsure"
    REPETITION = "repetition"
    DISCARD = "discard"
    FAILED = "failed"
    BASELINE = "baseline"
    NOT_BELIEVED = "not believed"
    UNKNOWN = "unknown"


class Operator(StrEnum):
    """What a model is asked to do with the best program."""

    IMPROVE = "improve"
    DRAFT = "draft"
    COMBINE = "combine"
    ABLATE = "ablate"


class RunStatus(StrEnum):
    """How one execution ended."""

    OK = "ok"
    DIVERGED = "diverged"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    OUTPUT_LIMIT = "output_limit"
    DISK_LIMIT = "disk_limit"
    PROCESS_LIMIT = "process_limit"
    OVER_BUDGET = "over_budget"
    INVALID = "invalid"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    COULD_NOT_RUN = "could_not_run"


# Neither a success nor the program's fault: it says nothing about the program, which may be tried again.
STOPPED = frozenset({RunStatus.CANCELLED, RunStatus.ABANDONED, RunStatus.COULD_NOT_RUN})
# It did not come to its end, which nobody ordered.
UNFINISHED = frozenset({RunStatus.CANCELLED, RunStatus.ABANDONED})
# Every other ending is counted and told as a failure.
NOT_FAILED = STOPPED | {RunStatus.OK}
# The sandbox and the program started: the program ran to its end or into its time limit.
STARTED = frozenset({RunStatus.OK, RunStatus.TIMED_OUT})
# The program is at fault; a slow or small machine can be the cause of every other ending.
PROGRAM_AT_FAULT = frozenset({RunStatus.INVALID, RunStatus.DIVERGED, RunStatus.CRASHED, RunStatus.OVER_BUDGET})
# The program was past its start: it computed, well or badly.
COMPUTED = frozenset({RunStatus.OK, RunStatus.TIMED_OUT, RunStatus.OVER_BUDGET, RunStatus.DIVERGED, RunStatus.INVALID})
# A machine that lacks something ends runs like this.
MACHINE_SUSPECTED = frozenset({RunStatus.CRASHED, RunStatus.DISK_LIMIT, RunStatus.PROCESS_LIMIT, RunStatus.TIMED_OUT})
# Evaluating a model ended like this: somebody stopped it, or the sandbox did not start. It says nothing of the model.
# An evaluation takes a small part of what the task allows: a model that uses up all of it has failed.
NOT_EVALUATED = STOPPED | {RunStatus.REFUSED}

# The network that a node is in which was never told another.
DEFAULT_NETWORK = "commons"

# What gives the number of a run, by ``metric.source`` of its task.
MEASURED_BY = {
    "referee": "a referee, which evaluates the trained model",
    "evaluator": "the task's evaluator, which runs where the program is not",
    "harness": "the harness, in the program's own process",
    "stdout": "the program itself (self-reported)",
}

# The units of a budget, by ``budget.unit`` of its task; agents are trained for episodes.
BUDGET_UNITS = {"work": "work units", "seconds": "seconds", "episodes": "training episodes"}

# What a run that is no experiment says the worth of, by its record's ``mode``.
RUN_MODES = {
    "train": "trained agent: what it learned is measured",
    "bench": "benchmark of a frozen agent",
}

RUN_STATUS_SENTENCES: dict[RunStatus, str] = {
    RunStatus.OK: "finished and measured",
    RunStatus.DIVERGED: "its number became infinite or not a number",
    RunStatus.CRASHED: "the program stopped with an error",
    RunStatus.TIMED_OUT: "it ran longer than the task allows and was stopped",
    RunStatus.OUT_OF_MEMORY: "it ran out of memory",
    RunStatus.OUTPUT_LIMIT: "it printed or left more than the task allows and was stopped",
    RunStatus.DISK_LIMIT: "it wrote more to disk than the task allows and was stopped",
    RunStatus.PROCESS_LIMIT: "it started more processes than the task allows",
    RunStatus.OVER_BUDGET: "it cost far more than the baseline costs on the same machine for the same budget",
    RunStatus.INVALID: "the harness or the referee refused the model",
    RunStatus.REFUSED: "it was not started: a check before the run refused it",
    RunStatus.CANCELLED: "a person or the daemon stopped it",
    RunStatus.ABANDONED: "the daemon ended while it ran",
    RunStatus.COULD_NOT_RUN: "this machine could not run it, which says nothing about the program",
}


class RunState(StrEnum):
    """The verification state of a run."""

    REPORTED = "reported"
    PROVISIONAL = "provisional"
    CONFIRMED = "confirmed"
    NOT_REPLICATED = "not replicated"
    DISPUTED = "disputed"
    REFUTED = "refuted"
    FRAUD = "fraud"
    BANNED = "banned"
    UNAVAILABLE = "unavailable"
    NOT_BELIEVED = "not believed"


# What a state means for all runs in it; of one run :func:`autoresearch.judging.verdicts.verdict_sentence` tells more.
RUN_STATE_SENTENCES: dict[RunState, str] = {
    RunState.REPORTED: "verifiers have not decided: nobody, or too few of them, measured it",
    RunState.PROVISIONAL: "verifiers measured the same value",
    RunState.CONFIRMED: "verifiers ran it beside its parent and it is better, or evaluated what an agent learned",
    RunState.NOT_REPLICATED: "verifiers ran it beside its parent and it is not better",
    RunState.DISPUTED: "a verifier measured another value; a larger committee is drawn",
    RunState.REFUTED: "verifiers measured another value",
    RunState.FRAUD: "its own records prove that it is false",
    RunState.BANNED: "records of its author prove misbehaviour shortly before",
    RunState.UNAVAILABLE: "the verifiers that were drawn could not get its program or its model",
    RunState.NOT_BELIEVED: "measured by the program itself, and not to be believed until you say so",
}


class Disbelief(StrEnum):
    """Why a value is not believed, also where others measured the same."""

    FLOOR = "floor"
    MEASURE = "measure"
    JUMP = "jump"


DISBELIEF_SENTENCES: dict[Disbelief, str] = {
    Disbelief.FLOOR: "it is past the bound that task.toml states (metric.floor), or larger than any metric",
    Disbelief.MEASURE: "measured by the program itself, which prints or measures its number in another way than before",
    Disbelief.JUMP: "measured by the program itself, and far beyond all values before it",
}

# Verifiers have not decided yet: more of them can change the state.
UNDECIDED = frozenset({RunState.REPORTED, RunState.PROVISIONAL})
# Too few verifiers measured the run: its evaluation is wanted.
UNMEASURED = frozenset({RunState.REPORTED, RunState.UNAVAILABLE})
# Verifiers measured the reported value, and found nothing against the run. The better state first.
VERIFIED = (RunState.CONFIRMED, RunState.PROVISIONAL)
# Nothing speaks against the run: it may lead a board, and runs may be built upon it.
SOUND = frozenset({RunState.REPORTED, *VERIFIED})
# The reported value counts, as far as a value can that its program printed itself.
BELIEVABLE = SOUND | {RunState.NOT_REPLICATED}
# Verifiers measured the reported value, whether or not the run is better than its parent.
UPHELD = frozenset({RunState.NOT_REPLICATED, *VERIFIED})
# Records of its author prove misbehaviour: no measurement changes the state.
MISBEHAVED = frozenset({RunState.FRAUD, RunState.BANNED})
# The reported value is false. A child run was compared with it, so the child has to be compared again.
FALSE_VALUE = frozenset({RunState.REFUTED, RunState.FRAUD})
# Of these all is said by the sentence of the state.
UNSAID = MISBEHAVED | {RunState.UNAVAILABLE, RunState.NOT_BELIEVED}
# There is evidence against the run itself, which everybody can check.
CONTESTED = FALSE_VALUE | {RunState.DISPUTED}
# The reported value counts for nothing, and is shown struck through.
DISCREDITED = FALSE_VALUE | MISBEHAVED | {RunState.NOT_BELIEVED}
# Verifiers of the run are still wanted, although its reported value does not count now.
REOPENED = frozenset({RunState.DISPUTED, RunState.UNAVAILABLE})
# The reported value does not count now: it is discredited, disputed, or nobody drawn could measure it.
DOUBTED = DISCREDITED | REOPENED


# What a verification is called by its stage, and what it measures.
STAGE_NAMES = {"evaluate": "evaluation", "replicate": "replication"}
STAGE_SENTENCES = {"evaluate": "measuring its value again", "replicate": "running it beside its parent"}


class Counts(StrEnum):
    """Why a participant's verifications count."""

    FOUNDER = "founder"
    ADMITTED = "admitted"
    BY_HAND = "named by hand"
    ATTESTED = "attested"


class Origin(StrEnum):
    """Whose number it is: measured by verifiers, or reported by the run's author."""

    VERIFIED = "verified"
    REPORTED = "reported"


class RunMark(StrEnum):
    """How a run is shown in a table or chart: its state, or what says more than “reported”."""

    FAILED = "failed"
    REPORTED = "reported"
    LEADING = "leading"
    PROVISIONAL = "provisional"
    CONFIRMED = "confirmed"
    NOT_REPLICATED = "not replicated"
    DISPUTED = "disputed"
    REFUTED = "refuted"
    FRAUD = "fraud"
    BANNED = "banned"
    UNAVAILABLE = "unavailable"
    NOT_BELIEVED = "not believed"


# Runs that lead, or may.
LEADING_MARKS = frozenset({RunMark.LEADING, RunMark.PROVISIONAL, RunMark.CONFIRMED})
# Most runs: nobody verified them, and nothing speaks against them.
PLAIN_MARKS = frozenset({RunMark.REPORTED, RunMark.FAILED, RunMark.LEADING})
RUN_MARK_SENTENCES: dict[RunMark, str] = {
    **{RunMark(state.value): sentence for state, sentence in RUN_STATE_SENTENCES.items()},
    RunMark.FAILED: "it ended without a value",
    RunMark.LEADING: "the best reported value when it came; verifiers have not decided",
}


class JobReason(StrEnum):
    """Why this node verifies a run."""

    LOT = "lot"
    DISPUTE = "dispute"
    ASKED = "asked"
    EVIDENCE = "evidence"


JOB_SENTENCES: dict[JobReason, str] = {
    JobReason.LOT: "drawn by VRF",
    JobReason.DISPUTE: "drawn by VRF, because a verifier measured another value",
    JobReason.ASKED: "you asked for it",
    JobReason.EVIDENCE: "you asked whether a verification holds",
}


class VerifierPart(StrEnum):
    """What this node has to do with a run that waits for verifiers."""

    DRAWN = "drawn"
    NOT_DRAWN = "not_drawn"
    COMMITTED = "committed"
    MEASURED = "measured"
    OWN = "own"
    UNCOUNTED = "uncounted"


VERIFIER_PART_SENTENCES: dict[VerifierPart, str] = {
    VerifierPart.DRAWN: "this node is drawn for it",
    VerifierPart.NOT_DRAWN: "this node is not drawn; more are drawn while none reports",
    VerifierPart.COMMITTED: "measured here; the result is not revealed yet",
    VerifierPart.MEASURED: "this participant has measured it",
    VerifierPart.OWN: "this participant published it, so others verify it",
    VerifierPart.UNCOUNTED: "a verification by this participant does not count",
}


UNREVEALED = "the result is revealed once enough other verifiers have measured the run, or after a time limit"


class VerificationKind(StrEnum):
    """What a verification that counts did: an evaluation passed or failed the run, a replication ran the pairs.

    A pass of a run that was refuted in the end is a rubber stamp, a fail of one a refutation.
    """

    PASSED = "pass"
    FAILED = "fail"
    REPLICATION = "replication"
    RUBBER_STAMP = "rubber stamp"
    REFUTATION = "refutation"


VERIFICATION_KINDS = frozenset(VerificationKind)


class Mark(StrEnum):
    """What a participant did wrong, as the log shows it. It stays beside the name, with its evidence."""

    FABRICATOR = "fabricator"
    COPIER = "copier"
    RUBBER_STAMP = "rubber stamp"
    FRAUD = "fraud"


MARK_SENTENCES: dict[Mark, str] = {
    Mark.FABRICATOR: "reported a value that verifiers refuted",
    Mark.COPIER: "published another participant's run as its own",
    Mark.RUBBER_STAMP: "passed a run that other verifiers refuted",
    Mark.FRAUD: "its own records prove misbehaviour; it does not count for a while",
}


class EvidenceKind(StrEnum):
    """What signed records prove against their author."""

    FORK = "fork"
    SEED = "seed"
    LINEAGE = "lineage"
    VALUE = "value"


EVIDENCE_SENTENCES: dict[EvidenceKind, str] = {
    EvidenceKind.FORK: "one device signed two records with one number",
    EvidenceKind.SEED: "a seed that the protocol does not give",
    EvidenceKind.LINEAGE: "a parent on another task",
    EvidenceKind.VALUE: "verifiers measured another value",
}


class Consequence(StrEnum):
    """What follows from evidence."""

    BANNED = "banned"
    UNCOUNTED = "uncounted"
    DISPUTED = "disputed"
    REFUTED = "refuted"
    MERGED = "merged"


CONSEQUENCE_SENTENCES: dict[Consequence, str] = {
    Consequence.BANNED: "its author is banned",
    Consequence.UNCOUNTED: "its later runs count once merged",
    Consequence.DISPUTED: "the run is disputed",
    Consequence.REFUTED: "the run is refuted",
    Consequence.MERGED: "nothing: its root key merged it",
}


# A run whose parent was refuted: the comparison with it means nothing any more.
RETEST = "re-test"
RETEST_SENTENCE = "its parent run was refuted: it has to be compared again"

# A run that another participant published before.
COPY = "copy"
# What stands in place of the words of a run that a person hides.
HIDDEN = "hidden"
COPY_SENTENCE = "another participant published it before"


class HypothesisState(StrEnum):
    """What became of a hypothesis that somebody wrote, by the runs that cite it."""

    OPEN = "open"
    TRIED = "tried"
    HELD = "held"
    REFUTED = "refuted"


HYPOTHESIS_SENTENCES: dict[HypothesisState, str] = {
    HypothesisState.OPEN: "no run that counts cites it yet",
    HypothesisState.TRIED: "runs cite it, and as many were better than their parent as were not",
    HypothesisState.HELD: "more of the runs that cite it were better than their parent than were not",
    HypothesisState.REFUTED: "most of the runs that cite it failed or were no better than their parent",
}


class BoardSection(StrEnum):
    """Where a leaderboard shows a program."""

    CONFIRMED = "confirmed"
    OPEN = "open"
    FAILED = "failed"
    UNATTESTED = "unattested"


BOARD_SECTION_SENTENCES: dict[BoardSection, str] = {
    BoardSection.CONFIRMED: "confirmed: ranked by the values that verifiers measured",
    BoardSection.OPEN: "not confirmed: values as their authors report them",
    BoardSection.FAILED: "disputed, refuted, unavailable, or no better than the parent",
    BoardSection.UNATTESTED: "by unattested participants",
}

# The marks of the runs in a section, where a board is made of runs.
SECTION_MARKS = {
    BoardSection.CONFIRMED: (RunMark.CONFIRMED,),
    BoardSection.OPEN: (RunMark.PROVISIONAL, RunMark.LEADING, RunMark.REPORTED),
    BoardSection.FAILED: (
        *(RunMark.NOT_REPLICATED, RunMark.DISPUTED, RunMark.REFUTED),
        *(RunMark.FRAUD, RunMark.BANNED, RunMark.UNAVAILABLE),
    ),
}
# The value of the run counts, as its author reported it or as verifiers measured it.
COUNTED_MARKS = (
    *SECTION_MARKS[BoardSection.CONFIRMED],
    *SECTION_MARKS[BoardSection.OPEN],
    RunMark.NOT_REPLICATED,
)
# The run is more than reported, or failed. In the order in which their numbers are listed.
DECIDED_MARKS = (RunMark.CONFIRMED, RunMark.PROVISIONAL, *SECTION_MARKS[BoardSection.FAILED], RunMark.FAILED)


class WorkState(StrEnum):
    """What the daemon is doing about work."""

    IDLE = "idle"
    WORKING = "working"
    WAITING = "waiting"
    PAUSED = "paused"
    FINISHING = "finishing"
    STOPPING = "stopping"


# The daemon begins runs, or will as soon as it can.
AT_WORK = frozenset({WorkState.WORKING, WorkState.WAITING})
# No run goes on, and nobody paused them.
RESTING = frozenset({WorkState.WAITING, WorkState.IDLE})
# The daemon begins nothing now.
HELD = frozenset({WorkState.PAUSED, WorkState.WAITING, WorkState.STOPPING})


class Why(StrEnum):
    """Why the daemon, or one worker, is in its state."""

    NOT_ASKED = "not_asked"
    ASKED = "asked"
    ASKED_FOR_RUNS = "asked_for_runs"
    ASKED_FOR_GOAL = "asked_for_goal"
    ASKED_FOR_TIME = "asked_for_time"
    ASKED_FOR_PROPOSALS = "asked_for_proposals"
    RUNNING = "running"
    QUEUED = "queued"
    QUEUE_FULL = "queue_full"
    LOOKING = "looking"
    PROPOSING = "proposing"
    VERIFYING = "verifying"
    PREPARING_DATA = "preparing_data"
    INSTALLING_PACKAGES = "installing_packages"
    COMPILING_LIBRARIES = "compiling_libraries"
    TESTING_CARD = "testing_card"
    STARTING = "starting"
    PAUSED_BY_PERSON = "paused_by_person"
    FINISHING_LAST = "finishing_last"
    RUNS_DONE = "runs_done"
    TIME_OVER = "time_over"
    GOAL_REACHED = "goal_reached"
    PATIENCE_OVER = "patience_over"
    CANNOT_RECORD = "cannot_record"
    DISK_LOW = "disk_low"
    LOG_BEHIND = "log_behind"
    ASKING_PEERS = "asking_peers"
    TESTING_SANDBOX = "testing_sandbox"
    SANDBOX_TOO_LOW = "sandbox_too_low"
    TASK_BROKEN = "task_broken"
    CANNOT_RUN_HERE = "cannot_run_here"
    FAILING = "failing"
    WORKER_LOST = "worker_lost"
    NO_WORKERS = "no_workers"
    OUTSIDE_HOURS = "outside_hours"
    ON_BATTERY = "on_battery"
    IN_USE = "in_use"
    MEMORY_LOW = "memory_low"
    TOO_HOT = "too_hot"
    CARD_IN_USE = "card_in_use"
    GOING_TO_SLEEP = "going_to_sleep"
    STOPPING = "stopping"


class WorkKind(IntEnum):
    """A kind of work of a node. Of what waits the lowest number goes first."""

    PERSON = 1
    VERIFICATION = 2
    ORDER = 3
    SEARCH = 4


# The worker invents what it runs.
SEARCHING = frozenset({WorkKind.ORDER, WorkKind.SEARCH})


@dataclass(frozen=True, slots=True)
class WorkRule:
    """What stands in a node's queue as one kind of work, and how long it waits at most, where nothing forbids work."""

    sentence: str
    bound: str


# A run of the search that has more than a minute left is ended for what goes before it, once, and is done later.
WORK_RULES: dict[WorkKind, WorkRule] = {
    WorkKind.PERSON: WorkRule(
        "a run or a verification that a person asks for",
        "it begins within a minute, or when a run in hand has ended that was interrupted before",
    ),
    WorkKind.VERIFICATION: WorkRule(
        "a verification that others wait for",
        "it begins within a minute where verification has not had its share of the last 24 hours, else once it is due",
    ),
    WorkKind.ORDER: WorkRule(
        "a number of runs, a time or a goal", "its turn comes when the orders before it have ended"
    ),
    WorkKind.SEARCH: WorkRule("work without an end", "it goes on when nothing else is to be done"),
}

# What a person asked for is done.
ORDER_DONE = frozenset({Why.RUNS_DONE, Why.TIME_OVER, Why.GOAL_REACHED, Why.PATIENCE_OVER})

WHY_SENTENCES: dict[Why, str] = {
    Why.NOT_ASKED: "no work is asked of this node: autoresearch work",
    Why.ASKED: "working until you pause or finish it",
    Why.ASKED_FOR_RUNS: "working until the runs asked for are done",
    Why.ASKED_FOR_GOAL: "working until the value asked for is reached, or no new best comes",
    Why.ASKED_FOR_TIME: "working until the time asked for is over",
    Why.ASKED_FOR_PROPOSALS: "working until the runs that were proposed are done",
    Why.RUNNING: "training",
    Why.QUEUED: "waiting in the queue of the cluster",
    Why.QUEUE_FULL: "the cluster has as many jobs of this node as you allow (--at-most)",
    Why.LOOKING: "looking first whether a run of others is to be verified",
    Why.PROPOSING: "choosing the next change",
    Why.VERIFYING: "verifying a run of another participant",
    Why.PREPARING_DATA: "making the task's data, once",
    Why.INSTALLING_PACKAGES: "installing the task's packages, once",
    Why.COMPILING_LIBRARIES: "compiling the installed Python libraries, once",
    Why.TESTING_CARD: "testing the graphics card, once",
    Why.STARTING: "the worker is starting",
    Why.PAUSED_BY_PERSON: "paused by you: autoresearch node resume",
    Why.FINISHING_LAST: "finishing the run in progress, then stopping",
    Why.RUNS_DONE: "the work you asked for is done: autoresearch work",
    Why.TIME_OVER: "the time asked for is over: autoresearch work",
    Why.GOAL_REACHED: "the value asked for is reached: autoresearch work",
    Why.PATIENCE_OVER: "no new best for as many runs as asked for: autoresearch work",
    Why.CANNOT_RECORD: "a record could not be written; it is tried again",
    Why.DISK_LOW: "the disk has too little free space: free some, or lower storage.minimum_free_mib",
    Why.LOG_BEHIND: "the log is older than this device's last signed record: autoresearch node doctor --accept-fork",
    Why.ASKING_PEERS: "asking a peer what this device signed last, before it signs anything new",
    Why.TESTING_SANDBOX: "it has just started and tests the sandbox before anything runs in it",
    Why.SANDBOX_TOO_LOW: "the sandbox here is below work.minimum_sandbox: autoresearch node doctor",
    Why.TASK_BROKEN: "the task cannot be worked on",
    Why.CANNOT_RUN_HERE: "this machine cannot run the task",
    Why.FAILING: "several runs failed in a minute, so the next waits: "
    "autoresearch node records, autoresearch node resume",
    Why.WORKER_LOST: "the worker process ended and is being started again",
    Why.NO_WORKERS: "work.workers is 0: this node only watches",
    Why.OUTSIDE_HOURS: "outside the hours of work.hours",
    Why.ON_BATTERY: "this machine is not on mains (work.only_on_mains)",
    Why.IN_USE: "this machine is in use (work.only_idle)",
    Why.MEMORY_LOW: "this machine has little free memory (work.pause_memory_mib)",
    Why.TOO_HOT: "this machine is too hot (work.max_temperature)",
    Why.CARD_IN_USE: "another program computes on a card (work.only_free_card)",
    Why.GOING_TO_SLEEP: "this machine goes to sleep: runs on its graphics cards go on when it is awake",
    Why.STOPPING: "the daemon is stopping",
}

# The machine is its owner's now: nothing is begun on it. Runs that an executor carries out elsewhere go on.
OWNER_REASONS = (
    *(Why.OUTSIDE_HOURS, Why.ON_BATTERY, Why.IN_USE),
    *(Why.MEMORY_LOW, Why.TOO_HOT, Why.CARD_IN_USE, Why.GOING_TO_SLEEP),
)
# Each time that work is given out these are found anew.
PASSING_REASONS = frozenset({Why.FAILING, Why.LOOKING, Why.QUEUE_FULL})
# Work has ended, or needs a person. Of a machine that its owner uses nobody is told.
CALLING_REASONS = frozenset(
    {
        *(*ORDER_DONE, Why.CANNOT_RECORD, Why.DISK_LOW, Why.LOG_BEHIND, Why.SANDBOX_TOO_LOW),
        *(Why.TASK_BROKEN, Why.CANNOT_RUN_HERE, Why.FAILING),
    }
)


class Result(StrEnum):
    """What came of one check of this machine: nothing fails but what keeps the node from its work."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Part(StrEnum):
    """What of a node can ail: the names of its conditions."""

    HOME = "home"
    SETTINGS = "settings"
    DEVICE = "device"
    DISK = "disk"
    LIMITS = "limits"
    BLOBS = "blobs"
    KEYS = "keys"
    NETWORK = "network"
    LOG = "log"
    FORK = "fork"
    CLOCK = "clock"
    PEERS = "peers"
    SANDBOX = "sandbox"
    IDENTITY = "identity"
    INVITE = "invite"
    ATTESTOR = "attestor"
    MAILBOX = "mailbox"
    NOTICES = "notices"
    FAILING = "failing"
    OPEN_FILES = "open files"


# While one of these fails, what the log holds may not be readable.
STORED_PARTS = frozenset({Part.LOG, Part.BLOBS})
# A condition that keeps the daemon from beginning runs, and the reason that it then gives.
BLOCKING_PARTS = {Part.DISK: Why.DISK_LOW, Part.LOG: Why.LOG_BEHIND}


class AttestReason(StrEnum):
    """Why an attestor refuses."""

    BUSY = "busy"
    GARBLED = "garbled"
    OTHER_NETWORK = "other_network"
    FORGED = "forged"
    UNKNOWN_DEVICE = "unknown_device"
    EXPIRED_DEVICE = "expired_device"
    REVOKED_DEVICE = "revoked_device"
    ITSELF = "itself"
    BAD_ADDRESS = "bad_address"
    THROW_AWAY = "throw_away"
    ADDRESS_CAP = "address_cap"
    DOMAIN_CAP = "domain_cap"
    DOMAIN_FULL = "domain_full"
    WITHDRAWN = "withdrawn"
    PEER_CAP = "peer_cap"
    DAY_CAP = "day_cap"
    NO_SUCH_MAILBOX = "no_such_mailbox"
    NOT_SENT = "not_sent"
    NO_REQUEST = "no_request"
    TOO_LATE = "too_late"
    OTHER_PEER = "other_peer"
    WRONG_CODE = "wrong_code"
    TOO_MANY_TRIES = "too_many_tries"
    NOT_RECORDED = "not_recorded"


ATTEST_SENTENCES: dict[AttestReason, str] = {
    AttestReason.BUSY: "it is busy; ask again in a minute",
    AttestReason.GARBLED: "it did not understand the request; one of the two nodes needs a newer version",
    AttestReason.OTHER_NETWORK: "it is in another network, or has another attestor key",
    AttestReason.FORGED: "the request was not signed by the device that it names, or not just now: look at the clock",
    AttestReason.UNKNOWN_DEVICE: "it knows no root key of this device; ask again in a minute",
    AttestReason.EXPIRED_DEVICE: "this device's delegation has expired; renew it first: autoresearch node id renew",
    AttestReason.REVOKED_DEVICE: "this device was revoked",
    AttestReason.ITSELF: "an attestor cannot attest itself",
    AttestReason.BAD_ADDRESS: "it does not write to such an address",
    AttestReason.THROW_AWAY: "that domain offers throw-away mailboxes; use a permanent address",
    AttestReason.ADDRESS_CAP: "it has sent that address its maximum of mails today",
    AttestReason.DOMAIN_CAP: "it has sent that domain its maximum of mails today",
    AttestReason.DOMAIN_FULL: "this network counts no more mailboxes of that domain",
    AttestReason.WITHDRAWN: "it withdrew its attestation of that mailbox; only its operator can allow it again",
    AttestReason.PEER_CAP: "this node or this participant has made its maximum of requests today",
    AttestReason.DAY_CAP: "it has sent its maximum of mails today",
    AttestReason.NO_SUCH_MAILBOX: "its mail server refuses mail for that address",
    AttestReason.NOT_SENT: "it could not send the mail; ask again later",
    AttestReason.NO_REQUEST: "there is no such request: it was answered already, given up, or never made",
    AttestReason.TOO_LATE: "the code came too late; ask for a new one",
    AttestReason.OTHER_PEER: "the request was made through another node; confirm it there",
    AttestReason.WRONG_CODE: "that is not the code that it mailed for this participant",
    AttestReason.TOO_MANY_TRIES: "too many wrong codes; ask for a new one",
    AttestReason.NOT_RECORDED: "it could not record its attestation; ask again later",
}

# The code of the mail is void: no further answer with it can help.
CODE_VOID = frozenset(
    {AttestReason.NO_REQUEST, AttestReason.TOO_LATE, AttestReason.TOO_MANY_TRIES, AttestReason.OTHER_PEER}
)


class NetworkState(StrEnum):
    """What the network of this node does."""

    OFF = "off"
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    RESTING = "resting"
    STOPPED = "stopped"


NETWORK_STATE_SENTENCES: dict[NetworkState, str] = {
    NetworkState.OFF: "the network is off: this node works by itself",
    NetworkState.STARTING: "the network process is starting",
    NetworkState.RUNNING: "the network process runs",
    NetworkState.RESTARTING: "the network process {what}; it is started again",
    NetworkState.RESTING: "{what}",
    NetworkState.STOPPED: "the network is stopped",
}


def network_reason(state: NetworkState, what: str = "ended") -> str:
    """Why the network is in its state; ``what`` the process did that is started again, or why it rests."""
    return NETWORK_STATE_SENTENCES[state].format(what=what)


def with_article(noun: str) -> str:
    """“a run”, “an identity”: the kind of a record inside a sentence."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"
