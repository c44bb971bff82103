"""Who is here: whose words count in a network, and whose word a run is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from autoresearch.identity import Roster
from autoresearch.log import Log
from autoresearch.verification import network_rules
from autoresearch.views.memory import roster_of


@dataclass(frozen=True)
class Company:
    """Who is here as far as a log says: whether anything can be confirmed, whether anybody is named at all, and me.

    ``verifying``: there are enough attested participants; ``naming``: the network has attestors or named participants.
    """

    verifying: bool
    naming: bool
    me: bytes | None
    roster: Roster

    @cached_property
    def mine(self) -> frozenset[bytes]:
        """All keys whose records may be those of the one who asks."""
        return self.roster.keys_of({self.me}) if self.me else frozenset()


class Whose(NamedTuple):
    """Whose word a run is: an attested participant's, one's own."""

    attested: bool
    own: bool


def company(log: Log, me: bytes | None = None) -> Company:
    """Who is here at the time of the newest record. ``me`` is the device that asks, if it has a key."""
    naming = bool(log.trust.attestors or log.trust.participants)
    newest, roster = log.records(limit=1) if naming else [], roster_of(log)
    if not newest:
        return Company(verifying=False, naming=naming, me=None, roster=roster)
    rules, now_ms = network_rules(log.network), newest[0].time
    verifying = len(roster.voices(now_ms - rules.age_ms)) >= rules.least
    return Company(verifying, naming, roster.voice(me, now_ms).voice if me else None, roster)


def whose(author: bytes, time_ms: int, here: Company) -> Whose:
    """Whether an author is attested, where the network names anybody, and is the one who asks."""
    if not here.naming:
        return Whose(attested=True, own=False)
    voice = here.roster.voice(author, time_ms)
    return Whose(voice.attested, voice.voice == here.me)
