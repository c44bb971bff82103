"""The voters of a network, for people: who counts and why, who could, how many are missing, what to do about it.

Also what a participant waits for that joined with an invite.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from autoresearch.ask.lookup import named
from autoresearch.ask.node import CandidateView, StatusAnswer, VotersAnswer, VoterView
from autoresearch.errors import AmbiguousId, Refused, UsageError
from autoresearch.judging.committee import network_rules
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import in_snapshot, roster_of
from autoresearch.log.standing.context import participant_of, participant_with_key
from autoresearch.log.standing.participants import founder_seen, joined_ms, joins_of
from autoresearch.log.standing.precedence import is_banned
from autoresearch.log.standing.verification import voters_at
from autoresearch.record.kinds import Admission
from autoresearch.record.record import DAY_MS, Record
from autoresearch.trust.roster import is_admission
from autoresearch.words import Counts

HOUR_MS, MINUTE_MS = 3_600_000, 60_000
# A founder's node that is up admits within a second of seeing the join; on a busy machine it takes several.
ADMISSION_MS = 20_000
_KEY = re.compile(r"[0-9a-f]{4,64}")


def way_to_count(
    log: Log, root: bytes, now_ms: int, *, seen: Mapping[bytes, int] | None = None, joins: bool = False
) -> str:
    """What an unattested participant does to become a voter, or what it waits for.

    ``seen`` tells when devices were last connected to this node, in Unix milliseconds. ``joins``: an invite that admits
    is kept here, whether or not its join is published yet.
    """
    trust = log.trust
    if trust.founders and (since_ms := joined_ms(log, root)):
        return _waiting(log, root, since_ms, now_ms, seen or {})
    if trust.founders and joins:
        return "wait: the daemon tells the founder's node that you joined with its invite"
    if len(trust.attestors) >= trust.needed:
        return "autoresearch node id attest you@example.org"
    if trust.founders:
        return f"a founder admits you: autoresearch network admit {root.hex()}"
    if trust.names_anybody:
        return f"on the others' machines: autoresearch network trust {root.hex()} --participant"
    return "found a network in which you count: autoresearch network new NAME --for lab"


@in_snapshot
def awaits_admission(log: Log, root: bytes) -> bool:
    """Whether a participant joined with an invite that no founder has answered yet."""
    return bool(joined_ms(log, root)) and root not in roster_of(log).decisions


def _waiting(log: Log, root: bytes, since_ms: int, now_ms: int, seen: Mapping[bytes, int]) -> str:
    """What a participant waits for that joined with an invite."""
    word = roster_of(log).decisions.get(root)
    if word and not is_admission(word) and word.time > since_ms:
        return f"ask the founder who dismissed you: {participant_of(log, word.author, word.time).short}"
    founder_last = founder_seen(log, seen)
    if founder_last is None or not founder_last[1]:
        return "wait for the founder's node, of which nothing has come here yet: autoresearch network peers"
    founder, ago_ms = participant_with_key(log, founder_last[0]), now_ms - founder_last[1]
    if ago_ms < MINUTE_MS and now_ms - since_ms > ADMISSION_MS:
        spent = "its node is up and did not admit you, so most likely yours was used up or has ended"
        return f"ask the founder ({founder.short}) for another invite and join with it: {spent}"
    lately = "just now" if ago_ms < MINUTE_MS else f"{_span(ago_ms)} ago"
    return f"wait for the founder's node ({founder.short}), which was last seen {lately}"


def too_few(log: Log) -> str:
    """Why nothing can be confirmed now, and what to do; empty where there are enough participants."""
    least, age_ms = network_rules(log.network).least, network_rules(log.network).age_ms
    now_ms = log.records.newest_ms()
    attested, counted = roster_of(log).count(now_ms), roster_of(log).count(now_ms - age_ms)
    if counted >= least:
        return ""
    if attested >= least:
        few = f"nothing is confirmed with fewer than {least} attested participants"
        return f"{few}; {attested} are, not all for {_span(age_ms)}: wait until they are, then publish"
    missing = least - attested
    return f"{missing} more participant{'s' if missing > 1 else ''} and runs can be confirmed → {_way(log)}"


def too_few_then(log: Log, run: Record) -> str:
    """Why nothing confirms a run in a network that is or was too small, and what to do; empty where it was not."""
    least, voters = network_rules(log.network).least, voters_at(log, run)
    if voters >= least:
        return ""
    if now := too_few(log):
        return now
    count = "there was 1" if voters == 1 else f"there were {voters or 'none'}"
    return (
        f"nothing is confirmed with fewer than {least} attested participants ({count} when it was published): "
        "what is built upon it now can be"
    )


@in_snapshot
def nothing_to_verify(log: Log, device: bytes, now_ms: int) -> str:
    """Why a node that is asked to verify runs has nothing to do."""
    me = roster_of(log).voter(device, now_ms)
    if not log.trust.names_anybody:
        return f"this network attests nobody, so there is nothing to verify → {way_to_count(log, me.root, now_ms)}"
    if not me.attested:
        return "this participant is unattested: its verifications do not count"
    if is_banned(log, me.voter, now_ms, device=device, seq=2**62):
        return "this participant is banned for a while → autoresearch network credit me"
    return "this node is drawn for no verification now"


def works_alone(log: Log, task: bytes) -> bool:
    """Whether the network attests nobody and all runs of a task are of one device: nobody else is concerned."""
    return not log.trust.names_anybody and log.runs.count_authors(task) == 1


def _way(log: Log) -> str:
    """How others come to be attested."""
    trust = log.trust
    if len(trust.attestors) >= trust.needed:
        return "there: autoresearch node id attest you@example.org"
    if trust.founders:
        return "a founder runs: autoresearch network invite"
    if trust.names_anybody:
        return "on every machine: autoresearch network trust KEY --participant"
    return "in a network that names them: autoresearch network new NAME --for lab"


def _span(milliseconds: int) -> str:
    days, hours = milliseconds // DAY_MS, milliseconds // HOUR_MS
    return f"{days} d" if days else f"{hours} h" if hours else f"{milliseconds // MINUTE_MS} min"


# Of all who signed something here; those who ask to count come first.
CANDIDATES_MAX = 100
_ORDER = list(Counts)


@in_snapshot
def voters_answer(
    log: Log, root: bytes | None, now_ms: int, *, seen: Mapping[bytes, int] | None = None
) -> VotersAnswer:
    """Who counts now, and who could. ``root`` is the key of the participant that asks, whether or not a record has it.

    ``seen`` tells when devices were last connected, in Unix milliseconds.
    """
    roster, is_named = roster_of(log), log.trust.names_anybody
    attested = root is not None and roster.voter(root, now_ms).attested
    way = way_to_count(log, root, now_ms, seen=seen) if is_named and root and not attested else ""
    voters = [view for each in roster.counted(now_ms) if (view := voter_view(log, each, now_ms))]
    mine = root.hex() if root else ""
    return VotersAnswer(
        network=log.network.id.hex(),
        named=is_named,
        founder=root in log.trust.founders,
        voters=[
            msgspec.structs.replace(voter, me=voter.participant.key == mine) for voter in sorted(voters, key=_order)
        ],
        least=network_rules(log.network).least,
        note=too_few(log) if is_named else "",
        way=way,
        candidates=_candidates(log, mine, now_ms),
    )


def with_voter(
    log: Log,
    answer: StatusAnswer,
    root: bytes,
    now_ms: int,
    *,
    seen: Mapping[bytes, int] | None = None,
    joins: bool = False,
) -> StatusAnswer:
    """The status of a node with how its participant, this root key, counts. See :func:`way_to_count`."""
    if not log.trust.names_anybody:
        return answer
    attested = bool(answer.device_key) and roster_of(log).voter(bytes.fromhex(answer.device_key), now_ms).attested
    voter = voter_view(log, root, now_ms) if attested else None
    is_counted = roster_of(log).voter(root, now_ms).attested
    way = "" if is_counted else way_to_count(log, root, now_ms, seen=seen, joins=joins)
    voter = voter and msgspec.structs.replace(voter, me=True)
    return msgspec.structs.replace(answer, attested=attested, voter=voter, to_count=way, note=too_few(log))


def voter_view(log: Log, root: bytes, now_ms: int) -> VoterView | None:
    """Why a participant counts; None when it does not."""
    roster, participant = roster_of(log), participant_with_key(log, root)
    word = roster.decisions.get(root)
    if root in log.trust.founders:
        return VoterView(participant=participant, why=Counts.FOUNDER)
    if root in roster.admitted and word is not None and isinstance(word.body, Admission):
        return VoterView(
            participant=participant,
            why=Counts.ADMITTED,
            by=participant_of(log, word.author, word.time),
            since_ms=word.time,
            token=word.body.token.hex() if word.body.token else "",
        )
    if root in log.trust.participants:
        return VoterView(participant=participant, why=Counts.BY_HAND)
    return VoterView(participant=participant, why=Counts.ATTESTED) if roster.voter(root, now_ms).attested else None


@in_snapshot
def named_participant(log: Log, text: str, *, author: bytes | None) -> bytes:
    """The root key that a founder means: a root key, the beginning of one, or what :func:`named` takes.

    Raises:
        Refused: it is the key of a device, so that its participant has another one.
        AutoresearchError: it names nobody, or several.
    """
    roster, key = roster_of(log), text.strip().lower()
    if _KEY.fullmatch(key):
        keys = roster.roots | roster.participants | roster.decisions.keys() | joins_of(log).keys()
        roots = sorted(root for root in keys if root.hex().startswith(key))
        if len(roots) > 1:
            raise AmbiguousId(f"{key[:80]} can mean several participants.", [root.hex() for root in roots[:10]])
        if roots:
            return roots[0]
        for device in log.devices.all():
            if device.hex().startswith(key):
                _refuse_device(log, device)
    named_roots = named(log, text, author=author)
    if len(named_roots) > 1:
        listed = ", ".join(sorted(participant_with_key(log, root).short for root in named_roots))
        raise UsageError(f"“{text[:80]}” has several root keys: {listed}", hint="name one of them")
    return next(iter(named_roots))


def check_participant(log: Log, key: bytes) -> None:
    """Raises Refused where a key is a device's, or no record names a participant with it: it would be a ghost voter."""
    if key in roster_of(log).roots:
        return
    _refuse_device(log, key)
    if key not in joins_of(log):
        raise Refused(
            f"no record here names a participant with the key {key.hex()[:8]}",
            hint="its records come once its node was connected: autoresearch network peers",
        )


def _refuse_device(log: Log, key: bytes) -> None:
    for root in sorted(roster_of(log).owners(key)):
        raise Refused(
            f"{key.hex()[:8]} is a device key: a participant is named by its root key",
            hint=f"this device's participant is {participant_with_key(log, root).short}",
        )


def _order(voter: VoterView) -> tuple[int, int, str]:
    """Founders first, then admitted ones in their order, then the others."""
    return _ORDER.index(Counts(voter.why)), voter.since_ms, voter.participant.key


def _candidates(log: Log, mine: str, now_ms: int) -> list[CandidateView]:
    """Participants in the log that don't count: those that joined with an invite first, the newest first."""
    roster, joined = roster_of(log), joins_of(log)
    speaking = {voter.root for device in log.devices.all() if (voter := roster.voter(device, now_ms)).root != device}
    roots = [root for root in speaking | joined.keys() if not roster.voter(root, now_ms).attested]
    candidates = []
    for root in sorted(roots, key=lambda root: (-joined.get(root, 0), root))[:CANDIDATES_MAX]:
        word = roster.decisions.get(root)
        candidates.append(
            CandidateView(
                participant=participant_with_key(log, root),
                joined_ms=joined.get(root, 0),
                dismissed_ms=word.time if word and not is_admission(word) else 0,
                me=root.hex() == mine,
            )
        )
    return candidates
