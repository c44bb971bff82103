"""All attacks, in the order in which they are tried: the quick half first. Pure."""

from __future__ import annotations

from autoresearch.run.attack import (
    answering,
    coding,
    counting,
    leaving,
    modelling,
    parts,
    placing,
    reading,
    sequences,
    spending,
    stating,
    turns,
    writing,
)
from autoresearch.run.attack.target import Attack

_ALL = (
    *stating.ATTACKS,
    *leaving.ATTACKS,
    *writing.ATTACKS,
    *sequences.ATTACKS,
    *placing.ATTACKS,
    *parts.ATTACKS,
    *counting.ATTACKS,
    *reading.ATTACKS,
    *modelling.ATTACKS,
    *coding.ATTACKS,
    *answering.ATTACKS,
    *turns.ATTACKS,
    *spending.ATTACKS,
)
ATTACKS: tuple[Attack, ...] = tuple(sorted(_ALL, key=lambda attack: not attack.quick))
"""Each once, the quick half first."""
