"""Who counts here and why, who could, and what a participant waits for that joined with an invite."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from autoresearch.answers.participants import named
from autoresearch.answers.voters import too_few, way_to_count
from autoresearch.api import CandidateView, StatusAnswer, VotersAnswer, VoterView
from autoresearch.errors import UsageError
from autoresearch.log import Log
from autoresearch.networks import parse_key
from autoresearch.verification import network_rules
from autoresearch.views import in_snapshot, joins_of, participant_with_key, roster_of
from autoresearch.words import Counts

# Of all who signed something here; those who ask to count come first.
CANDIDATES_MAX = 100
_ORDER = list(Counts)


@in_snapshot
def voters_answer(log: Log, me: bytes | None, now_ms: int, *, seen: Mapping[bytes, int] | None = None) -> VotersAnswer:
    """Who counts now, and who could. ``me`` is a device key; ``seen`` tells when devices were last connected."""
    roster = roster_of(log)
    own, is_named = roster.voter(me, now_ms) if me else None, log.trust.names_anybody
    way = way_to_count(log, own.root, now_ms, seen=seen) if is_named and own and not own.attested else ""
    voters = [found for root in roster.counted(now_ms) if (found := voter_view(log, root, now_ms))]
    mine = own.root.hex() if own else ""
    return VotersAnswer(
        network=log.network.id.hex(),
        named=is_named,
        founder=own is not None and own.root in log.trust.founders,
        voters=[_with_me(voter, mine) for voter in sorted(voters, key=_order)],
        least=network_rules(log.network).least,
        note=too_few(log) if is_named else "",
        way=way,
        candidates=_candidates(log, mine, now_ms),
    )


def with_voter(
    log: Log, answer: StatusAnswer, root: bytes, now_ms: int, *, seen: Mapping[bytes, int] | None = None
) -> StatusAnswer:
    """The status of a node with how its participant, this root key, counts. See :func:`voters_answer`."""
    if not log.trust.names_anybody:
        return answer
    attested = bool(answer.device_key) and roster_of(log).voter(bytes.fromhex(answer.device_key), now_ms).attested
    voter = voter_view(log, root, now_ms) if attested else None
    way = "" if attested else way_to_count(log, root, now_ms, seen=seen)
    return msgspec.structs.replace(answer, attested=attested, voter=voter, to_count=way, note=too_few(log))


def voter_view(log: Log, root: bytes, now_ms: int) -> VoterView | None:
    """Why a participant counts; None when it does not."""
    roster, participant = roster_of(log), participant_with_key(log, root)
    decision = roster.decisions.get(root)
    if root in log.trust.founders:
        return VoterView(participant=participant, why=Counts.FOUNDER)
    if root in roster.admitted and decision:
        return VoterView(
            participant=participant,
            why=Counts.ADMITTED,
            by=participant_with_key(log, decision.founder),
            since_ms=decision.time_ms,
            token=decision.token.hex() if decision.token else "",
        )
    if root in log.trust.participants:
        return VoterView(participant=participant, why=Counts.BY_HAND)
    return VoterView(participant=participant, why=Counts.ATTESTED) if roster.voter(root, now_ms).attested else None


@in_snapshot
def named_participant(log: Log, text: str, *, author: bytes | None) -> bytes:
    """The root key that a founder means: a whole key, or what :func:`named` takes. Raises AutoresearchError."""
    try:
        return parse_key(text.strip())
    except UsageError:
        roots = named(log, text, author=author)
    if len(roots) > 1:
        listed = ", ".join(sorted(participant_with_key(log, root).short for root in roots))
        raise UsageError(f"“{text[:80]}” has several root keys: {listed}", hint="name one of them")
    return next(iter(roots))


def _order(voter: VoterView) -> tuple[int, int, str]:
    """Founders first, then admitted ones in their order, then the others."""
    return _ORDER.index(Counts(voter.why)), voter.since_ms, voter.participant.key


def _with_me(voter: VoterView, mine: str) -> VoterView:
    return msgspec.structs.replace(voter, me=voter.participant.key == mine)


def _candidates(log: Log, mine: str, now_ms: int) -> list[CandidateView]:
    """Participants in the log that don't count: those that joined with an invite first, the newest first."""
    roster, joined = roster_of(log), joins_of(log)
    speaking = {voter.root for device in log.devices.all() if (voter := roster.voter(device, now_ms)).root != device}
    roots = [root for root in speaking | joined.keys() if not roster.voter(root, now_ms).attested]
    found = []
    for root in sorted(roots, key=lambda root: (-joined.get(root, 0), root))[:CANDIDATES_MAX]:
        decision = roster.decisions.get(root)
        found.append(
            CandidateView(
                participant=participant_with_key(log, root),
                joined_ms=joined.get(root, 0),
                dismissed_ms=decision.time_ms if decision and not decision.admits else 0,
                me=root.hex() == mine,
            )
        )
    return found
