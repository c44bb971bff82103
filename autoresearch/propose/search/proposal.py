"""What a proposer is given and what it gives back; titles and hypotheses in plain words, from the numbers at hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autoresearch.errors import AutoresearchError
from autoresearch.propose.program.edits import NO_PATCHES, Patches
from autoresearch.propose.program.ranges import Value
from autoresearch.task.program import split_program

TITLE_LENGTH = 60
HYPOTHESIS_LENGTH = 1000
# Genes told one by one in a hypothesis; more are only counted.
MOST_TOLD = 6


def title(change: Mapping[str, Sequence[Value]], gains: Mapping[str, float], patches: Patches) -> str:
    """``bigram table, cosine schedule, LR 0.0083 -> 0.006 (+17)``: as many changes as fit, and how many more there are.

    Patches come before constants, and among each those with the largest gain first. ``gains`` has what each change
    was seen to gain, larger is better; a change that it lacks counts as no gain. Where not all fit, the names go
    without the class or the file that they belong to.
    """
    ordered = _ordered(change, gains)
    parts = [_change(patches, name, name, *change[name]) for name in ordered]
    if len(", ".join(parts)) > TITLE_LENGTH:
        last = Counter(map(_last, ordered))
        shorter = {name: _last(name) if last[_last(name)] == 1 else name for name in ordered}
        parts = [_change(patches, name, shorter[name], *change[name]) for name in ordered]
    for count in range(len(parts), 0, -1):
        more = f" (+{len(parts) - count})" if count < len(parts) else ""
        text = ", ".join(parts[:count]) + more
        if len(text) <= TITLE_LENGTH:
            return text
    return f"{parts[0][: TITLE_LENGTH - len(more) - 1]}…{more}" if parts else ""


def _ordered(change: Collection[str], gains: Mapping[str, float]) -> list[str]:
    """Patches before constants, the largest gain first."""
    return sorted(change, key=lambda name: (not name.startswith("+"), -gains.get(name, 0.0), name))


def _last(name: str) -> str:
    """The last part of a name with dots or a colon."""
    return re.split(r"[.:]", name)[-1] or name


def _change(patches: Patches, name: str, label: str, old: Value, new: Value) -> str:
    """One change in a few words."""
    if name.startswith("+"):
        label = patches.label(name[1:])
    elif not isinstance(new, bool):
        return f"{label} {_short(old)} → {_short(new)}"
    return f"{'' if new else 'no '}{label}"


def hypothesis(
    change: Mapping[str, Sequence[Value]],
    gains: Mapping[str, float],
    good: Sequence[Mapping[str, Value]],
    rest: Sequence[Mapping[str, Value]],
    closing: str,
    patches: Patches,
) -> str:
    """What the best runs have in common where that speaks for this change, then the closing sentence."""
    sentences = [_evidence(name, change[name][1], good, rest, patches) for name in _ordered(change, gains)[:MOST_TOLD]]
    if len(change) > MOST_TOLD:
        sentences.append(f"{len(change) - MOST_TOLD} more changes.")
    sentences.append(closing)
    text = " ".join(sentence for sentence in sentences if sentence)
    return text if len(text) <= HYPOTHESIS_LENGTH else text[: HYPOTHESIS_LENGTH - 1] + "…"


def _evidence(
    name: str,
    new: Value,
    good: Sequence[Mapping[str, Value]],
    rest: Sequence[Mapping[str, Value]],
    patches: Patches,
) -> str:
    if isinstance(new, bool):
        patch = patches.find(name[1:]) if name.startswith("+") else None
        verb = "With" if new else "Without"
        reason = f" ({patch.rationale.rstrip('.')})" if patch and new else ""
        what = f"{verb} {patches.label(name.removeprefix('+'))}{reason}"
        more = _count(good, name) * len(rest) - _count(rest, name) * len(good)
        if rest and (more <= 0 if new else more >= 0):
            return f"{what}." if reason else ""
        having = f"{_count(good, name)} of the best {len(good)} runs have it"
        others = f", {_count(rest, name)} of the other {len(rest)}" if rest else ""
        if len(good) == 1:
            having = f"the best run {'has it' if _count(good, name) else 'has it not'}"
        return f"{what}: {having}{others}."
    middle = _middle([run[name] for run in good])
    other = _middle([run[name] for run in rest]) if rest else None
    if other is not None and not _speaks_for(new, middle, other):
        return ""
    among = "the other run" if len(rest) == 1 else f"the median of the other {len(rest)}"
    others = f", {among} {_short(other)}" if other is not None else ""
    best = "the best run has" if len(good) == 1 else f"the median of the best {len(good)} runs is"
    return f"{name} {_short(new)}: {best} {_short(middle)}{others}."


def _speaks_for(new: Value, good: Value, rest: Value) -> bool:
    """Whether a new value lies where the best runs differ from the others: beyond these, on the same side."""
    if isinstance(new, str) or isinstance(good, str) or isinstance(rest, str):
        return new == good != rest
    return (good > rest < new) or (good < rest > new)


def _count(runs: Sequence[Mapping[str, Value]], name: str) -> int:
    return sum(run[name] is True for run in runs)


def _middle(values: list[Value]) -> Value:
    return sorted(values, key=lambda value: (isinstance(value, str), value))[(len(values) - 1) // 2]


def _short(value: Value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)[:40]


ProposalKind = Literal["baseline", "random", "model", "local", "replicate"]


# How the names of files end in which a comment begins with two slashes.
_SLASHES = frozenset({"c", "cc", "cpp", "cu", "cuh", "cxx", "go", "h", "hpp", "java", "js", "rs", "ts"})


class NothingToTry(AutoresearchError):
    """The search has nothing to propose. The sentence says why, and what to do."""


def nothing_to_change(program: str) -> NothingToTry:
    """The error for a program without a number that the search can change."""
    files = list(split_program(program))
    has = "has" if len(files) == 1 else "have"
    return NothingToTry(f"{' and '.join(files)} {has} no number that the search can change: {_next(files)}")


def nothing_left(program: str) -> NothingToTry:
    """The error for a program all of whose values were tried."""
    files = list(split_program(program))
    return NothingToTry(f"the search has tried all values of {' and '.join(files)}: {_next(files)}")


def _next(files: Sequence[str]) -> str:
    mark = "//" if files[0].rpartition(".")[2] in _SLASHES else "#"
    return f"add `{mark} 0.01 .. 0.1` behind a constant in its own line, or run your own ideas with `autoresearch run`"


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """The task as a proposer sees it."""

    task: bytes
    """Digest of the task's definition."""
    baseline: str
    """The task's own program."""
    direction: Literal["minimize", "maximize"]
    noise: float | None
    """Standard deviation of the metric over seeds, where the task declares it."""
    floor: float | None
    """Known bound of the metric: nothing honest is better."""
    source_of: Callable[[bytes], str | None]
    """The source of a run by its id, or None when it is not at hand."""
    patches: Patches = NO_PATCHES
    """The structural changes that the task's folder offers."""
    median_of: Callable[[str], float | None] = lambda _name: None
    """What raising a setting did in the median of pairs, where any are known."""


@dataclass(frozen=True, slots=True)
class LiveClaim:
    """What another worker is trying at this moment."""

    source_digest: bytes
    replicate: int
    genome: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class SearchProposal:
    """One experiment to run."""

    source: str
    source_digest: bytes
    replicate: int
    genome: dict[str, Value]
    base: bytes | None
    """Canonical digest of the source that the genome changes; None is the task's baseline."""
    parent: bytes | None
    """The run that this one starts from; of a replicate, the run whose source it repeats."""
    change: dict[str, list[Value]]
    """Only what differs from the parent: ``{"LR": [old, new], "+muon": [False, True]}``."""
    kind: ProposalKind
    title: str
    """At most 60 characters."""
    hypothesis: str
    """At most 1000 characters."""
    expected: float | None
    """The value that the proposer expects, where it has a reason to expect one."""
