"""Who is attested here, how many voters are missing, and what to do about it: sentences for people."""

from __future__ import annotations

from autoresearch.log import Log
from autoresearch.records import DAY_MS, Record
from autoresearch.verification import network_rules
from autoresearch.views import in_snapshot, is_banned, roster_of, statistics, voters_at

HOUR_MS = 3_600_000


def way_to_count(log: Log, root: bytes) -> str:
    """What an unattested participant does to become a voter."""
    trust = log.trust
    if len(trust.attestors) >= trust.needed:
        return "autoresearch id attest you@example.org"
    if trust.attestors or trust.participants:
        return f"on the others' machines: autoresearch network trust {root.hex()} --participant"
    return f"found a network that counts you: autoresearch network new NAME --participant {root.hex()}"


def too_few(log: Log) -> str:
    """Why nothing can be confirmed now, and what to do; empty where there are enough participants."""
    least, age_ms = network_rules(log.network).least, network_rules(log.network).age_ms
    now_ms = log.newest_ms()
    there, counted = roster_of(log).count(now_ms), roster_of(log).count(now_ms - age_ms)
    if counted >= least:
        return ""
    few = f"nothing is confirmed with fewer than {least} attested participants"
    if there >= least:
        return f"{few}; {there} are, not all for {_span(age_ms)}: wait until they are, then publish"
    return f"{few} ({_are(there)}): {least - there} more {'is' if least - there == 1 else 'are'} needed → {_way(log)}"


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


def counts(log: Log, device: bytes, now_ms: int) -> bool | None:
    """Whether the word of who is behind a device counts; None where the network names nobody."""
    if not log.trust.attestors and not log.trust.participants:
        return None
    return roster_of(log).voter(device, now_ms).attested


@in_snapshot
def nothing_to_verify(log: Log, device: bytes, now_ms: int, task: bytes | None = None) -> str:
    """Why a node that is asked to verify runs of ``task`` has nothing to do."""
    me = roster_of(log).voter(device, now_ms)
    if not log.trust.attestors and not log.trust.participants:
        return f"this network attests nobody, so there is nothing to verify → {way_to_count(log, me.root)}"
    if not me.attested:
        return f"this participant is unattested: its verifications do not count → {way_to_count(log, me.root)}"
    if is_banned(log, me.voter, now_ms, device=device, seq=2**62):
        return "this participant is banned for a while → autoresearch credit me"
    if task is not None and not log.ranked(task, limit=1) and any(row.digest != task for row in log.tasks()):
        return "its task has no published run → autoresearch task list, then autoresearch work TASK"
    return "this node is drawn for no verification now"


def works_alone(log: Log, task: bytes) -> bool:
    """Whether the network attests nobody and all runs of a task are of one device: nobody else is concerned."""
    return not log.trust.attestors and not log.trust.participants and statistics(log, task).authors == 1


def _way(log: Log) -> str:
    """How others come to be attested."""
    trust = log.trust
    if len(trust.attestors) >= trust.needed:
        return "there: autoresearch id attest you@example.org"
    if trust.attestors or trust.participants:
        return "on every machine: autoresearch network trust KEY --participant"
    return "in a network that names them: autoresearch network new NAME --participant KEY"


def _are(number: int) -> str:
    return "there is 1" if number == 1 else f"there are {number or 'none'}"


def _were(number: int) -> str:
    return "there was 1" if number == 1 else f"there were {number or 'none'}"


def _span(milliseconds: int) -> str:
    days, hours = milliseconds // DAY_MS, milliseconds // HOUR_MS
    return f"{days} d" if days else f"{hours} h"
