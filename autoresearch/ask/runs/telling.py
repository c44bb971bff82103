"""How a run differs from its parent, for people: changes in a few characters each, the most important first.

Also the headline made of them; why the run was tried, in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from autoresearch.ask.runs.answers import ChangeView
from autoresearch.log.tables.differences import differing
from autoresearch.propose.program.edits import NO_PATCHES, Patches
from autoresearch.propose.program.ranges import LARGEST, Value, ValueRange
from autoresearch.propose.program.space import Parameter
from autoresearch.propose.search.effects import Effect
from autoresearch.text import one_line

TEXT_CHARACTERS = 24
# Of a name at least so many characters are shown, then of the values what is left.
_NAME_LEAST = 8
_VALUE_CHARACTERS = 64
# From here on a number is shown with an exponent.
_MANY_DIGITS = 1_000_000
# From here on a factor is shown without decimals.
_LARGE_FACTOR = 10


def place(value: Value, allowed: ValueRange | None) -> float | None:
    """The place of a value on its range, 0 to 1; None where it has none."""
    if allowed is None or not _is_number(value):
        return None
    parameter = Parameter("", allowed, value)
    if not parameter.ordered or (allowed.kind == "log" and not float(value) > 0):
        return None
    return min(1.0, max(0.0, parameter.place(value)))


def distance(before: Value, after: Value, allowed: ValueRange | None) -> float:
    """The part of its range that a constant moved, 0 to 1; 1 where values are only equal or different.

    Without a range it is the relative change.
    """
    old, new = place(before, allowed), place(after, allowed)
    if old is not None and new is not None:
        return abs(new - old)
    if allowed is None and _is_number(before) and _is_number(after):
        low, high = sorted((float(before), float(after)))
        return min(1.0, (high - low) / max(abs(low), abs(high)))
    return 1.0


def value_text(value: Value, digits: int = 3) -> str:
    """A value on its own: ``on``, ``0.0012``, ``gelu``."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= _MANY_DIGITS):
        return f"{value:.{digits}g}"
    return one_line(str(value), _VALUE_CHARACTERS)


def pair_text(before: Value, after: Value) -> tuple[str, str]:
    """Two different values, numbers with as many digits as tell them apart."""
    digits = 3
    if _is_number(before) and _is_number(after) and before != after:
        while value_text(before, digits) == value_text(after, digits):
            digits += 1
    return value_text(before, digits), value_text(after, digits)


def change_text(name: str, before: Value, after: Value, allowed: ValueRange | None) -> str:
    """A change in at most 24 characters: ``LR ×1.4`` on a logarithmic range, else ``DEPTH 3→4``."""
    factor = _factor(before, after) if allowed is not None and allowed.kind == "log" else ""
    if factor:
        return f"{short_name(name, TEXT_CHARACTERS - len(factor) - 1)} {factor}"
    old, new = pair_text(before, after)
    room = (TEXT_CHARACTERS - _NAME_LEAST - 2) // 2
    if len(old) + len(new) > 2 * room:
        left = max(room, 2 * room - min(len(old), len(new)))
        old, new = one_line(old, left), one_line(new, max(room, 2 * room - min(len(old), left)))
    values = f"{old}→{new}"
    return f"{short_name(name, TEXT_CHARACTERS - len(values) - 1)} {values}"


def short_name(name: str, characters: int) -> str:
    """A name of at most so many characters: of a long one the last part, behind its file and its section."""
    line = one_line(name)
    for mark in (":", "."):
        if len(line) > characters and line.rpartition(mark)[2]:
            line = line.rpartition(mark)[2]
    return one_line(line, characters)


def _factor(before: Value, after: Value) -> str:
    """How many times larger or smaller a number is; empty where no factor of a few digits says it."""
    if not (_is_number(before) and _is_number(after) and float(before) > 0 and float(after) > 0):
        return ""
    up = float(after) >= float(before)
    factor = float(after) / float(before) if up else float(before) / float(after)
    for digits in (2, 3):
        text = f"{factor:.0f}" if _LARGE_FACTOR <= factor < _MANY_DIGITS else f"{factor:.{digits}g}"
        if text != "1" and factor < LARGEST:
            return f"{'×' if up else '÷'}{text}"
    return ""


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST < value < LARGEST


# More changes than these can't be credited to one of them.
JUMP = 6
# Fewer comparisons than these say nothing.
LEAST_PAIRS = 3
NAME_CHARACTERS = 64


def changes(
    before: Mapping[str, Value],
    after: Mapping[str, Value],
    ranges: Mapping[str, ValueRange],
    seen: Mapping[str, Effect],
    patches: Patches = NO_PATCHES,
    *,
    same_base: bool = True,
) -> list[ChangeView]:
    """What differs between a parent's settings and a run's, the most important first; nothing if one is unknown, empty.

    The importance is what the change did in earlier pairs times how far it moved on its range; parts count whole.
    Without earlier pairs parts come first, then what moved the farthest. Which settings differ says
    :func:`~autoresearch.log.tables.differences.differing`. ``patches`` are those of the task.
    """
    ordered = []
    for name, (old, new) in differing(before, after, same_base=same_base).items():
        if name.startswith("+") and isinstance(old, bool) and isinstance(new, bool):
            ordered.append((_order(name, 1.0, seen, is_part=True), _part(name, patches, added=new)))
        else:
            allowed = ranges.get(name)
            moved = distance(old, new, allowed)
            ordered.append((_order(name, moved, seen, is_part=False), _setting(name, old, new, allowed)))
    return [change for _, change in sorted(ordered, key=lambda pair: pair[0])]


def is_jump(changes: Sequence[ChangeView]) -> bool:
    """Whether there are too many changes to credit one."""
    return len(changes) > JUMP


def _order(name: str, moved: float, seen: Mapping[str, Effect], *, is_part: bool) -> tuple[float, bool, float, str]:
    """What sorts a change: the most important is the smallest."""
    size, effect = 0.0, seen.get(name)
    if effect is not None and effect.median is not None and effect.pairs >= LEAST_PAIRS:
        size = abs(effect.median)
    return -size * moved, not is_part, -moved, name


def _part(name: str, patches: Patches, *, added: bool) -> ChangeView:
    patch, words = patches.find(name[1:]), ("off", "on")
    return ChangeView(
        name=one_line(name, NAME_CHARACTERS),
        kind="added" if added else "dropped",
        text=f"{'+' if added else '−'}{short_name(name[1:], TEXT_CHARACTERS - 1)}",
        before=words[not added],
        after=words[added],
        label=patch.label if patch else "",
    )


def _setting(name: str, old: Value, new: Value, allowed: ValueRange | None) -> ChangeView:
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


HEADLINE_CHARACTERS = 80
BECAUSE_CHARACTERS = 140
# So many changes are told by name.
TOLD = 3
AGAIN = "Again, with another seed"
BASELINE = "The baseline"
UNTITLED = "A change without a title"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")


def headline(changes: Sequence[ChangeView], *, replicate: int, baseline: bool, title: str) -> str:
    """What a run changed, in at most 80 characters: ``Add muon, WIDTH 96 → 64, and 2 more``.

    ``title`` is told where no change is known.
    """
    if replicate:
        return AGAIN
    if baseline:
        return BASELINE
    if not changes:
        return one_line(title, HEADLINE_CHARACTERS) or UNTITLED
    if is_jump(changes):
        return _jump(changes)
    count = min(TOLD, len(changes))
    while count > 1 and len(_listed(changes, count)) > HEADLINE_CHARACTERS:
        count -= 1
    return one_line(_listed(changes, count), HEADLINE_CHARACTERS)


def because(
    changes: Sequence[ChangeView],
    seen: Mapping[str, Effect],
    *,
    replicate: int,
    baseline: bool,
    searched: bool,
    hypothesis: str,
    patches: Patches = NO_PATCHES,
) -> str:
    """Why a run was tried, in one sentence of at most 140 characters; empty where nothing says so.

    Of what a person or a model made (not ``searched``) the first sentence of its hypothesis. Else of an added part
    what it is and why it may help, of other changes how earlier comparisons ended.
    """
    reason = one_line(_SENTENCE_END.split(hypothesis.strip(), maxsplit=1)[0], BECAUSE_CHARACTERS)
    if not searched and reason:
        return reason
    if replicate:
        return "Another seed shows whether the value was luck."
    if baseline:
        return "Everything else is measured against it."
    if is_jump(changes):
        return "Many changes at once, so that none of them can be credited."
    sentence = _idea(changes, patches) or _record(changes, seen)
    if sentence or not changes:
        return sentence or reason
    return "Nothing like it was compared before."


def _jump(changes: Sequence[ChangeView]) -> str:
    counts = {kind: sum(change.kind == kind for change in changes) for kind in ("added", "dropped")}
    parts = " and ".join(
        f"{count} {'part' if count == 1 else 'parts'} {kind}" for kind, count in counts.items() if count
    )
    return f"A jump: {len(changes)} settings at once{f', {parts}' if parts else ''}"


def _listed(changes: Sequence[ChangeView], count: int) -> str:
    """The first changes by name: the parts that are added, those that are dropped, settings; then how many more."""
    first, more = changes[:count], len(changes) - count
    phrases = []
    for verb, kind in (("add", "added"), ("drop", "dropped")):
        names = [short_name(change.name[1:], len(change.text)) for change in first if change.kind == kind]
        phrases += [f"{verb} {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"] if names else []
    phrases += [change.text.replace("→", " → ") for change in first if change.kind == "set"]
    text = ", ".join(phrases) + (f", and {more} more" if more else "")
    return text[0].upper() + text[1:] if first and any(change.kind != "set" for change in first) else text


def _idea(changes: Sequence[ChangeView], patches: Patches) -> str:
    """What the most important added part is, and why it may help."""
    added = (patches.find(change.name[1:]) for change in changes if change.kind == "added")
    patch = next(filter(None, added), None)
    if patch is None:
        return ""
    whole = f"{patch.title[0].upper()}{patch.title[1:]}: {patch.rationale[0].lower()}{patch.rationale[1:]}"
    return whole if len(whole) <= BECAUSE_CHARACTERS else one_line(patch.rationale, BECAUSE_CHARACTERS)


def _record(changes: Sequence[ChangeView], seen: Mapping[str, Effect]) -> str:
    """How the comparisons ended of the change that helped most often."""
    outcomes = []
    for number, change in enumerate(changes):
        effect, did = seen.get(change.name), _did(change)
        if effect is not None and effect.pairs >= LEAST_PAIRS and did:
            is_up = did in ("Adding", "Raising")
            helped, failed = (effect.better, effect.raised_failed) if is_up else (effect.worse, effect.lowered_failed)
            outcomes.append((-helped / effect.pairs, number, did, helped, effect.pairs, failed))
    if not outcomes:
        return ""
    _, number, did, helped, pairs, failed = min(outcomes)
    name = short_name(changes[number].name.removeprefix("+"), 64)
    name += f", one of the {len(changes)} changes," if len(changes) > 1 else ""
    failures = f" and failed in {failed} more" if failed else ""
    if 2 * helped < pairs:
        return f"So far {did.lower()} {name} helped in only {helped} of {pairs} comparisons{failures}."
    return f"{did} {name} helped in {helped} of {pairs} earlier comparisons{failures}."


def _did(change: ChangeView) -> str:
    """What was done to a part or a number; empty for other values."""
    if change.kind != "set":
        return "Adding" if change.kind == "added" else "Dropping"
    if change.before == "off" or change.after == "off":
        return "Raising" if change.after == "on" else "Lowering"
    try:
        up = float(change.after) > float(change.before)
    except ValueError:
        return ""
    return "Raising" if up else "Lowering"
