"""What a participant is called wherever people look: by its root key, as short as it can be, and the name it chose.

Names are chosen freely and prove nothing, so none is given without the key. Of the key there is as much as tells it
from every other here: what is shown can be typed again, and somebody who makes a key with the same beginning makes
both longer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from autoresearch.log import Log
from autoresearch.plain import plain_name
from autoresearch.views.memory import remembered, roster_of
from autoresearch.views.models import Who

SHORT_CHARACTERS = 8
# So much more than what another key shares.
_MORE_CHARACTERS = 4


class _Keys:
    """All keys of a log, to shorten one by."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._sorted = sorted(key.hex() for key in set(keys))

    def short(self, key: bytes) -> str:
        """As much of a key as no other key begins with."""
        text = key.hex()
        at = bisect_left(self._sorted, text)
        others = [other for other in self._sorted[max(at - 1, 0) : at + 2] if other != text]
        shared = max((_shared(text, other) for other in others), default=0)
        return text[: SHORT_CHARACTERS if shared < SHORT_CHARACTERS else shared + _MORE_CHARACTERS]


def _shared(text: str, other: str) -> int:
    """With how many characters two keys begin alike."""
    return next((at for at, (a, b) in enumerate(zip(text, other, strict=True)) if a != b), len(text))


def who(log: Log, device: bytes, time_ms: int) -> Who:
    """Who stands behind what a device signed at a time."""
    return who_is(log, roster_of(log).voice(device, time_ms).root)


def who_is(log: Log, root: bytes) -> Who:
    """The participant with this root key; a device that no root key names stands for itself."""
    trust = log.trust
    keys = remembered(log, "keys", lambda: _Keys((*log.everybody(), *trust.attestors, *trust.participants)))
    return Who(participant=root.hex(), short=keys.short(root), name=plain_name(roster_of(log).name(root)))
