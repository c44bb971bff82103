"""Tells the runs of a task: how each differs from its parent, and why it was tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from autoresearch.api import ChangeView
from autoresearch.errors import AutoresearchError
from autoresearch.log import BlobStore, Log
from autoresearch.proposers import Range, Seen, Space, Value, space_of
from autoresearch.records import Run, Task
from autoresearch.research import Plan
from autoresearch.tasks import MAX_FILE_BYTES
from autoresearch.telling import because, changes, headline, is_jump
from autoresearch.views import Comparisons, cached, comparisons

SEARCH = "search"
EXPERIMENT = "experiment"
NOTHING_COMPARED = Comparisons(1.0, {})


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
    mode: str = EXPERIMENT


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
        mode=body.mode,
    )


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells the runs of one task. ``baseline`` is the digest of its program, None where its task is not here."""

    baseline: bytes | None
    default: Mapping[str, Value]
    """The genome of the baseline; empty where its program is not on this machine."""
    ranges: Mapping[str, Range]
    compared: Callable[[], Comparisons]
    """What was compared on the task, looked up when a change is told."""

    def tell(self, run: Described, parent: Described | None) -> Told:
        """A run beside its parent run; without one, or where a genome is unknown, no change is told."""
        before = self._genome(parent) if parent is not None and parent.base == run.base else {}
        after = self._genome(run)
        seen = self._seen(before, after, run.time_ms) if before and after else {}
        found = changes(before, after, self.ranges, seen)
        # A trained agent is neither the baseline nor a repetition, whatever its program: its title says what it is.
        is_experiment = run.mode == EXPERIMENT
        is_baseline = is_experiment and run.source_digest == self.baseline
        replicate = run.replicate if is_experiment else 0
        return Told(
            changes=found,
            headline=headline(
                found if is_experiment else (), replicate=replicate, baseline=is_baseline, title=run.title
            ),
            because=because(
                found,
                seen,
                replicate=replicate,
                baseline=is_baseline,
                searched=run.proposer == SEARCH,
                hypothesis=run.hypothesis,
            ),
            jump=is_jump(found),
        )

    def _seen(self, before: Mapping[str, Value], after: Mapping[str, Value], time_ms: int | None) -> dict[str, Seen]:
        """What earlier pairs say of the names that differ."""
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        found = {name: self.compared().before(name, time_ms) for name in changed}
        return {name: seen for name, seen in found.items() if seen is not None}

    def _genome(self, run: Described) -> Mapping[str, Value]:
        return run.genome or (self.default if run.source_digest == self.baseline else {})


def teller_of(log: Log, blobs: BlobStore, task: bytes, *, me: bytes | None = None, comparing: bool = True) -> Teller:
    """What tells the runs of the task with this digest. ``me`` is the device that asks: its own runs count.

    What it knows is kept between questions: a page of runs takes milliseconds, but the first one reads all runs.
    Without ``comparing`` none is read: earlier comparisons are not told.
    """
    with log.reader.snapshot():
        baseline, space = _baseline(log, blobs, task)
        return Teller(
            baseline=baseline,
            default=space.default() if space else {},
            ranges={name: parameter.range for name, parameter in space.parameters.items()} if space else {},
            compared=cache(lambda: comparisons(log, task, me=me) if comparing else NOTHING_COMPARED),
        )


def headline_of(log: Log, blobs: BlobStore, plan: Plan) -> str:
    """What a plan of the search changes, in a line; empty for another one, whose title says it. No run is read."""
    if plan.proposer != SEARCH:
        return ""
    above = log.records.find(plan.parent) if plan.parent is not None else None
    run = Described(plan.genome, plan.base, plan.source_digest, plan.replicate, plan.title)
    parent = described(above.body) if above and isinstance(above.body, Run) else None
    return teller_of(log, blobs, plan.task, comparing=False).tell(run, parent).headline


def _baseline(log: Log, blobs: BlobStore, task: bytes) -> tuple[bytes | None, Space | None]:
    """The digest of a task's program, and its search space where the program is on this machine."""
    row = log.tasks.find(task)
    body = log.records.get(row.id).body if row else None
    if not isinstance(body, Task):
        return None, None
    digest, program = body.definition.get("baseline"), body.baseline.sha256
    here = blobs.find(program)
    is_here = here is not None and here.size <= MAX_FILE_BYTES
    space = cached(log, f"space {program.hex()}", lambda: _space(blobs, program), by=()) if is_here else None
    return digest if isinstance(digest, bytes) else None, space


def _space(blobs: BlobStore, program: bytes) -> Space | None:
    try:
        return space_of(blobs.get(program).decode())
    except (AutoresearchError, UnicodeDecodeError):
        return None
