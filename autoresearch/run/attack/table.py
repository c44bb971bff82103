"""All attacks, in the order in which they are tried: the cheap and likely ones first."""

from __future__ import annotations

from autoresearch.run.attack import leaving, reading, stating
from autoresearch.run.attack.target import Attack

ATTACKS: tuple[Attack, ...] = (*stating.ATTACKS, *leaving.ATTACKS, *reading.ATTACKS)
