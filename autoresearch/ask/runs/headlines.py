"""Tells the runs of a task in answers: how each differs from its parent, in a line, and why it was tried."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import msgspec

from autoresearch.ask.records import LogAnswer, RecordView, ShowAnswer
from autoresearch.ask.runs.answers import BestAnswer, ChangeView, LineageAnswer, TopAnswer
from autoresearch.ask.runs.telling import JUMP, because, changes, headline, is_jump
from autoresearch.ask.show import summary
from autoresearch.errors import AutoresearchError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import ProgramView, RunView
from autoresearch.log.standing.cache import cached
from autoresearch.log.tables.differences import differing
from autoresearch.propose.program.edits import NO_PATCHES, Patches, read_patches
from autoresearch.propose.program.ranges import Value, ValueRange
from autoresearch.propose.program.space import Space, space_of
from autoresearch.propose.search.effects import Comparisons, Effect
from autoresearch.record.encoding import parse_id
from autoresearch.record.kinds import Run, Task
from autoresearch.record.record import Record
from autoresearch.run.experiment import Plan
from autoresearch.task.folders import side_file
from autoresearch.task.loading import CHANGES, MAX_FILE_BYTES

SEARCH = "search"
EXPERIMENT = "experiment"
# Of so many programs the settings are read for one answer. Runs of now have them in their records.
PROGRAMS_READ = 20


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
    program: bytes | None = None
    """The SHA-256 of its program, where that is published."""


class RunSettings(NamedTuple):
    """The settings of a run, and the digest of the program that they change; None: the baseline."""

    genome: Mapping[str, Value]
    base: bytes | None


class RunText(NamedTuple):
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
        proposer=body.proposed_by,
        time_ms=time_ms,
        mode=body.mode,
        program=body.source.sha256,
    )


@dataclass(frozen=True, slots=True)
class RunTeller:
    """Tells the runs of one task. ``baseline`` is the digest of its program, None where its task is not here."""

    baseline: bytes | None
    default: Mapping[str, Value]
    """The genome of the baseline; empty where its program is not on this machine."""
    ranges: Mapping[str, ValueRange]
    compared: Callable[[str, int | None], Effect | None]
    """What pairs say of a setting whose run is older than a time, read when a change is told."""
    patches: Patches
    """The patches of the task, which say what an added part is."""
    read: Callable[[bytes], Mapping[str, Value]]
    """The settings in a program by its SHA-256; none where it is not on this machine."""

    def tell(self, run: Described, parent: Described | None) -> RunText:
        """A run beside its parent run; without one, or where settings are unknown, no change is told.

        Of a run that changes more of its parent's program than settings these are told, and its title says the rest.
        """
        after, base = self.settings(run)
        before, base_before = self.settings(parent) if parent is not None else ({}, base)
        same_base = base == base_before
        changed = differing(before, after, same_base=same_base)
        # Of a jump none of the changes is credited, so that earlier comparisons say nothing.
        credited = same_base and len(changed) <= JUMP
        compared = {name: self.compared(name, run.time_ms) for name in changed} if credited else {}
        seen = {name: effect for name, effect in compared.items() if effect is not None}
        views = changes(before, after, self.ranges, seen, self.patches, same_base=same_base)
        # A trained agent is neither the baseline nor a repetition, whatever its program: its title says what it is.
        is_experiment = run.mode == EXPERIMENT
        is_baseline = is_experiment and run.source_digest == self.baseline
        replicate = run.replicate if is_experiment else 0
        return RunText(
            changes=views,
            headline=headline(
                views if is_experiment and same_base else (),
                replicate=replicate,
                baseline=is_baseline,
                title=run.title,
            ),
            because=because(
                views if same_base else (),
                seen,
                replicate=replicate,
                baseline=is_baseline,
                searched=run.proposer == SEARCH,
                hypothesis=run.hypothesis,
                patches=self.patches,
            ),
            jump=is_jump(views),
        )

    def settings(self, run: Described) -> RunSettings:
        """The settings of a run: those of its record, else those that are read in its program."""
        if run.genome:
            return RunSettings(run.genome, run.base)
        if run.source_digest == self.baseline:
            return RunSettings(self.default, None)
        return RunSettings(self.read(run.program) if run.program else {}, run.source_digest)


def teller_of(log: Log, blobs: BlobStore, task: bytes, *, me: bytes | None = None, comparing: bool = True) -> RunTeller:
    """What tells the runs of the task with this digest. ``me`` is the device that asks: its own runs count.

    Without ``comparing`` no pairs are read: earlier comparisons are not told.
    """
    with log.reader.snapshot():
        baseline, space, patches = _baseline(log, blobs, task)
        return RunTeller(
            baseline=baseline,
            default=space.default() if space else {},
            ranges={name: parameter.range for name, parameter in space.parameters.items()} if space else {},
            compared=Comparisons(log, task, me).of if comparing else lambda _name, _before_ms: None,
            patches=patches,
            read=_reader(blobs, patches, space.parameters if space else {}),
        )


def _reader(blobs: BlobStore, patches: Patches, parameters: Collection[str]) -> Callable[[bytes], Mapping[str, Value]]:
    """What reads the settings in programs, in so many at most: lists have many runs, and a program takes a while."""
    programs: dict[bytes, Mapping[str, Value]] = {}

    def read(program: bytes) -> Mapping[str, Value]:
        if program not in programs and len(programs) < PROGRAMS_READ:
            blob = blobs.find(program)
            space = _space(blobs, program, patches) if blob is not None and blob.size <= MAX_FILE_BYTES else None
            programs[program] = space.settings(parameters) if space else {}
        return programs.get(program, {})

    return read


def headline_of(log: Log, blobs: BlobStore, plan: Plan) -> str:
    """What a plan of the search changes, in a line; empty for another one, whose title says it. No run is read."""
    if plan.proposed_by != SEARCH:
        return ""
    above = log.records.find(plan.parent) if plan.parent is not None else None
    run = Described(plan.genome, plan.base, plan.source_digest, plan.replicate, plan.title)
    parent = described(above.body) if above and isinstance(above.body, Run) else None
    return teller_of(log, blobs, plan.task, comparing=False).tell(run, parent).headline


def _baseline(log: Log, blobs: BlobStore, task: bytes) -> tuple[bytes | None, Space | None, Patches]:
    """The digest of a task's program, its search space where the program is on this machine, and its patches."""
    row = log.tasks.find(task)
    body = log.records.get(row.id).body if row else None
    if not isinstance(body, Task):
        return None, None, NO_PATCHES
    definition = body.definition
    patches = cached(log, ("patches", task), lambda: read_patches(side_file(CHANGES, definition)), lasting=True)
    digest, program = body.definition.get("baseline"), body.baseline.sha256
    blob = blobs.find(program)
    is_here = blob is not None and blob.size <= MAX_FILE_BYTES
    space = cached(log, ("space", task), lambda: _space(blobs, program, patches), lasting=True) if is_here else None
    return digest if isinstance(digest, bytes) else None, space, patches


def _space(blobs: BlobStore, program: bytes, patches: Patches) -> Space | None:
    try:
        return space_of(blobs.get(program).decode(), patches)
    except (AutoresearchError, UnicodeDecodeError):
        return None


A = TypeVar("A", ShowAnswer, BestAnswer, TopAnswer, LineageAnswer, LogAnswer)
# In a longer list of records runs have their titles.
RECORDS_TOLD = 200
_BEST_PROGRAMS = ("confirmed", "provisional", "reported", "demoted")


def with_headlines(log: Log, blobs: BlobStore, answer: A, *, me: bytes | None = None) -> A:
    """An answer whose runs have headlines; ``me`` is the device that asks.

    In a list of records the line of a run of the search begins with it.
    """
    with log.reader.snapshot():
        return _Headlines(log, blobs, me).fill(answer)


class _Headlines:
    """Tells runs of any task."""

    def __init__(self, log: Log, blobs: BlobStore, me: bytes | None) -> None:
        self._log, self._blobs, self._me = log, blobs, me
        self._tellers: dict[bytes, RunTeller] = {}

    def fill(self, answer: A) -> A:
        replace = msgspec.structs.replace
        match answer:
            case ShowAnswer(run=RunView() as run):
                text = self._text(self._log.records.get(parse_id(run.id)))
                return replace(answer, run=_with(run, text), because=text.because, changes=text.changes)
            case BestAnswer():
                programs = {name: self._program(getattr(answer, name)) for name in _BEST_PROGRAMS}
                task = replace(answer.task, best=self._program(answer.task.best))
                return replace(answer, task=task, run=self._run(answer.run), **programs)
            case TopAnswer():
                task = replace(answer.task, best=self._program(answer.task.best))
                return replace(answer, task=task, programs=[self._program(view) for view in answer.programs])
            case LineageAnswer():
                return replace(
                    answer,
                    steps=[step if step.hidden else replace(step, run=self._run(step.run)) for step in answer.steps],
                )
            case LogAnswer() if len(answer.records) <= RECORDS_TOLD:
                return replace(answer, records=[self._record(view) for view in answer.records])
        return answer

    def _run(self, view: RunView | None) -> RunView | None:
        if view is None:
            return None
        return _with(view, self._text(self._log.records.get(parse_id(view.id))))

    def _program(self, view: ProgramView | None) -> ProgramView | None:
        if view is None:
            return None
        record = self._log.records.get(parse_id(view.id))
        by = record.body.proposed_by if isinstance(record.body, Run) else ""
        return msgspec.structs.replace(view, headline=self._text(record).headline, proposer=by)

    def _record(self, view: RecordView) -> RecordView:
        if view.kind != "run":
            return view
        record = self._log.records.get(parse_id(view.id))
        body = record.body
        if not isinstance(body, Run) or body.proposed_by != SEARCH:
            return view
        named = msgspec.structs.replace(body, title=self._text(record).headline)
        return msgspec.structs.replace(view, summary=summary(named))

    def _text(self, record: Record) -> RunText:
        body = record.body_as(Run)
        if body.task not in self._tellers:
            self._tellers[body.task] = teller_of(self._log, self._blobs, body.task, me=self._me)
        above = self._log.records.find(body.parent) if body.parent else None
        parent = described(above.body, above.time) if above and isinstance(above.body, Run) else None
        return self._tellers[body.task].tell(described(body, record.time), parent)


def _with(view: RunView, text: RunText) -> RunView:
    return msgspec.structs.replace(view, standing=msgspec.structs.replace(view.standing, headline=text.headline))
