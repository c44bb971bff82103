"""A run's headline, and why it was tried, in a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from autoresearch.api import ChangeView
from autoresearch.proposers import PATCHES, Seen
from autoresearch.sanitise import one_line
from autoresearch.telling.changes import LEAST_PAIRS, is_jump
from autoresearch.telling.values import short_name

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
    told = min(TOLD, len(changes))
    while told > 1 and len(_listed(changes, told)) > HEADLINE_CHARACTERS:
        told -= 1
    return one_line(_listed(changes, told), HEADLINE_CHARACTERS)


def because(
    changes: Sequence[ChangeView],
    seen: Mapping[str, Seen],
    *,
    replicate: int,
    baseline: bool,
    searched: bool,
    hypothesis: str,
) -> str:
    """Why a run was tried, in one sentence of at most 140 characters; empty where nothing says so.

    Of what a person or a model made (not ``searched``) the first sentence of its hypothesis. Else of an added part
    what it is and why it may help, of other changes how earlier comparisons ended.
    """
    said = one_line(_SENTENCE_END.split(hypothesis.strip(), maxsplit=1)[0], BECAUSE_CHARACTERS)
    if not searched and said:
        return said
    if replicate:
        return "Another seed shows whether the value was luck."
    if baseline:
        return "Everything else is measured against it."
    if is_jump(changes):
        return "Many changes at once, so that none of them can be credited."
    known = _idea(changes) or _record(changes, seen)
    if known or not changes:
        return known or said
    return "Nothing like it was compared before."


def _jump(changes: Sequence[ChangeView]) -> str:
    counts = {kind: sum(change.kind == kind for change in changes) for kind in ("added", "dropped")}
    parts = " and ".join(
        f"{count} {'part' if count == 1 else 'parts'} {kind}" for kind, count in counts.items() if count
    )
    return f"A jump: {len(changes)} settings at once{f', {parts}' if parts else ''}"


def _listed(changes: Sequence[ChangeView], told: int) -> str:
    """The first changes by name: the parts that are added, those that are dropped, settings; then how many more."""
    shown, more = changes[:told], len(changes) - told
    phrases = []
    for verb, kind in (("add", "added"), ("drop", "dropped")):
        names = [short_name(change.name[1:], len(change.text)) for change in shown if change.kind == kind]
        phrases += [f"{verb} {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"] if names else []
    phrases += [change.text.replace("→", " → ") for change in shown if change.kind == "set"]
    text = ", ".join(phrases) + (f", and {more} more" if more else "")
    return text[0].upper() + text[1:] if shown and any(change.kind != "set" for change in shown) else text


def _idea(changes: Sequence[ChangeView]) -> str:
    """What the most important added part is, and why it may help."""
    patch = next((PATCHES[c.name[1:]] for c in changes if c.kind == "added" and c.name[1:] in PATCHES), None)
    if patch is None:
        return ""
    whole = f"{patch.title[0].upper()}{patch.title[1:]}: {patch.rationale[0].lower()}{patch.rationale[1:]}"
    return whole if len(whole) <= BECAUSE_CHARACTERS else one_line(patch.rationale, BECAUSE_CHARACTERS)


def _record(changes: Sequence[ChangeView], seen: Mapping[str, Seen]) -> str:
    """How the comparisons ended of the change that helped most often."""
    found = []
    for number, change in enumerate(changes):
        known, did = seen.get(change.name), _did(change)
        if known is not None and known.pairs >= LEAST_PAIRS and did:
            helped = known.better if did in ("Adding", "Raising") else known.worse
            found.append((-helped / known.pairs, number, did, helped, known.pairs))
    if not found:
        return ""
    _, number, did, helped, pairs = min(found)
    name = short_name(changes[number].name.removeprefix("+"), 64)
    return f"{did} {name} helped in {helped} of {pairs} earlier comparisons."


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
