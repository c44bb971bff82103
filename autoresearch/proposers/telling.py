"""Titles and hypotheses in plain words, from the numbers that the search has at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autoresearch.proposers.catalogue import PATCHES
from autoresearch.proposers.edits import Value

TITLE_LENGTH = 120
HYPOTHESIS_LENGTH = 1000
# Genes told one by one in a hypothesis; more are only counted.
MOST_TOLD = 6


def title(change: Mapping[str, Sequence[Value]]) -> str:
    """``+ muon, LR 0.0083 -> 0.006``, as much of it as fits: structure first."""
    parts: list[str] = []
    for name, (old, new) in sorted(change.items(), key=lambda item: (not item[0].startswith("+"), item[0])):
        if name.startswith("+"):
            parts.append(f"{'+' if new else '-'} {name[1:]}")
        else:
            parts.append(f"{name} {_short(old)} -> {_short(new)}")
    text = ", ".join(parts)
    shown = len(parts)
    while len(text) > TITLE_LENGTH and shown > 1:
        shown -= 1
        text = ", ".join(parts[:shown]) + f" and {len(parts) - shown} more"
    return text[:TITLE_LENGTH]


def hypothesis(
    change: Mapping[str, Sequence[Value]],
    good: Sequence[Mapping[str, Value]],
    rest: Sequence[Mapping[str, Value]],
    closing: str,
) -> str:
    """What the best runs have in common where this change is made, then the closing sentence."""
    sentences = [_evidence(name, new, good, rest) for name, (_, new) in sorted(change.items())[:MOST_TOLD]]
    if len(change) > MOST_TOLD:
        sentences.append(f"{len(change) - MOST_TOLD} further settings change.")
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
        return f"{verb} {name[1:]}{reason}: {having}{others}."
    middle = _middle([run[name] for run in good])
    others = f", in the other {len(rest)} {_short(_middle([run[name] for run in rest]))}" if rest else ""
    return f"{name} {_short(new)}: the median of the best {len(good)} runs is {_short(middle)}{others}."


def _count(runs: Sequence[Mapping[str, Value]], name: str) -> int:
    return sum(run[name] is True for run in runs)


def _middle(values: list[Value]) -> Value:
    return sorted(values, key=lambda value: (isinstance(value, str), value))[(len(values) - 1) // 2]


def _short(value: Value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)[:40]
