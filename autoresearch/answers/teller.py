"""Tells the runs of a task: how each differs from its parent, and why it was tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from autoresearch.api import ChangeView
from autoresearch.errors import AutoresearchError
from autoresearch.log import BlobStore, Log
from autoresearch.proposers import Range, Space, Value, space_of
from autoresearch.records import Run, Task
from autoresearch.telling import Comparisons, because, changes, headline, is_jump

SEARCH = "search"


class Described(NamedTuple):
    """What a run's record says of the run, as far as it is told. ``time_ms`` None: it is not published yet."""

    genome: Mapping[str, Value]
    base: bytes | None
    source_digest: bytes
    replicate: int = 0
    title: str = ""
    hypothesis: str = ""
    proposer: str = ""
    time_ms: int | None = None


class Told(NamedTuple):
    """A run for people. ``jump``: too many changes to credit one."""

    changes: list[ChangeView]
    headline: str
    because: str
    jump: bool


def described(body: Run, time_ms: int | None = None) -> Described:
    """The body of a run's record, as far as it is told."""
    return Described(
        genome=body.genome,
        base=body.base,
        source_digest=body.source_digest,
        replicate=body.replicate,
        title=body.title,
        hypothesis=body.hypothesis,
        proposer=body.proposer.name if body.proposer else "",
        time_ms=time_ms,
    )


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells the runs of one task. ``baseline`` is the digest of its program, None where its task is not here."""

    baseline: bytes | None
    default: Mapping[str, Value]
    """The genome of the baseline; empty where its program is not on this machine."""
    ranges: Mapping[str, Range]

    def tell(self, run: Described, parent: Described | None) -> Told:
        """A run beside its parent run; without one, or where a genome is unknown, no change is told."""
        before = self._genome(parent) if parent is not None and parent.base == run.base else {}
        seen: dict[str, Comparisons] = {}
        found = changes(before, self._genome(run), self.ranges, seen)
        is_baseline = run.source_digest == self.baseline
        return Told(
            changes=found,
            headline=headline(found, replicate=run.replicate, baseline=is_baseline, title=run.title),
            because=because(
                found,
                seen,
                replicate=run.replicate,
                baseline=is_baseline,
                searched=run.proposer == SEARCH,
                hypothesis=run.hypothesis,
            ),
            jump=is_jump(found),
        )

    def _genome(self, run: Described) -> Mapping[str, Value]:
        return run.genome or (self.default if run.source_digest == self.baseline else {})


def teller_of(log: Log, blobs: BlobStore, task: bytes) -> Teller:
    """What tells the runs of the task with this digest; the same until records come."""
    row = log.tasks.find(task)
    body = log.records.get(row.id).body if row else None
    space = _space(blobs, body) if isinstance(body, Task) else None
    baseline = body.definition.get("baseline") if isinstance(body, Task) else None
    return Teller(
        baseline=baseline if isinstance(baseline, bytes) else None,
        default=space.default() if space else {},
        ranges={name: parameter.range for name, parameter in space.parameters.items()} if space else {},
    )


def _space(blobs: BlobStore, task: Task) -> Space | None:
    """The search space of a task's program, where it is on this machine."""
    if not blobs.has(task.baseline.sha256):
        return None
    try:
        return space_of(blobs.get(task.baseline.sha256).decode())
    except (AutoresearchError, UnicodeDecodeError):
        return None
