"""Verification as it goes on: which runs wait for verifiers, and what verifiers measured last."""

from __future__ import annotations

from autoresearch.api.base import Answer
from autoresearch.api.participants import NOBODY, ParticipantView


class AwaitedView(Answer, frozen=True, kw_only=True):
    """A run of ``participant`` that waits for verifiers, for a ``stage`` and ``round`` (see Measured).

    ``measured`` voters revealed a value, ``committed`` others measured it. They reveal once ``needed`` have measured
    it, or after a time limit. ``part`` is what this node has to do with it: drawn, not_drawn, committed, measured, own
    or uncounted; empty where this machine has no key. ``reason`` says it in words.
    """

    run: str
    title: str
    state: str
    time_ms: int
    value: float | None
    participant: ParticipantView = NOBODY
    stage: str
    round: int
    measured: int
    committed: int
    needed: int
    part: str = ""
    reason: str = ""


class VerifiedView(Answer, frozen=True, kw_only=True):
    """A verification of a run by a ``verifier``: its verdict and value, and the ``state`` that the run has now.

    ``agrees``: an evaluation came to the reported value, by the numbers and not by its verdict; null of a replication.
    """

    id: str
    run: str
    title: str
    state: str
    time_ms: int
    verifier: ParticipantView = NOBODY
    stage: str
    round: int
    verdict: str
    value: float | None
    agrees: bool | None = None
    counts: bool
    device: str = ""


class VerificationsAnswer(Answer, frozen=True, kw_only=True):
    """The runs of a task that wait for verifiers, the most urgent first, and its newest verifications.

    ``task`` is its name. ``note`` says why nothing can be verified now, or what keeps this node from it.
    """

    schema: str = "autoresearch.verifications/1"
    task: str
    waiting: list[AwaitedView]
    newest: list[VerifiedView]
    note: str = ""
