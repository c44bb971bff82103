"""What participants write about a task: notes, claims of programs, and what the log says to a question."""

from __future__ import annotations

import msgspec

from autoresearch.log.standing.answers import NOBODY, Answer, ParticipantView


class CitingRun(Answer, frozen=True, kw_only=True):
    """A run that cites a note: whether it was ``better`` than its parent run, null where that cannot be said."""

    id: str
    title: str
    better: bool | None = None


class NoteView(Answer, frozen=True, kw_only=True):
    """One note: ``topic`` is "insight", "hypothesis" or "history" (past work). ``evidence`` are record ids.

    ``better`` and ``worse`` count the runs that cite it: better than their parent run, or failed or not better. The
    newest of these are ``cited_by``. ``state`` says what became of a hypothesis; other notes have none.
    """

    id: str
    time_ms: int
    topic: str
    text: str
    task: str = ""
    evidence: list[str] = []
    status: str = ""
    metrics: dict[str, int | float] = {}
    author: str
    participant: ParticipantView = NOBODY
    better: int = 0
    worse: int = 0
    cited_by: list[CitingRun] = []
    state: str = ""


class NotesAnswer(Answer, frozen=True, kw_only=True):
    """Notes: without ``query`` newest first, else those that fit its words best. ``task`` is the name of their task.

    ``hidden``: so many notes on it are hidden here.
    """

    schema: str = "autoresearch.notes/1"
    task: str
    query: str = ""
    notes: list[NoteView]
    hidden: int = 0


class NoteAnswer(Answer, frozen=True, kw_only=True):
    """A note was published."""

    schema: str = "autoresearch.note/1"
    note: NoteView


class OpenClaim(Answer, frozen=True, kw_only=True):
    """A claim that holds until ``until_ms``: its author tries a program with a seed. ``is_own``: this device."""

    id: str
    title: str
    source_digest: str
    replicate: int
    time_ms: int
    until_ms: int
    author: str
    participant: ParticipantView = NOBODY
    is_own: bool = False


class ClaimsAnswer(Answer, frozen=True, kw_only=True):
    """The claims on a task that hold now, those that end first at the top."""

    schema: str = "autoresearch.claims/1"
    task: str
    claims: list[OpenClaim]


class ClaimAnswer(Answer, frozen=True, kw_only=True):
    """A claim was published."""

    schema: str = "autoresearch.claim/1"
    claim: OpenClaim


class TriedValue(Answer, frozen=True, kw_only=True):
    """A value of a parameter: how many runs had it, how many of them failed, their mean and the best with its run."""

    value: int | float | str | bool
    runs: int
    failed: int = 0
    mean: float | None = None
    best: float | None = None
    id: str


class TriedParameter(Answer, frozen=True, kw_only=True):
    """A parameter that the question names; ``values`` begin with the best, ``tried`` is how many there are in all."""

    name: str
    tried: int
    values: list[TriedValue]


class RunFound(Answer, frozen=True, kw_only=True):
    """A run whose text has words of the question."""

    id: str
    title: str
    status: str
    value: float | None = None
    hypothesis: str = ""
    reason: str = ""


class Fact(Answer, frozen=True, kw_only=True):
    """A sentence that the log's numbers make, with the records that show it, if there are any."""

    sentence: str
    ids: list[str] = []


class AskAnswer(Answer, frozen=True, kw_only=True):
    """What the log says to a question. ``facts`` answer it where it asks for what is asked most often.

    ``text`` is what a language model made of it, with the records that it cites in ``cited``; ``reason`` says why there
    is no such text.
    """

    schema: str = "autoresearch.ask/1"
    task: str
    question: str
    parameters: list[TriedParameter]
    notes: list[NoteView]
    runs: list[RunFound]
    failures: list[RunFound]
    facts: list[Fact] = []
    text: str = ""
    cited: list[str] = []
    model: str = ""
    reason: str = ""


class CheatAnswer(Answer, frozen=True, kw_only=True):
    """A program that is to cheat on a task, and by which hole, or a task's fixed files, mended, as one text.

    A model or an agent wrote it (``proposer``).
    """

    schema: str = "autoresearch.cheat/1"
    program: str
    source_digest: str
    title: str
    why: str
    proposer: str


class AttackView(msgspec.Struct, frozen=True, kw_only=True):
    """A participant's report of attacks on a task: its record, and how many of the attacks that were tried were held.

    ``attacks`` is the version of the list of attacks, ``quick``: its first half. ``holes`` counts attacks that got
    through by what they used. ``report`` is the SHA-256 of the whole. Those of unattested participants count nowhere.
    """

    id: str
    time_ms: int
    participant: ParticipantView = NOBODY
    attested: bool = False
    attacks: int
    quick: bool
    tried: int
    held: int
    holes: dict[str, int] = {}
    report: str = ""


class AttacksAnswer(Answer, frozen=True, kw_only=True):
    """What participants found when they attacked a task: a ``sentence``, and the newest report of each.

    ``self_reported``: its programs print the number themselves.
    """

    schema: str = "autoresearch.attacks/1"
    task: str
    digest: str
    self_reported: bool = False
    sentence: str = ""
    reports: list[AttackView] = []
