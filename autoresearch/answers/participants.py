"""Which participant is meant by what a person typed: me, the beginning of a key, or a name."""

from __future__ import annotations

import re

from autoresearch.errors import AmbiguousId, NotFound, UsageError
from autoresearch.log import Log
from autoresearch.sanitise import one_line, plain_name
from autoresearch.views import participant_with_key, roster_of

_KEY = re.compile(r"[0-9a-f]{4,64}")


def named(log: Log, text: str, *, author: bytes | None) -> frozenset[bytes]:
    """The root keys of the one participant that is meant; of several only where one mailbox is behind them.

    ``text`` is ``me``, the beginning of a device's, a root or a participant's key, or a name that only one has.
    ``author`` is this node's device key.

    Raises:
        NotFound: there is no such participant, or ``me`` has no key.
        AmbiguousId: several are called so.
        UsageError: that is no key, and nobody's name.
    """
    roster, newest_ms = roster_of(log), log.records.newest_ms()
    if text == "me":
        if author is None:
            raise NotFound("This machine has no key yet.", hint="autoresearch id new")
        return frozenset({roster.voter(author, newest_ms).root})
    key, name = text.strip().lower(), plain_name(text)
    is_key = _KEY.fullmatch(key) is not None
    by_key: dict[bytes, set[bytes]] = {}  # root keys by voter
    by_name: dict[bytes, set[bytes]] = {}
    for device in log.devices.all():
        voter = roster.voter(device, newest_ms)
        if is_key and any(one.hex().startswith(key) for one in (device, voter.root, voter.voter)):
            by_key.setdefault(voter.voter, set()).add(voter.root)
        if name and plain_name(roster.name(voter.root)) == name:
            by_name.setdefault(voter.voter, set()).add(voter.root)
    found = by_key or by_name
    if len(found) > 1:
        called = sorted(participant_with_key(log, min(roots)).short for roots in found.values())
        raise AmbiguousId(f"{one_line(text, 80)} can mean several participants.", called[:10])
    if found:
        return frozenset(*found.values())
    if is_key:
        raise NotFound(f"Nobody whose key begins with {key} has signed anything here.", hint="autoresearch credit")
    hint = "me, at least four digits of a key, or a name that only one has: autoresearch credit"
    raise UsageError(f"“{one_line(text, 80)}” names no participant.", hint=hint)
