"""How a run differs from its parent, for people: the most important change first."""

from __future__ import annotations

import msgspec

from autoresearch.api.base import Answer


class ChangeView(msgspec.Struct, frozen=True, kw_only=True):
    """One change: a part that was ``added`` or ``dropped``, or a constant that was ``set``.

    ``name`` is that in the genome, of a part with its ``+``. ``text`` is the change in a few characters (``LR ×1.4``).
    ``before`` and ``after`` are the values as text. ``label`` says what a part is. ``place_before`` and ``place_after``
    are places on the range of a constant, 0 to 1.
    """

    name: str
    kind: str
    text: str
    before: str = ""
    after: str = ""
    label: str = ""
    place_before: float | None = None
    place_after: float | None = None


class EffectView(msgspec.Struct, frozen=True, kw_only=True):
    """What adding a part or raising a constant did to the metric in ``pairs`` of a run and its parent.

    ``better`` are the pairs that it improved. ``mean`` is in the metric's unit and sign. ``low`` and ``high`` are its
    95 % interval, null from one pair alone.
    """

    name: str
    pairs: int
    better: int
    mean: float
    low: float | None = None
    high: float | None = None


class EffectsAnswer(Answer, frozen=True, kw_only=True):
    """What each setting of a task did, the surest improvement first."""

    schema: str = "autoresearch.effects/1"
    effects: list[EffectView]
