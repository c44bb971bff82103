"""What participants have done."""

from __future__ import annotations

import msgspec

from autoresearch.api.base import Answer
from autoresearch.api.participants import MarkView, ParticipantView


class ImprovementView(msgspec.Struct, frozen=True, kw_only=True):
    """The improvements by confirmed runs on a task: the sum of what others measured against each parent."""

    task: str
    total: float
    runs: list[str]


class CreditView(msgspec.Struct, frozen=True, kw_only=True):
    """What one participant has done, as facts; lists are of record ids.

    ``participant`` is its voter: the mail tag where it is attested by mail, else the root key. ``keys`` are its root
    keys, ``known_as`` their display names. ``cpu_ms``, ``work`` (the task's units) and ``flops`` are the compute of its
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
    provisional: list[str]
    confirmed: list[str]
    not_replicated: list[str]
    refuted: list[str]
    cpu_ms: int
    work: float
    flops: float
    improvements: list[ImprovementView]
    passes: list[str]
    fails: list[str]
    replications: list[str]
    refutations: list[str]
    verifying_ms: int
    consecutive_valid: int = 0
    banned_until_ms: int | None = None
    marks: list[MarkView] = []
    known_as: list[ParticipantView] = []
    implausible: list[str] = []


class TaskCredit(Answer, frozen=True, kw_only=True):
    """A task whose metric somebody improved."""

    digest: str
    name: str
    metric: str
    direction: str


class CreditAnswer(Answer, frozen=True, kw_only=True):
    """What participants have done that others can count. ``trust``: the network attests participants."""

    schema: str = "autoresearch.credit/1"
    participants: list[CreditView]
    tasks: list[TaskCredit]
    trust: bool
