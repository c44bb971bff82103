"""Who is attested here, how many voters are missing, and what to do about it: sentences for people."""

from __future__ import annotations

from collections.abc import Mapping

from autoresearch.log import Log
from autoresearch.records import DAY_MS, Record
from autoresearch.verification import network_rules
from autoresearch.views import (
    founder_seen,
    in_snapshot,
    is_banned,
    joined_ms,
    participant_with_key,
    roster_of,
    statistics,
    voters_at,
)

HOUR_MS, MINUTE_MS = 3_600_000, 60_000


def way_to_count(log: Log, root: bytes, now_ms: int, *, seen: Mapping[bytes, int] | None = None) -> str:
    """What an unattested participant does to become a voter, or what it waits for.

    ``seen`` tells when devices were last connected to this node, in Unix milliseconds.
    """
    trust = log.trust
    if trust.founders and (since_ms := joined_ms(log, root)):
        return _waiting(log, root, since_ms, now_ms, seen or {})
    if len(trust.attestors) >= trust.needed:
        return "autoresearch id attest you@example.org"
    if trust.founders:
        return f"a founder admits you: autoresearch network admit {root.hex()}"
    if trust.names_anybody:
        return f"on the others' machines: autoresearch network trust {root.hex()} --participant"
    return "found a network in which you count: autoresearch network new NAME --for lab"


def _waiting(log: Log, root: bytes, since_ms: int, now_ms: int, seen: Mapping[bytes, int]) -> str:
    """What a participant waits for that joined with an invite."""
    decision = roster_of(log).decisions.get(root)
    if decision and not decision.admits and decision.time_ms > since_ms:
        return f"ask the founder who dismissed you: {participant_with_key(log, decision.founder).short}"
    heard = founder_seen(log, seen)
    if heard is None or not heard[1]:
        return "wait for the founder's node, of which nothing has come here yet: autoresearch peers"
    founder, ago_ms = participant_with_key(log, heard[0]), now_ms - heard[1]
    lately = "just now" if ago_ms < MINUTE_MS else f"{_span(ago_ms)} ago"
    late = "; if it has seen you, the invite was used up or ended: ask for another" if ago_ms < MINUTE_MS else ""
    return f"wait for the founder's node ({founder.short}), which was last seen {lately}{late}"


def too_few(log: Log) -> str:
    """Why nothing can be confirmed now, and what to do; empty where there are enough participants."""
    least, age_ms = network_rules(log.network).least, network_rules(log.network).age_ms
    now_ms = log.records.newest_ms()
    there, counted = roster_of(log).count(now_ms), roster_of(log).count(now_ms - age_ms)
    if counted >= least:
        return ""
    if there >= least:
        few = f"nothing is confirmed with fewer than {least} attested participants"
        return f"{few}; {there} are, not all for {_span(age_ms)}: wait until they are, then publish"
    missing = least - there
    return f"{missing} more participant{'s' if missing > 1 else ''} and runs can be confirmed → {_way(log)}"


def too_few_then(log: Log, run: Record) -> str:
    """Why nothing confirms a run in a network that is or was too small, and what to do; empty where it was not."""
    least, voters = network_rules(log.network).least, voters_at(log, run)
    if voters >= least:
        return ""
    if now := too_few(log):
        return now
    return (
        f"nothing is confirmed with fewer than {least} attested participants ({_were(voters)} when it was published): "
        "what is built upon it now can be"
    )


@in_snapshot
def nothing_to_verify(log: Log, device: bytes, now_ms: int, task: bytes | None = None) -> str:
    """Why a node that is asked to verify runs of ``task`` has nothing to do."""
    me = roster_of(log).voter(device, now_ms)
    if not log.trust.names_anybody:
        return f"this network attests nobody, so there is nothing to verify → {way_to_count(log, me.root, now_ms)}"
    if not me.attested:
        way = way_to_count(log, me.root, now_ms)
        return f"this participant is unattested: its verifications do not count → {way}"
    if is_banned(log, me.voter, now_ms, device=device, seq=2**62):
        return "this participant is banned for a while → autoresearch credit me"
    if (
        task is not None
        and not log.programs.ranked(task, limit=1)
        and any(row.digest != task for row in log.tasks.all())
    ):
        return "its task has no published run → autoresearch task list, then autoresearch work TASK"
    return "this node is drawn for no verification now"


def works_alone(log: Log, task: bytes) -> bool:
    """Whether the network attests nobody and all runs of a task are of one device: nobody else is concerned."""
    return not log.trust.names_anybody and statistics(log, task).authors == 1


def _way(log: Log) -> str:
    """How others come to be attested."""
    trust = log.trust
    if len(trust.attestors) >= trust.needed:
        return "there: autoresearch id attest you@example.org"
    if trust.founders:
        return "a founder runs: autoresearch network invite"
    if trust.names_anybody:
        return "on every machine: autoresearch network trust KEY --participant"
    return "in a network that names them: autoresearch network new NAME --for lab"


def _were(number: int) -> str:
    return "there was 1" if number == 1 else f"there were {number or 'none'}"


def _span(milliseconds: int) -> str:
    days, hours = milliseconds // DAY_MS, milliseconds // HOUR_MS
    return f"{days} d" if days else f"{hours} h" if hours else f"{milliseconds // MINUTE_MS} min"
