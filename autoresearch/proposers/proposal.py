"""What a proposer is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from autoresearch.errors import AutoresearchError
from autoresearch.proposers.ranges import Value
from autoresearch.tasks import ENTRY, source_digest

ProposalKind = Literal["baseline", "random", "model", "local", "replicate"]


_NEXT = "add `# 0.01 .. 0.1` behind a constant, or run your own ideas with `autoresearch run`"


class NothingToTry(AutoresearchError):
    """The search has nothing to propose. The sentence says why, and what to do."""


def nothing_to_change(program: str) -> NothingToTry:
    """The error for a program without a number that the search can change."""
    return NothingToTry(f"{program} has no number that the search can change: {_NEXT}")


def nothing_left(program: str) -> NothingToTry:
    """The error for a program all of whose values were tried."""
    return NothingToTry(f"the search has tried all values of {program}: {_NEXT}")


@dataclass(frozen=True, slots=True)
class Problem:
    """The task as a proposer sees it."""

    task: bytes
    """Digest of the task's definition."""
    baseline: str
    """The task's own ``train.py``."""
    direction: Literal["minimize", "maximize"]
    noise: float | None
    """Standard deviation of the metric over seeds, where the task declares it."""
    floor: float | None
    """Known bound of the metric: nothing honest is better."""
    source_of: Callable[[bytes], str | None]
    """The source of a run by its id, or None when it is not at hand."""
    program: str = ENTRY
    """The name of the program's file."""
    digest: Callable[[str], bytes] = source_digest
    """What names a source; raises UsageError where the text is no such program."""

    @property
    def suffix(self) -> str:
        """How the name of the program's file ends: it says in which language constants are read."""
        return self.program[self.program.rfind(".") :] if "." in self.program else ""


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
