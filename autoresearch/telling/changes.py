"""The changes between two genomes on one base, the most important first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from autoresearch.api import ChangeView
from autoresearch.proposers import PATCHES, Range, Seen, Value
from autoresearch.sanitise import one_line
from autoresearch.telling.values import TEXT_CHARACTERS, change_text, distance, pair_text, place, short_name

# More changes than these can't be credited to one of them.
JUMP = 6
# Fewer comparisons than these say nothing.
LEAST_PAIRS = 3
NAME_CHARACTERS = 64


def changes(
    before: Mapping[str, Value],
    after: Mapping[str, Value],
    ranges: Mapping[str, Range],
    seen: Mapping[str, Seen],
) -> list[ChangeView]:
    """What differs between a parent's genome and a run's, the most important first; nothing if one is unknown, empty.

    The importance is what the change did in earlier pairs times how far it moved on its range; parts count whole.
    Without earlier pairs parts come first, then what moved the farthest. A part that one lacks is not in it. Another
    constant that one lacks is left out.
    """
    if not before or not after:
        return []
    found = []
    for name in {**before, **after}:
        is_part = name.startswith("+") and isinstance(before.get(name, after.get(name)), bool)
        old, new = (before.get(name, False), after.get(name, False)) if is_part else (before.get(name), after.get(name))
        if old is None or new is None or (old == new and isinstance(old, bool) == isinstance(new, bool)):
            continue
        if is_part and isinstance(old, bool) and isinstance(new, bool):
            found.append((_order(name, 1.0, seen, is_part=True), _part(name, added=new)))
        else:
            allowed = ranges.get(name)
            moved = distance(old, new, allowed)
            found.append((_order(name, moved, seen, is_part=False), _setting(name, old, new, allowed)))
    return [change for _, change in sorted(found, key=lambda one: one[0])]


def is_jump(changes: Sequence[ChangeView]) -> bool:
    """Whether there are too many changes to credit one."""
    return len(changes) > JUMP


def _order(name: str, moved: float, seen: Mapping[str, Seen], *, is_part: bool) -> tuple[float, bool, float, str]:
    """What sorts a change: the most important is the smallest."""
    known = seen.get(name)
    effect = abs(known.mean) if known is not None and known.pairs >= LEAST_PAIRS else 0.0
    return -effect * moved if math.isfinite(effect) else 0.0, not is_part, -moved, name


def _part(name: str, *, added: bool) -> ChangeView:
    patch, words = PATCHES.get(name[1:]), ("off", "on")
    return ChangeView(
        name=one_line(name, NAME_CHARACTERS),
        kind="added" if added else "dropped",
        text=f"{'+' if added else '−'}{short_name(name[1:], TEXT_CHARACTERS - 1)}",
        before=words[not added],
        after=words[added],
        label=patch.label if patch else "",
    )


def _setting(name: str, old: Value, new: Value, allowed: Range | None) -> ChangeView:
    before, after = pair_text(old, new)
    return ChangeView(
        name=one_line(name, NAME_CHARACTERS),
        kind="set",
        text=change_text(name, old, new, allowed),
        before=before,
        after=after,
        place_before=place(old, allowed),
        place_after=place(new, allowed),
    )
