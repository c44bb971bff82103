"""Which participants published that they joined with an invite, and which of them a founder's node admits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autoresearch.identity import ADMITTED_MAX
from autoresearch.log import Log
from autoresearch.networks import Invitation, joined
from autoresearch.records import Admission, Join
from autoresearch.views.cache import cached, roster_of

# The newest are looked at: everybody may publish joins.
JOINS_MAX = 1000


def joins_of(log: Log) -> Mapping[bytes, int]:
    """By root key the time of the newest join, among the newest of all. Which founder gave the token is not known."""
    return cached(log, "joins", lambda: _joins(log), by=("join",))


def joined_ms(log: Log, root: bytes) -> int:
    """When a participant last published a join, Unix milliseconds; 0 without one."""
    keys = roster_of(log).keys_of({root})
    records = (record for key in keys for record in log.records.newest(kind="join", author=key, limit=JOINS_MAX))
    return max((record.time for record in records if _is_join(log, record.body, root)), default=0)


def founder_seen(log: Log, seen: Mapping[bytes, int]) -> tuple[bytes, int] | None:
    """The founder that was heard of last and when, by its records and by ``seen``, the times of connected devices."""
    roster, found = roster_of(log), []
    for founder in log.trust.founders:
        keys = roster.keys_of({founder})
        times = [record.time for key in keys for record in log.records.newest(author=key, limit=1)]
        found.append((max([*times, *(seen[key] for key in keys & seen.keys())], default=0), founder))
    return (max(found)[1], max(found)[0]) if found else None


def _joins(log: Log) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for record in log.records.newest(kind="join", limit=JOINS_MAX):
        if isinstance(record.body, Join) and _is_join(log, record.body, record.body.participant):
            found.setdefault(record.body.participant, record.time)
    return found


def _is_join(log: Log, body: object, root: bytes) -> bool:
    return isinstance(body, Join) and body.participant == root and joined(body, log.network.id)


def invited(log: Log, given: Sequence[Invitation], founder: bytes) -> list[Join]:
    """Those who joined with one of the invites that ``founder`` gave out, and are to be admitted; the first first.

    Each is admitted once by an invite. Who was dismissed after it was made needs another one.
    """
    by_token = {invitation.token: invitation for invitation in given}
    spent, due = spent_uses(log, founder), list[Join]()
    roster = roster_of(log)
    counting = set(roster.participants)
    joins = [record for record in log.records.of_kinds(("join",)) if isinstance(record.body, Join)]
    for record in sorted(joins, key=lambda record: (record.time, record.id)):
        join = record.body
        assert isinstance(join, Join)
        invitation = by_token.get(join.token)
        if invitation is None or join.participant in counting or len(counting) >= ADMITTED_MAX:
            continue
        admitted = spent.setdefault(join.token, set())
        decision = roster.decisions.get(join.participant)
        dismissed = decision is not None and decision.time_ms >= invitation.made_ms
        is_free = len(admitted) < invitation.uses and join.participant not in admitted and not dismissed
        if is_free and joined(join, log.network.id):
            admitted.add(join.participant)
            counting.add(join.participant)
            due.append(join)
    return due


def spent_uses(log: Log, founder: bytes) -> dict[bytes, set[bytes]]:
    """By token the participants that a founder ever admitted with it, dismissed ones as well."""
    roster, spent = roster_of(log), dict[bytes, set[bytes]]()
    for record in log.records.of_kinds(("admission",)):
        body = record.body
        if isinstance(body, Admission) and body.token and roster.voter(record.author, record.time).root == founder:
            spent.setdefault(body.token, set()).add(body.participant)
    return spent
