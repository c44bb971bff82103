"""Answers about a contest: when it ends, its board, its participants, and what each submission came to."""

from __future__ import annotations

import msgspec

from autoresearch.ask.discussion import Fact
from autoresearch.ask.node import TaskStatus
from autoresearch.log.standing.answers import NOBODY, Judged, ParticipantView, ProgramView, RunNumbers


class SubmissionView(RunNumbers, frozen=True, kw_only=True):
    """One run of a contest. ``position`` to ``last_position`` are its places, 0 where it takes none; ``reason``: why.

    ``counts``: it was published in time, within what each participant may submit, and is not the baseline. ``outcome``
    is a state of verification, the status of a run that failed, or why it takes no place: late, early, over quota,
    unattested, copy, repetition, baseline.
    """

    id: str
    time_ms: int
    participant: ParticipantView = NOBODY
    title: str = ""
    counts: bool = True
    outcome: str = ""
    position: int = 0
    last_position: int = 0
    reason: str = ""


class ContestantView(msgspec.Struct, frozen=True, kw_only=True):
    """A participant of a contest: how many runs it published, how many count, and the best of them.

    ``best`` is null where none counts. ``token`` is that of the invite that admitted it, hexadecimal. ``alias`` is the
    name that the founder gave with that invite; only the founder's machine has it.
    """

    participant: ParticipantView
    runs: int
    counted: int
    best: SubmissionView | None = None
    token: str = ""
    alias: str = ""


class ChallengeAnswer(Judged, frozen=True, kw_only=True):
    """A contest. Times are Unix milliseconds, ``runs_each`` is how many runs of each participant count, 0: all.

    ``programs`` is the board: as `top`, without what takes no place. ``waiting`` runs are not decided by verifiers yet.
    ``unsettled`` is how much of the log this node has not judged yet, so that places may change. ``rules`` is the
    SHA-256 of the page of rules. ``founder``: this node may set another end. ``submissions`` and ``comparisons`` of the
    first places are there where they were asked for.
    """

    schema: str = "autoresearch.challenge/1"
    id: str
    title: str
    network: str
    task: TaskStatus
    begins_ms: int
    ends_ms: int
    ended: bool
    runs_each: int = 0
    rules: str = ""
    founder: bool = False
    programs: list[ProgramView] = []
    contestants: list[ContestantView] = []
    waiting: int = 0
    unsettled: int = 0
    note: str = ""
    submissions: list[SubmissionView] = []
    comparisons: list[Fact] = []
