"""Answers of the views of a log: runs, programs, lineages, participants and what they have done, errors.

Record ids are CIDs, other hashes and keys hexadecimal.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from autoresearch.record.kinds import JoinedFields, RunDesign, RunOutcome
from autoresearch.words import Origin


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all answers."""


class Judged(Answer, frozen=True, kw_only=True):
    """Base of answers that follow from what is judged of runs.

    ``unsettled``: so many runs are still to be judged, or to be judged again. Until then the answer is as before.
    """

    unsettled: int = 0


class Failure(Answer, frozen=True, kw_only=True):
    """An error: the sentence, what to do next, and the exit status that the command line would have."""

    error: str
    hint: str = ""
    exit_status: int = 1


class ParticipantView(msgspec.Struct, frozen=True, kw_only=True):
    """A participant as commands show it. `credit` takes ``short`` and ``key``.

    ``key`` is its root key, or the device's own key where no root key names the device. ``short`` is the
    beginning of it that no other key in the log has. ``name`` is the name that it chose; others may choose the same.
    """

    key: str
    short: str
    name: str = ""


# What an answer of an older daemon lacks.
NOBODY = ParticipantView(key="", short="")


class MarkView(msgspec.Struct, frozen=True, kw_only=True):
    """A mark of a participant: its own record, and the records by which everybody can check it."""

    mark: str
    record: str
    evidence: list[str]
    time_ms: int


class BlobView(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes named by their SHA-256, and their size. ``manifest`` is the hash of the list of their chunks, if any."""

    sha256: str
    size: int
    manifest: str | None = None


class RunFields(RunDesign, RunOutcome, frozen=True, kw_only=True, omit_defaults=False, metaclass=JoinedFields):
    """The fields of a run's record (docs/protocol.md). ``parent`` and ``origin`` are ids of records."""

    task: str
    source_digest: str
    parent: str | None = None
    base: str | None = None
    seedless: str | None = None
    source: BlobView
    log: BlobView | None = None
    checkpoint: BlobView | None = None
    origin: str | None = None


class RunNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a run, or of a program: in the metric's unit, null where nobody measured them.

    ``reported`` is what its author reports, of a program the mean of ``reported_runs`` runs. ``verified`` is the median
    of ``verified_runs`` runs of verifiers with seeds fixed by the protocol, ``verified_margin`` half of its 95 %
    interval. ``verified_is_worse``: of an even number it is the worse of the two in the middle, which lie further apart
    than chance explains. ``verifiers`` measured the run in any way. ``gain`` is how much better than its parent the run
    was in pairs on one machine of a verifier, ``gain_margin`` half of its 95 % interval. ``gain_reported`` is how much
    better its reported value is than that of its parent. A gain below zero is a loss, whatever the metric's direction.
    ``decimals``: so many tell the values of the task apart, null where nothing special is needed.
    """

    reported: float | None = None
    reported_runs: int = 0
    verified: float | None = None
    verified_margin: float | None = None
    verified_runs: int = 0
    verified_is_worse: bool = False
    verifiers: int = 0
    gain: float | None = None
    gain_margin: float | None = None
    gain_reported: float | None = None
    decimals: int | None = None


def numbers_of(answer: RunNumbers) -> RunNumbers:
    """The numbers of an answer alone."""
    return RunNumbers(**{name: getattr(answer, name) for name in RunNumbers.__struct_fields__})


class Leading(NamedTuple):
    """The number that stands for a run where there is room for one: its value, its margin, and whose it is."""

    value: float | None
    margin: float | None
    origin: Origin


def leading(numbers: RunNumbers) -> Leading:
    """The value of a run or program: the verified one where there is one, else the reported one."""
    return _leading(numbers.verified, numbers.verified_margin, numbers.reported)


def leading_gain(numbers: RunNumbers) -> Leading:
    """The gain of a run: the one that verifiers measured in pairs where they did, else that of reported values."""
    return _leading(numbers.gain, numbers.gain_margin, numbers.gain_reported)


def _leading(verified: float | None, margin: float | None, reported: float | None) -> Leading:
    if verified is None:
        return Leading(reported, None, Origin.REPORTED)
    return Leading(verified, margin, Origin.VERIFIED)


class RunStanding(RunNumbers, frozen=True, kw_only=True):
    """What is computed about a run: its numbers and its state.

    ``forked``: it follows an unmerged fork and counts once others verified it. ``headline`` tells the change from its
    parent in a line; empty where it was not looked up.
    """

    state: str
    forked: bool = False
    headline: str = ""


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its record, by the device ``author``, and its standing."""

    id: str
    author: str
    seq: int
    time_ms: int
    participant: ParticipantView = NOBODY
    run: RunFields
    standing: RunStanding


class ProgramView(RunNumbers, frozen=True, kw_only=True):
    """All counted runs of one source with the task's full budget, of one device where trust names anybody.

    ``id`` is the first of them, and identifies the program. ``reported`` is the mean of all of them; the other numbers
    are those of the first. ``score`` ranks what nobody verified, in the metric's unit: ``reported`` made worse by the
    standard error.

    ``section`` is where the leaderboard shows it, empty where trust names nobody. ``position`` is its place, 0 where it
    is not ranked. Intervals that overlap leave a range of places, up to ``last_position``. ``retest``: the run that it
    builds on was refuted. ``verdict`` says who measured it and what follows; empty where nobody but its author tells of
    it. ``confirmed_until_ms``: the end of an earlier confirmation.

    ``author`` is the device that signed, ``participant`` whose it is. ``marks`` are that participant's marks, null
    where they were not looked up (best and top do). ``banned_until_ms`` is the end of its ban, if it was banned.
    ``copy_of`` is another participant's run that had this one's checkpoint or program before. ``headline`` and
    ``proposer`` are those of the run, empty where they were not looked up. ``budget`` is in the task's unit.
    """

    position: int
    last_position: int = 0
    id: str
    source_digest: str
    score: float
    state: str
    title: str
    author: str
    parent: str | None
    time_ms: int
    section: str = ""
    retest: bool = False
    verdict: str = ""
    confirmed_until_ms: int | None = None
    participant: ParticipantView = NOBODY
    marks: list[MarkView] | None = None
    banned_until_ms: int | None = None
    copy_of: str | None = None
    headline: str = ""
    proposer: str = ""
    budget: float = 0.0


class LineageStep(msgspec.Struct, frozen=True, kw_only=True):
    """One run in the lineage of a run; its numbers are in ``run.standing``.

    ``retest``: the step before was refuted, so the gain means nothing. ``verdict`` says who measured it and what
    follows; empty where nobody but its author tells of it. ``hidden``: a person hides it here, and none of its words
    are told.
    """

    run: RunView
    retest: bool = False
    verdict: str = ""
    hidden: bool = False


class RecordsView(msgspec.Struct, frozen=True, kw_only=True):
    """How many records there are, and the ids of the newest 100, the newest first."""

    count: int = 0
    newest: list[str] = []


class ImprovementView(msgspec.Struct, frozen=True, kw_only=True):
    """The improvements by ``runs`` confirmed runs on a task: the sum of what others measured against each parent."""

    task: str
    total: float
    runs: int


class CreditView(msgspec.Struct, frozen=True, kw_only=True):
    """What one participant has done, as facts, each with its records; of all participants no records are named.

    ``participant`` is its voter: the mail tag where it is attested by mail, else the root key. ``keys`` are its root
    keys, ``known_as`` their display names. ``cpu_ms`` and ``work`` (the task's units) are the compute of its
    runs that are provisional, confirmed or not replicated. ``implausible`` are those of them that cannot have spent
    what they state; nothing of these is counted.

    ``passes``, ``fails`` and ``replications`` are its verifications that count, ``verifying_ms`` how long they took,
    ``refutations`` its fails whose run was refuted. ``consecutive_valid`` is how often in a row it was right,
    ``banned_until_ms`` the end of its ban, if it was ever banned.
    """

    participant: str
    keys: list[str]
    attested: bool
    runs: int
    finished: int
    provisional: RecordsView
    confirmed: RecordsView
    not_replicated: RecordsView
    refuted: RecordsView
    cpu_ms: int
    work: float
    improvements: list[ImprovementView]
    passes: RecordsView
    fails: RecordsView
    replications: RecordsView
    refutations: RecordsView
    verifying_ms: int
    consecutive_valid: int = 0
    banned_until_ms: int | None = None
    marks: list[MarkView] = []
    known_as: list[ParticipantView] = []
    implausible: RecordsView = RecordsView()


class TaskCredit(Answer, frozen=True, kw_only=True):
    """A task whose metric somebody improved."""

    digest: str
    name: str
    metric: str
    direction: str


class CreditAnswer(Judged, frozen=True, kw_only=True):
    """What participants have done that others can count. ``trust``: the network attests participants.

    ``hidden``: so many more are hidden here.
    """

    schema: str = "autoresearch.credit/1"
    participants: list[CreditView]
    tasks: list[TaskCredit]
    trust: bool
    hidden: int = 0


class TaskStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A task in numbers."""

    runs: int
    statuses: dict[str, int]
    programs: int
    authors: int
