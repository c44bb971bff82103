"""Who counts in a network, and the invites that admit, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autoresearch.api import CandidateView, VoterView
from autoresearch.figures import age, counted, moment
from autoresearch.words import Counts
from autoresearch_cli.models import InvitationRow
from autoresearch_cli.rendering.names import person

TOKEN_CHARACTERS = 8


def reason(voter: VoterView, now_ms: int) -> str:
    """Why a participant counts: founder, admitted by whom and when, named by hand, attested."""
    if voter.why != Counts.ADMITTED:
        return voter.why
    way = f", with invite {voter.token[:TOKEN_CHARACTERS]}" if voter.token else ""
    return f"{voter.why} by {person(voter.by)} {age(voter.since_ms, now_ms)}{way}"


def voter_lines(voters: Sequence[VoterView], note: str, way: str, now_ms: int) -> Iterator[tuple[str, str]]:
    """Who counts and why, how many more it takes, and what this participant does so that it counts."""
    for voter in voters:
        yield "counts", f"{person(voter.participant)} · {reason(voter, now_ms)}{' · you' if voter.me else ''}"
    if way:
        yield "you", f"you do not count yet → {way}"
    if note:
        yield "needed", note


def candidate(row: CandidateView, now_ms: int) -> tuple[str, str]:
    """A participant that does not count, as a line."""
    parts = ["you"] if row.me else []
    parts += [f"joined with an invite {age(row.joined_ms, now_ms)}"] if row.joined_ms else []
    parts += [f"dismissed {age(row.dismissed_ms, now_ms)}"] if row.dismissed_ms else []
    return person(row.participant), ", ".join(parts) or "does not count"


def invitation(row: InvitationRow, now_ms: int) -> tuple[str, str]:
    """An invite that admits, as a line."""
    left = f"until {moment(row.expires_ms)}" if row.state == "open" else row.state
    return row.token[:TOKEN_CHARACTERS], (
        f"{left} · admitted {len(row.admitted)} of {counted(row.uses, 'participant')} · made {age(row.made_ms, now_ms)}"
    )
