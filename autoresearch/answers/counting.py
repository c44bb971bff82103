"""Whose word counts here, how many are missing, and what to do about it: sentences for people."""

from __future__ import annotations

from autoresearch.log import Log
from autoresearch.records import DAY_MS, Record
from autoresearch.verification import network_rules
from autoresearch.views import is_banned, roster_of, voices_at

HOUR_MS = 3_600_000


def way_to_count(log: Log, root: bytes) -> str:
    """What a participant does whom nobody attested, so that its word counts."""
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
    there, counted = len(roster_of(log).voices(now_ms)), len(roster_of(log).voices(now_ms - age_ms))
    if counted >= least:
        return ""
    few = f"nothing is confirmed with fewer than {least} attested participants"
    if there >= least:
        return f"{few}; {there} are, not all for {_span(age_ms)}: wait until they are, then publish"
    return f"{few} ({_are(there)}): {least - there} more {'is' if least - there == 1 else 'are'} needed → {_way(log)}"


def too_few_then(log: Log, run: Record) -> str:
    """Why nothing confirms a run in a network that is or was too small, and what to do; empty where it was not."""
    least, voices = network_rules(log.network).least, voices_at(log, run)
    if voices >= least:
        return ""
    if now := too_few(log):
        return now
    return (
        f"nothing is confirmed with fewer than {least} attested participants ({_were(voices)} when it was published): "
        "what is built upon it now can be"
    )


def counts(log: Log, device: bytes, now_ms: int) -> bool | None:
    """Whether the word of who is behind a device counts; None where the network names nobody."""
    if not log.trust.attestors and not log.trust.participants:
        return None
    return roster_of(log).voice(device, now_ms).attested


def nothing_to_verify(log: Log, device: bytes, now_ms: int, task: bytes | None = None) -> str:
    """Why a node that is asked to verify runs of ``task`` has nothing to do."""
    me = roster_of(log).voice(device, now_ms)
    if not log.trust.attestors and not log.trust.participants:
        return f"this network names nobody whose word counts, so nobody verifies → {way_to_count(log, me.root)}"
    if not me.attested:
        return f"this network does not count this participant's word → {way_to_count(log, me.root)}"
    if is_banned(log, me.voice, now_ms, device=device, seq=2**62):
        return "this participant's word does not count for a while → autoresearch credit me"
    if task is not None and not log.ranked(task, limit=1) and any(row.digest != task for row in log.tasks()):
        return "nobody has published a run of its task → autoresearch task list, then autoresearch work TASK"
    return "nothing wants this node's verification now"


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
