"""Claims: what participants try now."""

from __future__ import annotations

from autoresearch.api.base import Answer
from autoresearch.api.participants import NOBODY, ParticipantView


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
