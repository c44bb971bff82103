"""Who counts in a network, why, and who could."""

from __future__ import annotations

from autoresearch.api.base import Answer
from autoresearch.api.participants import NOBODY, ParticipantView


class VoterView(Answer, frozen=True, kw_only=True):
    """A participant whose verifications count. ``why`` is "founder", "admitted", "named by hand" or "attested".

    ``by`` is the founder that admitted it at ``since_ms``; ``token``: with the invite that has this token.
    """

    participant: ParticipantView
    why: str
    by: ParticipantView = NOBODY
    since_ms: int = 0
    token: str = ""
    me: bool = False


class CandidateView(Answer, frozen=True, kw_only=True):
    """A participant in the log that does not count. ``joined_ms``: when it joined with an invite that admits, 0: not.

    ``dismissed_ms`` is when a founder dismissed it, 0: never.
    """

    participant: ParticipantView
    joined_ms: int = 0
    dismissed_ms: int = 0
    me: bool = False


class VotersAnswer(Answer, frozen=True, kw_only=True):
    """The participants that count in a network, and others in its log. It takes ``least`` to confirm a run.

    ``note`` says how many more are needed, empty where they are enough. ``way`` is what this participant does or waits
    for so that it counts, empty when it does. ``named``: the network names its voters; else all are alike.
    """

    schema: str = "autoresearch.voters/1"
    network: str  # its id
    named: bool
    founder: bool
    voters: list[VoterView]
    least: int
    note: str = ""
    way: str = ""
    candidates: list[CandidateView] = []
