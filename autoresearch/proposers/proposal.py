"""What a proposer is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autoresearch.errors import AutoresearchError
from autoresearch.proposers.ranges import Value
from autoresearch.tasks import split_program

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
    return f"add `{mark} 0.01 .. 0.1` behind a constant, or run your own ideas with `autoresearch run`"


@dataclass(frozen=True, slots=True)
class Problem:
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


@dataclass(frozen=True, slots=True)
class LiveClaim:
    """What another worker is trying at this moment."""

    source_digest: bytes
    replicate: int
    genome: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Proposal:
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
