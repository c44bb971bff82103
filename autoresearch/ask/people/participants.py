"""What is known of participants: evidence against them, whose runs they verify, who attests them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from autoresearch.log.standing.answers import NOBODY, Answer, Judged, ParticipantView
from autoresearch.text import ADDRESS_MAX


class EvidenceView(Answer, frozen=True, kw_only=True):
    """What records prove against ``participant``, whose ``device`` signed the first of them: ``id``.

    ``kind`` is fork, seed, lineage or value. What ``follows`` is banned, uncounted (the device's later runs), disputed
    or refuted (the run), or merged: nothing any more. ``until_ms``: how long it lasts.
    """

    kind: str
    id: str
    participant: ParticipantView
    device: str
    records: list[str]
    time_ms: int
    follows: str
    reason: str
    until_ms: int | None = None


class EvidenceListAnswer(Judged, frozen=True, kw_only=True):
    """What records prove against who signed them, the newest first."""

    schema: str = "autoresearch.evidence_list/1"
    evidence: list[EvidenceView]


class EvidenceStep(Answer, frozen=True, kw_only=True):
    """One thing that was looked at: what the record states, what this machine computed or read (``actual``).

    ``agrees`` is null where there is nothing to compare.
    """

    what: str
    stated: str
    actual: str
    agrees: bool | None = None


class EvidenceAnswer(Answer, frozen=True, kw_only=True):
    """One piece of evidence, checked here and now: the record ``id``, each step, and whether it ``holds`` and why.

    ``holds`` is null where a value has to be measured again to tell. ``nothing_found``: no record says anything
    against this one, and every check agrees. ``evidence`` is there when the log's own view has it among what is proved.
    """

    schema: str = "autoresearch.evidence/1"
    id: str
    kind: str
    device: str
    steps: list[EvidenceStep]
    holds: bool | None
    nothing_found: bool = False
    reason: str
    evidence: EvidenceView | None = None


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


class VerificationsAnswer(Judged, frozen=True, kw_only=True):
    """The runs of a task that wait for verifiers, the most urgent first, and its newest verifications.

    ``task`` is its name. ``note`` says why nothing can be verified now, or what keeps this node from it.
    """

    schema: str = "autoresearch.verifications/1"
    task: str
    waiting: list[AwaitedView]
    newest: list[VerifiedView]
    note: str = ""


class AttestRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask attestors to write to this address. It is passed on to them alone and kept nowhere."""

    address: Annotated[str, Meta(min_length=1, max_length=ADDRESS_MAX)]


class ConfirmRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to one attestor: its token, and the root key's signature of what both tokens make; both in hex."""

    token: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}(?!\n)$")]
    signature: Annotated[str, Meta(pattern=r"^[0-9a-f]{128}(?!\n)$")]


class WithdrawRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take back what this attestor said of a participant: its root key in hex, and why, for all to read."""

    participant: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}(?!\n)$")]
    reason: Annotated[str, Meta(max_length=2048)] = ""


class AllowRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attest the mailboxes of a participant again of which this attestor took its word back: its root key in hex."""

    participant: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}(?!\n)$")]


class AttestationView(Answer, frozen=True, kw_only=True):
    """One trusted attestor's word that holds now; keys and tag in hex, times in Unix milliseconds."""

    attestor: str
    tag: str
    since_ms: int
    until_ms: int
    method: str = "code"


class CodeView(Answer, frozen=True, kw_only=True):
    """A mail that is on its way: whose code it has, and what the answer is bound to besides."""

    attestor: str
    attestor_peer: str
    peer: str
    token: str
    until_ms: int


class AttestRefusal(Answer, frozen=True, kw_only=True):
    """An attestor that was asked and said no, or could not be asked."""

    attestor: str
    why: str
    reason: str


class AttestAnswer(Answer, frozen=True, kw_only=True):
    """How this participant stands. ``until_ms`` is when it stops being attested, 0 when it is not or never stops.

    ``attestors`` are those that the network trusts, ``reachable`` those that answer now (None: nobody was asked).
    """

    schema: str = "autoresearch.attest/1"
    participant: str
    attested: bool
    reason: str
    until_ms: int = 0
    needed: int
    attestors: int
    reachable: int | None = None
    attestations: list[AttestationView] = msgspec.field(default_factory=list)
    awaited: list[CodeView] = msgspec.field(default_factory=list)
    refused: list[AttestRefusal] = msgspec.field(default_factory=list)


class AttestorAct(Answer, frozen=True, kw_only=True):
    """One thing that this attestor did: mailed, attested, refused (``why`` says it), withdrawn or allowed.

    Never an address.
    """

    time_ms: int
    what: str
    why: str
    reason: str
    participant: str
    peer: str
    tag: str
    domain: str


class AttestorAnswer(Answer, frozen=True, kw_only=True):
    """What this attestor did, the newest first, and how often in all."""

    schema: str = "autoresearch.attestor/1"
    attestor: str
    trusted: bool
    mailed: int
    attested: int
    refused: int
    acts: list[AttestorAct]
