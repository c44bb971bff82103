"""What a log knows of a task, gathered in one snapshot: all that a prompt or ``history.md`` is written from.

What unattested participants wrote is left out where trust names anybody.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.bases import next_base
from autoresearch.log.standing.cache import in_snapshot
from autoresearch.log.standing.context import TrustContext, trust_context, trusted_authors
from autoresearch.log.standing.credit import Citations, citations, is_heard
from autoresearch.log.standing.trials import Trial
from autoresearch.log.standing.verdicts import Spread, spread_of
from autoresearch.propose.mind.recall import curve_row, ended_trials, past_run
from autoresearch.propose.mind.register import budget_of, dead_ends_of
from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.guard import Names, names_of
from autoresearch.propose.program.space import space_of
from autoresearch.propose.search.dead_ends import DeadEnd
from autoresearch.propose.search.effects import Comparisons, Effect
from autoresearch.propose.search.evidence import Candidate, PastRun, SearchEvidence
from autoresearch.propose.search.evidence import gather as weigh
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import Note, Run
from autoresearch.task.loading import MAX_FILE_BYTES
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from autoresearch.text import duration, one_line, sign_of, size
from autoresearch.words import Origin, RunStatus


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program that was run, or one run of it. Texts are their author's words."""

    id: str
    """The short id of its first run."""
    title: str
    hypothesis: str
    value: float | None
    seeds: int
    """With how many seeds it was measured; ``value`` is their mean."""
    parent: str
    """The short id of the run that it changes, or empty."""
    delta: float | None
    """The value minus that of the parent."""
    margin: float | None
    """Half of the 95 % interval of ``delta``, by the noise over seeds."""
    state: str
    status: str
    reason: str = ""
    change: str = ""
    """New lines of a program that was written by hand; empty where the title names what changed."""
    expected: float | None = None
    """The value that its proposer expected."""


@dataclass(frozen=True, slots=True)
class ProgramDiff:
    """A program beside another one: the lines that one of them lacks, behind ``-`` and ``+``; ``more`` are left out."""

    program: Attempt
    lines: tuple[str, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class CitedNote:
    """A note: what somebody expects or has learned. ``better`` and ``worse`` count the runs that cite it."""

    id: str
    text: str
    better: int = 0
    worse: int = 0


@dataclass(frozen=True, slots=True)
class LeadingProgram:
    """The program to build on. ``id`` is empty where it is the baseline that nobody has run yet."""

    id: str
    value: float | None
    origin: Origin
    """Whose number it is."""
    seeds: int
    state: str
    source: str | None
    """The text of the program, or None where it is not on this machine."""
    cost: str = ""
    """What the run took, in words: steps and tokens as it states them, time, memory."""


@dataclass(frozen=True, slots=True)
class History:
    """What a log knows of a task at a moment. Lists begin with what matters most."""

    best: LeadingProgram
    baseline: float | None
    noise: float | None
    """The standard deviation over seeds, as the task states it or replicates show it; None: nobody knows it."""
    assumed: float
    """What the search reckons with in its place."""
    """Standard deviation over seeds, as task and runs show it."""
    runs: int
    since_best: int
    """How many runs ended since the best program was found."""
    frontier: tuple[Attempt, ...] = ()
    steps: tuple[ProgramDiff, ...] = ()
    """How the best program came to be: each beside its parent, the newest first."""
    others: tuple[ProgramDiff, ...] = ()
    """Good programs that are no steps to the best one, each beside that: what may be combined with it."""
    recent: tuple[Attempt, ...] = ()
    failures: tuple[Attempt, ...] = ()
    dead_ends: tuple[DeadEnd, ...] = ()
    causes: tuple[tuple[str, int], ...] = ()
    """How runs failed, and how many did so, the most frequent first."""
    untried: tuple[str, ...] = ()
    """Settings and +patches of the baseline that no run has changed."""
    effects: tuple[Effect, ...] = ()
    hypotheses: tuple[CitedNote, ...] = ()
    insights: tuple[CitedNote, ...] = ()
    past: tuple[CitedNote, ...] = ()
    """Results that participants brought in from elsewhere, the best first."""
    claims: tuple[str, ...] = ()
    """The titles of what is being tried now."""
    names: Names | None = None
    """What a program may name, where its task says so."""
    curves: tuple[str, ...] = ()
    """How the best programs came to their values, a line each."""
    ideas: tuple[Attempt, ...] = ()
    """What the proposer who asks tried last, the newest first."""
    plan: str = ""
    """What that proposer wrote down for itself after the last of these."""


# So many of each are gathered; a byte budget leaves out more.
FRONTIER, RECENT, FAILURES, EFFECTS, NOTES, CLAIMS, UNTRIED = 20, 40, 20, 30, 20, 20, 20
DEAD_ENDS = 12
CURVES, IDEAS = 4, 6
# Of so many of this device's newest runs it is looked whose idea they were.
OWN_READ = 60
# So many of the newest notes are looked through.
NOTES_READ = 200
# So many new lines of a hand-written program are shown, each up to so many characters.
NEW_LINES, LINE_CHARACTERS = 3, 48
# So many steps and programs to combine are shown, with so many changed lines; texts of more lines are not matched,
# which takes seconds with lines made for it.
STEPS, OTHERS, CHANGED_LINES, MATCHED_LINES = 6, 3, 16, 2_000


@in_snapshot
def gather(
    log: Log, blobs: BlobStore, task: Task, *, now_ms: int, me: bytes | None = None, proposer: str = "", plan: str = ""
) -> History:
    """What the log knows of a task. The same records give the same values, in whatever order they came.

    ``me`` is the device that asks: its own runs come before what others only report. ``proposer`` is who asks, such as
    “llm/some-model”: what this device ran for it comes apart, with the ``plan`` that it left.
    """
    context = trust_context(log, me)
    ended = ended_trials(log, task, me or b"")
    trials = [trial for trial in ended if is_heard(trial.row.author, trial.row.time, context, me)]
    runs = [past_run(trial) for trial in trials]
    evidence = weigh(runs, direction=task.metric.direction, noise=task.metric.noise, floor=task.metric.floor)
    spread = spread_of(log, task.digest, task.metric)
    desk = _Desk(log, blobs, task, evidence, spread, {trial.row.id: trial for trial in trials})
    newest = sorted(trials, key=lambda trial: (-trial.row.time, trial.row.id))
    best = _best(log, blobs, task, context)
    worked = [trial for trial in newest if trial.row.status == RunStatus.OK]
    failed = [trial for trial in newest if trial.row.status != RunStatus.OK]
    best_time = next((trial.row.time for trial in trials if best.id and short_id(trial.row.id) == best.id), None)
    notes = _notes(log, task, context, me)
    cited = citations(log, task.digest, [note for note, _ in notes], context, me=me)
    # Those that no run has cited yet, the newest first.
    hypotheses = [(note, body) for note, body in notes if body.topic == "hypothesis" and note not in cited]
    return History(
        best=best,
        baseline=desk.mean_of(source_digest(task.baseline.decode())),
        noise=None if spread is None else spread.deviation,
        assumed=evidence.noise,
        runs=len(trials),
        since_best=0 if best_time is None else sum(trial.row.time > best_time for trial in trials),
        frontier=tuple(desk.of_candidate(candidate) for candidate in evidence.leaders[:FRONTIER]),
        steps=tuple(desk.steps()),
        others=tuple(desk.others()),
        recent=tuple(desk.of_run(trial) for trial in worked[:RECENT]),
        failures=tuple(desk.of_run(trial) for trial in failed[:FAILURES]),
        dead_ends=tuple(dead_ends_of(log, blobs, task.digest, task.metric, budget_of(task), me=me)[:DEAD_ENDS]),
        causes=tuple(Counter(trial.row.status for trial in failed).most_common()),
        untried=tuple(_untried(task, runs)[:UNTRIED]),
        effects=tuple(Comparisons(log, task.digest, me).effects[:EFFECTS]),
        hypotheses=tuple(CitedNote(short_id(note), body.text) for note, body in hypotheses[:NOTES]),
        insights=tuple(_insights(notes, cited)[:NOTES]),
        past=tuple(_past(notes, task)[:NOTES]),
        claims=tuple(
            row.title or "a change without a title"
            for row in log.claims.open(task.digest, now_ms=now_ms, visible=True)
            if is_heard(row.author, row.time, context, me)
        )[:CLAIMS],
        names=names_of(task),
        curves=tuple(desk.curves()),
        ideas=tuple(desk.of_run(trial) for trial in desk.proposed_by(proposer, newest, me)) if proposer else (),
        plan=plan,
    )


def _untried(task: Task, runs: Iterable[PastRun]) -> list[str]:
    space = space_of(task.baseline.decode(), patches_of(task))
    left = space.default()
    for run in runs:
        for name in [name for name, value in left.items() if run.genome.get(name, value) != value]:
            del left[name]
    return list(left)


def _best(log: Log, blobs: BlobStore, task: Task, context: TrustContext) -> LeadingProgram:
    base = next_base(log, task.digest, context)
    if base is None:
        return LeadingProgram("", None, Origin.REPORTED, 0, "", task.baseline.decode())
    body = log.records.get(base.row.first).body_as(Run)
    is_reported = base.judgement.value is None
    return LeadingProgram(
        short_id(base.row.first),
        base.value,
        Origin.REPORTED if is_reported else Origin.VERIFIED,
        base.row.runs if is_reported else base.judgement.runs,
        base.judgement.state.value,
        _source(blobs, body),
        _cost(body),
    )


def _cost(body: Run) -> str:
    counts = [f"{body.metrics[name]:.4g} {name}" for name in ("steps", "tokens", "flops") if name in body.metrics]
    took = [duration(body.duration_ms)] if body.duration_ms else []
    memory = [f"{size(body.peak_memory_bytes)} of memory"] if body.peak_memory_bytes else []
    return ", ".join([*counts, *took, *memory])


def _source(blobs: BlobStore, run: Run) -> str | None:
    """The program of a run, where it is on this machine, is text and no larger than a program may be."""
    return None if run.source.size > MAX_FILE_BYTES else blobs.text(run.source.sha256)


def _added(before: str, after: str) -> str:
    """The first new lines, without comments, and how many more there are."""
    lines = Counter(map(_code, after.splitlines())) - Counter(map(_code, before.splitlines()))
    new = [line for line in lines if line]
    text = "; ".join(one_line(line, LINE_CHARACTERS) for line in new[:NEW_LINES])
    return text + (f"; {len(new) - NEW_LINES} more lines" if len(new) > NEW_LINES else "")


def _code(line: str) -> str:
    return line.split("#", maxsplit=1)[0].strip()


def _notes(log: Log, task: Task, context: TrustContext, me: bytes | None) -> list[tuple[bytes, Note]]:
    """The newest notes on a task that may stand in a prompt, the newest first."""
    # Strangers who write many take no places.
    newest = log.texts.newest_notes(task.digest, limit=NOTES_READ, authors=trusted_authors(context, me))
    bodies = [(row.id, log.records.get(row.id).body) for row in newest]
    return [(note, body) for note, body in bodies if isinstance(body, Note)]


@dataclass(frozen=True, slots=True)
class _Desk:
    """Turns rows of the log into values of a prompt."""

    log: Log
    blobs: BlobStore
    task: Task
    evidence: SearchEvidence
    spread: Spread | None
    trials: dict[bytes, Trial]

    @property
    def sign(self) -> float:
        return sign_of(self.task.metric.direction)

    def candidate_of(self, digest: bytes) -> Candidate | None:
        candidates = (candidate for candidate in self.evidence.candidates if candidate.source_digest == digest)
        return next((candidate for candidate in candidates if candidate.runs), None)

    def mean_of(self, digest: bytes) -> float | None:
        candidate = self.candidate_of(digest)
        return None if candidate is None else self.sign * candidate.mean

    def of_candidate(self, candidate: Candidate) -> Attempt:
        """A program, with the mean over its seeds."""
        return self._attempt(self.trials[candidate.first.id], self.sign * candidate.mean, candidate.runs)

    def of_run(self, trial: Trial) -> Attempt:
        """One run."""
        return self._attempt(trial, trial.value, 1)

    def _attempt(self, trial: Trial, value: float | None, seeds: int) -> Attempt:
        body = self.log.records.get(trial.row.id).body_as(Run)
        delta, margin = self._change(trial, value, seeds)
        return Attempt(
            id=short_id(trial.row.id),
            title=body.title,
            hypothesis=body.hypothesis,
            value=value,
            seeds=seeds,
            parent=short_id(body.parent) if body.parent else "",
            delta=delta,
            margin=margin,
            state=trial.state.value,
            status=body.status,
            reason=body.reason,
            change="" if body.genome and body.base != body.source_digest else self._new_lines(body),
            expected=body.expected,
        )

    def curves(self) -> Iterator[str]:
        """How the best programs, and the baseline, came to their values."""
        first = self.candidate_of(source_digest(self.task.baseline.decode()))
        best = self.evidence.leaders[:CURVES]
        for candidate in [*best, first] if first and first not in best else best:
            body = self._body(candidate.first.id)
            if body is not None and (row := curve_row(short_id(candidate.first.id), body)):
                yield row

    def proposed_by(self, proposer: str, newest: Sequence[Trial], me: bytes | None) -> list[Trial]:
        """The newest runs that this device made for a proposer."""
        own = [trial for trial in newest if trial.row.author == me][:OWN_READ]
        bodies = ((trial, self._body(trial.row.id)) for trial in own)
        return [trial for trial, body in bodies if body and f"{body.proposed_by}/".startswith(f"{proposer}/")][:IDEAS]

    def steps(self) -> Iterator[ProgramDiff]:
        """The last steps to the best program."""
        for trial in self._way()[:STEPS]:
            body, above = self._body(trial.row.id), self._body(trial.row.parent) if trial.row.parent else None
            candidate = self.candidate_of(trial.row.source_digest)
            if body is None or above is None or candidate is None:
                return
            if change := self._beside(self.of_candidate(candidate), above, body):
                yield change

    def others(self) -> Iterator[ProgramDiff]:
        """The best programs that are better than their parents and no steps to the best one, nor steps from it."""
        way = self._way()
        best, seen = self._body(way[0].row.id) if way else None, {trial.row.id for trial in way}
        count = 0
        for candidate in self.evidence.leaders[:FRONTIER] if best else ():
            trial = self.trials[candidate.first.id]
            program, body = self.of_candidate(candidate), self._body(trial.row.id)
            is_better = program.delta is not None and self.sign * program.delta < 0
            if trial.row.id in seen or trial.row.parent == way[0].row.id or not is_better or body is None:
                continue
            assert best is not None, "else nothing is looked at"
            if count < OTHERS and (change := self._beside(program, best, body)):
                count += 1
                yield change

    def _way(self) -> list[Trial]:
        """The runs from the best program back to the baseline, as far as they are known."""
        leader, way = self.evidence.leader(), list[Trial]()
        trial = self.trials.get(leader.first.id) if leader else None
        while trial is not None and trial not in way:
            way.append(trial)
            trial = self.trials.get(trial.row.parent) if trial.row.parent else None
        return way

    def _body(self, run: bytes) -> Run | None:
        record = self.log.records.find(run)
        return record.body if record and isinstance(record.body, Run) else None

    def _beside(self, program: Attempt, before: Run, after: Run) -> ProgramDiff | None:
        old, new = _source(self.blobs, before), _source(self.blobs, after)
        if old is None or new is None or max(old.count("\n"), new.count("\n")) > MATCHED_LINES:
            return None
        diff = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
        lines = [line for line in list(diff)[2:] if not line.startswith("@@") and _code(line[1:])]
        return ProgramDiff(program, tuple(lines[:CHANGED_LINES]), max(0, len(lines) - CHANGED_LINES)) if lines else None

    def _new_lines(self, body: Run) -> str:
        """What stands in a program and not in its parent's, in short."""
        above = self.log.records.find(body.parent) if body.parent else None
        before = _source(self.blobs, above.body) if above and isinstance(above.body, Run) else None
        after = _source(self.blobs, body)
        return "" if before is None or after is None else _added(before, after)

    def _change(self, trial: Trial, value: float | None, seeds: int) -> tuple[float | None, float | None]:
        """How a value differs from that of the parent's program, and half of the 95 % interval of that."""
        parent = self.trials.get(trial.row.parent) if trial.row.parent else None
        before = None if parent is None else self.candidate_of(parent.row.source_digest)
        if value is None or before is None or parent is None or parent.row.seedless == trial.row.seedless:
            return None, None
        delta, spread = value - self.sign * before.mean, self.spread
        return delta, spread.margin(max(seeds, 1), before.runs) if spread else None


def _past(notes: Iterable[tuple[bytes, Note]], task: Task) -> list[CitedNote]:
    """The results from elsewhere, the best first, those without a value last."""
    name, sign = task.metric.name, sign_of(task.metric.direction)
    past = [(body.metrics.get(name), note, body) for note, body in notes if body.topic == "history"]
    past.sort(key=lambda entry: (entry[0] is None, sign * (entry[0] or 0), entry[1]))
    return [
        CitedNote(short_id(note), f"{body.status}{'' if value is None else f' {value:.6g}'}: {body.text}")
        for value, note, body in past
    ]


def _insights(notes: Sequence[tuple[bytes, Note]], cited: Mapping[bytes, Citations]) -> list[CitedNote]:
    """The insights, those first whose citing runs were better than their parents; then the newest first."""
    insights = [(note, body, cited.get(note, Citations())) for note, body in notes if body.topic == "insight"]
    rated = [CitedNote(short_id(note), body.text, runs.better, runs.worse) for note, body, runs in insights]
    return sorted(rated, key=lambda insight: insight.worse - insight.better)
