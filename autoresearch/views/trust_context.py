"""The trust context of a query: whether runs can be confirmed, whether trust names anybody, who asks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from autoresearch.identity import Roster
from autoresearch.log import Log
from autoresearch.verification import network_rules
from autoresearch.views.cache import roster_of


@dataclass(frozen=True)
class TrustContext:
    """The trust that a query is answered with, by the records of a log.

    ``verifying``: there are enough voters to confirm runs. ``naming``: trust names anybody. ``me`` is
    the voter of the device that asks.
    """

    verifying: bool
    naming: bool
    me: bytes | None
    roster: Roster

    @cached_property
    def mine(self) -> frozenset[bytes]:
        """All keys of the participant that asks."""
        return self.roster.keys_of({self.me}) if self.me else frozenset()


class Whose(NamedTuple):
    """Whether a run's author is attested, and whether it is the participant that asks."""

    attested: bool
    own: bool


def trust_context(log: Log, me: bytes | None = None) -> TrustContext:
    """The trust context at the time of the newest record. ``me`` is the device that asks, if it has a key."""
    naming = log.trust.names_anybody
    newest, roster = log.records.newest(limit=1) if naming else [], roster_of(log)
    if not newest:
        return TrustContext(verifying=False, naming=naming, me=None, roster=roster)
    rules, now_ms = network_rules(log.network), newest[0].time
    verifying = roster.count(now_ms - rules.age_ms) >= rules.least
    return TrustContext(verifying, naming, roster.voter(me, now_ms).voter if me else None, roster)


def whose(author: bytes, time_ms: int, here: TrustContext) -> Whose:
    """Whether an author is attested, and whether it asks. Where trust names nobody, all count as attested."""
    if not here.naming:
        return Whose(attested=True, own=False)
    voter = here.roster.voter(author, time_ms)
    return Whose(voter.attested, voter.voter == here.me)
