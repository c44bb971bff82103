"""Which attestors a participant asks, and when again. Pure.

As many are asked as are needed, drawn anew each month so that nobody picks his own. By rendezvous hashing (Thaler and
Ravishankar, 1998) the order depends on nothing but the participant and the month, and an attestor that comes or goes
changes nothing about the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime

from autoresearch.record.record import DAY_MS

# How long a code may be on its way and in a person's hands.
CODE_MS = 30 * 60_000
# Due again when less than this is left.
DUE_MS = 30 * DAY_MS
_PURPOSE = b"autoresearch/attest/1/order\0"


def attestors_in_order(root: bytes, attestors: Iterable[bytes], *, now_ms: int) -> list[bytes]:
    """The attestors' root keys, whom to ask first coming first, in the month (UTC) of ``now_ms``."""
    month = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m").encode()
    return sorted(attestors, key=lambda attestor: hashlib.sha256(_PURPOSE + month + root + attestor).digest())
