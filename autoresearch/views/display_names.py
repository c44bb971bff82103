"""Display names: the shortened root key of a participant, and the name that it chose.

Names are chosen freely and prove nothing, so none is shown without the key. The key is shortened as far as it stays
different from every other key in the log. So what is shown can be typed as input. A new key with the same beginning
makes both longer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from autoresearch.api import ParticipantView
from autoresearch.log import Log
from autoresearch.sanitise import plain_name
from autoresearch.views.cache import cached, devices_of, roster_of

SHORT_CHARACTERS = 8
# So much more than what another key shares.
_MORE_CHARACTERS = 4


class _Keys:
    """All keys of a log, to shorten one by."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._sorted = sorted(key.hex() for key in set(keys))

    def short(self, key: bytes) -> str:
        """The beginning of a key that no other key has."""
        text = key.hex()
        at = bisect_left(self._sorted, text)
        others = [other for other in self._sorted[max(at - 1, 0) : at + 2] if other != text]
        shared = max((_shared(text, other) for other in others), default=0)
        return text[: SHORT_CHARACTERS if shared < SHORT_CHARACTERS else shared + _MORE_CHARACTERS]


def _shared(text: str, other: str) -> int:
    """The length of the common beginning of two keys."""
    return next((at for at, (a, b) in enumerate(zip(text, other, strict=True)) if a != b), len(text))


def participant_of(log: Log, device: bytes, time_ms: int) -> ParticipantView:
    """The participant behind what a device signed at a time."""
    return participant_with_key(log, roster_of(log).voter(device, time_ms).root)


def participant_with_key(log: Log, root: bytes) -> ParticipantView:
    """The participant with this root key. A device without a root key is its own participant."""
    trust = log.trust
    keys = cached(log, "keys", lambda: _Keys((*devices_of(log), *trust.attestors, *roster_of(log).participants)), by=())
    return ParticipantView(key=root.hex(), short=keys.short(root), name=plain_name(roster_of(log).name(root)))
