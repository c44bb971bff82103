"""All attacks, in the order in which they are tried: the quick half first. Pure."""

from __future__ import annotations

from autoresearch.run.attack import answering, coding, leaving, modelling, parts, reading, sequences, spending, stating
from autoresearch.run.attack.target import Attack

_ALL = (
    *stating.ATTACKS,
    *leaving.ATTACKS,
    *sequences.ATTACKS,
    *parts.ATTACKS,
    *reading.ATTACKS,
    *modelling.ATTACKS,
    *coding.ATTACKS,
    *answering.ATTACKS,
    *spending.ATTACKS,
)
ATTACKS: tuple[Attack, ...] = tuple(sorted(_ALL, key=lambda attack: not attack.quick))
"""Each once, the quick half first."""
