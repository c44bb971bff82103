"""Evidence against the authors of records."""

from __future__ import annotations

from autoresearch.api.base import Answer
from autoresearch.api.participants import ParticipantView


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


class EvidenceListAnswer(Answer, frozen=True, kw_only=True):
    """What records prove against who signed them, the newest first."""

    schema: str = "autoresearch.evidence_list/1"
    evidence: list[EvidenceView]


class EvidenceStep(Answer, frozen=True, kw_only=True):
    """One thing that was looked at: what the record states, what was found here.

    ``agrees`` is null where there is nothing to compare.
    """

    what: str
    stated: str
    found: str
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
