"""Titles and hypotheses in plain words, from the numbers that the search has at hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from autoresearch.proposers.catalogue import PATCHES
from autoresearch.proposers.ranges import Value

TITLE_LENGTH = 60
HYPOTHESIS_LENGTH = 1000
# Genes told one by one in a hypothesis; more are only counted.
MOST_TOLD = 6


def title(change: Mapping[str, Sequence[Value]], gains: Mapping[str, float]) -> str:
    """``bigram table, cosine schedule, LR 0.0083 -> 0.006 (+17)``: as many changes as fit, and how many more there are.

    Patches come before constants, and among each those with the largest gain first. ``gains`` has what each change
    was seen to gain, larger is better; a change that it lacks counts as no gain. Where not all fit, the names go
    without the class or the file that they belong to.
    """
    ordered = _ordered(change, gains)
    parts = [_change(name, name, *change[name]) for name in ordered]
    if len(", ".join(parts)) > TITLE_LENGTH:
        last = Counter(map(_last, ordered))
        parts = [_change(name, _last(name) if last[_last(name)] == 1 else name, *change[name]) for name in ordered]
    for shown in range(len(parts), 0, -1):
        more = f" (+{len(parts) - shown})" if shown < len(parts) else ""
        text = ", ".join(parts[:shown]) + more
        if len(text) <= TITLE_LENGTH:
            return text
    return f"{parts[0][: TITLE_LENGTH - len(more) - 1]}…{more}" if parts else ""


def _ordered(change: Collection[str], gains: Mapping[str, float]) -> list[str]:
    """Patches before constants, the largest gain first."""
    return sorted(change, key=lambda name: (not name.startswith("+"), -gains.get(name, 0.0), name))


def _last(name: str) -> str:
    """The last part of a name with dots or a colon."""
    return re.split(r"[.:]", name)[-1] or name


def _change(name: str, shown: str, old: Value, new: Value) -> str:
    """One change in a few words."""
    if not name.startswith("+"):
        return f"{shown} {_short(old)} -> {_short(new)}"
    patch = PATCHES.get(name[1:])
    return f"{'' if new else 'no '}{patch.label if patch else name[1:]}"


def hypothesis(
    change: Mapping[str, Sequence[Value]],
    gains: Mapping[str, float],
    good: Sequence[Mapping[str, Value]],
    rest: Sequence[Mapping[str, Value]],
    closing: str,
) -> str:
    """What the best runs have in common where this change is made, then the closing sentence."""
    sentences = [_evidence(name, change[name][1], good, rest) for name in _ordered(change, gains)[:MOST_TOLD]]
    if len(change) > MOST_TOLD:
        sentences.append(f"{len(change) - MOST_TOLD} more changes.")
    sentences.append(closing)
    text = " ".join(sentence for sentence in sentences if sentence)
    return text if len(text) <= HYPOTHESIS_LENGTH else text[: HYPOTHESIS_LENGTH - 1] + "…"


def _evidence(name: str, new: Value, good: Sequence[Mapping[str, Value]], rest: Sequence[Mapping[str, Value]]) -> str:
    if name.startswith("+"):
        patch = PATCHES.get(name[1:])
        having = f"{_count(good, name)} of the best {len(good)} runs have it"
        others = f", {_count(rest, name)} of the other {len(rest)}" if rest else ""
        verb = "With" if new else "Without"
        reason = f" ({patch.rationale.rstrip('.')})" if patch and new else ""
        return f"{verb} {patch.label if patch else name[1:]}{reason}: {having}{others}."
    middle = _middle([run[name] for run in good])
    others = f", in the other {len(rest)} {_short(_middle([run[name] for run in rest]))}" if rest else ""
    return f"{name} {_short(new)}: the median of the best {len(good)} runs is {_short(middle)}{others}."


def _count(runs: Sequence[Mapping[str, Value]], name: str) -> int:
    return sum(run[name] is True for run in runs)


def _middle(values: list[Value]) -> Value:
    return sorted(values, key=lambda value: (isinstance(value, str), value))[(len(values) - 1) // 2]


def _short(value: Value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)[:40]
