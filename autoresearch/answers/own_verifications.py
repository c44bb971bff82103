"""This node's own part in verification: what it checked today, and what share of its time went there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from autoresearch.api import VerifyingStatus
from autoresearch.log import Log
from autoresearch.records import DAY_MS, Record, Run, Verification
from autoresearch.views import in_snapshot

# No device publishes more in a day than peers keep.
_ALL = 1_000_000


class _Known(NamedTuple):
    """The answer for a day, and how many own records there were then."""

    author: bytes
    day: int
    own: int
    status: VerifyingStatus


_known: WeakKeyDictionary[Log, _Known] = WeakKeyDictionary()


@in_snapshot
def verifying_status(log: Log, author: bytes, now_ms: int) -> VerifyingStatus:
    """What a device verified in the UTC day of ``now_ms``, and the share of its computing time that this took."""
    asked = author, now_ms // DAY_MS, log.records.count(author=author)
    known = _known.get(log)
    if known is not None and known[:3] == asked:
        return known.status
    since_ms = now_ms // DAY_MS * DAY_MS
    checks = log.records.newest(kind="verification", author=author, since_ms=since_ms, limit=_ALL)
    runs = log.records.newest(kind="run", author=author, since_ms=since_ms, limit=_ALL)
    verifying_ms, running_ms = _spent(checks), _spent(runs)
    whole = verifying_ms + running_ms
    status = VerifyingStatus(
        today=len(checks), spent_ms=verifying_ms, share=verifying_ms / whole if whole else 0.0, runs_today=len(runs)
    )
    _known[log] = _Known(*asked, status)
    return status


def _spent(records: Sequence[Record]) -> int:
    return sum(record.body.duration_ms for record in records if isinstance(record.body, Run | Verification))
