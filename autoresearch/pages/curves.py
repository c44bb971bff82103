"""The training curve of a run and of its parent, as the page's script reads it: of losses, or of rewards."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

MOST_POINTS = 512


class CurveData(msgspec.Struct, frozen=True, kw_only=True):
    """Losses, or an agent's mean ``rewards``, in equal parts of the training: of a ``run`` and of its ``parent``."""

    run: list[float]
    parent: list[float] = []
    rewards: bool = False


def curve_data(run: Sequence[float], parent: Sequence[float] = (), *, rewards: bool = False) -> CurveData | None:
    """The curves of a run and its parent, losses or ``rewards``; None where a run has none to draw."""
    if len(run) < 2:
        return None
    return CurveData(run=_thinned(run), parent=_thinned(parent) if len(parent) > 1 else [], rewards=rewards)


def _thinned(values: Sequence[float]) -> list[float]:
    """So many of the values, the last one among them."""
    step = -(-len(values) // MOST_POINTS)
    return list(values[::-step])[::-1]
