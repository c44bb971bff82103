"""What the log knows, as a proposer wants it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from autoresearch.errors import UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.bases import preferred
from autoresearch.log.standing.context import is_own_run, trust_context, whose
from autoresearch.log.standing.credit import is_heard
from autoresearch.log.standing.trials import Trial, trials
from autoresearch.propose.mind.reply import AnswerRules
from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.guard import names_of, static_guard
from autoresearch.propose.program.ranges import Value
from autoresearch.propose.program.space import space_of
from autoresearch.propose.search.effects import Comparisons
from autoresearch.propose.search.evidence import PastRun
from autoresearch.propose.search.proposal import LiveClaim, SearchProblem
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import Claim, Run
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest, split_program
from autoresearch.text import one_line
from autoresearch.words import HIDDEN, STOPPED, RunStatus


def recall(
    log: Log,
    blobs: BlobStore,
    task: Task,
    now_ms: int,
    *,
    me: bytes,
    own: frozenset[bytes] | None = None,
    may_run: Callable[[str], bool] = lambda _: True,
) -> tuple[SearchProblem, list[PastRun], list[LiveClaim]]:
    """The problem, the runs with the task's full budget that say the most, and what is being tried at this moment.

    ``me`` is the device that asks: what it measured itself comes before what others only say. With ``own``,
    this participant's keys, only programs are built upon in which others had no part. Nor is a program built upon that
    ``may_run`` refuses: it may bring packages that nobody allowed here.
    """

    def source_of(run: bytes) -> str | None:
        record = log.records.find(run)
        if record is None or not isinstance(record.body, Run) or not (own is None or is_own_run(log, run, own)):
            return None
        source = blobs.text(record.body.source.sha256)  # None: the proposer does without it
        return source if source is not None and may_run(source) else None

    compared = Comparisons(log, task.digest, me)

    def median_of(setting: str) -> float | None:
        effect = compared.of(setting)
        return None if effect is None else effect.median

    problem = SearchProblem(
        task=task.digest,
        baseline=task.baseline.decode(),
        direction=task.metric.direction,
        noise=task.metric.noise,
        floor=task.metric.floor,
        source_of=source_of,
        patches=patches_of(task),
        median_of=median_of,
    )
    with log.reader.snapshot():
        ended = ended_trials(log, task, me)
        failed = log.records.several([trial.row.id for trial in ended if trial.row.status != RunStatus.OK])
        faults = {record.id: record.body.reason for record in failed if isinstance(record.body, Run)}
        runs = [past_run(trial, faults.get(trial.row.id, "")) for trial in ended]
        return problem, runs, claims(log, task.digest, now_ms, me)


def ended_trials(log: Log, task: Task, me: bytes) -> list[Trial]:
    """The runs that ended, and how far each may be built upon: those with the task's full budget, or of agents all."""
    baseline = source_digest(task.baseline.decode())
    return [
        run
        for run in trials(log, task.digest, trust_context(log, me), device=me, always=[baseline])
        if (run.row.budget == task.budget.amount or task.budget.unit == "episodes") and run.row.status not in STOPPED
    ]


def known_genome(
    log: Log, blobs: BlobStore, task: Task, program: str, parent: bytes | None
) -> tuple[dict[str, Value], bytes | None]:
    """The genome of a program that was edited by hand, and the digest of the base that it changes (None: baseline).

    It changes the base of its ``parent`` run, else of the task's program, where it changes only settings of that. A
    program that changes anything else is its own base: its genome are the settings that are read in its text.
    """
    record, patches = log.records.find(parent) if parent is not None else None, patches_of(task)
    before = record.body if record and isinstance(record.body, Run) else None
    source: str | None = task.baseline.decode()
    base = None
    if before is not None:
        base = before.base if before.genome else before.source_digest
        base = None if base == source_digest(task.baseline.decode()) else base
    if base is not None:
        first = log.programs.find(task.digest, base, float(task.budget.amount))
        source = None if first is None else text_of(log, blobs, first.first)
    space = space_of(source or "", patches)
    genome = None if source is None else space.genome_of(program, before.genome if before else {})
    if genome is not None:
        return genome, base if genome else None
    genome = space_of(program, patches).settings(space.parameters)
    return genome, source_digest(program) if genome else None


# A program leads a smaller size beyond luck when so many seeds of it ran there.
MOVED_AFTER = 2


def due_from_smaller(log: Log, blobs: BlobStore, task: Task, now_ms: int, *, me: bytes) -> tuple[str, str] | None:
    """The program that leads the next smaller size of a task, and that size's name, where it was not tried here yet.

    None while the baseline has no value here: there would be nothing to compare it with.
    """
    budget = float(task.budget.amount)
    smaller = [row for row in log.tasks.sizes(task.digest) if row.budget is not None and row.budget < budget]
    if not smaller or log.programs.find(task.digest, source_digest(task.baseline.decode()), budget) is None:
        return None
    leads = preferred(log, smaller[-1].digest, trust_context(log, me))
    if leads is None or leads.row.runs < MOVED_AFTER or known_as(log, task, leads.row.source_digest, now_ms, me=me):
        return None
    program = text_of(log, blobs, leads.row.first)
    return None if program is None else (program, smaller[-1].name)


def text_of(log: Log, blobs: BlobStore, run: bytes) -> str | None:
    """The program of a run, where it is on this machine and is text."""
    record = log.records.find(run)
    return blobs.text(record.body.source.sha256) if record and isinstance(record.body, Run) else None


def past_run(trial: Trial, fault: str = "") -> PastRun:
    """A run as a proposer sees it, with what others measured in its value's place, and the error of a failed one."""
    row = trial.row
    return PastRun(
        id=row.id,
        source_digest=row.source_digest,
        genome=msgspec.json.decode(row.genome),
        value=None if trial.failure else trial.value,
        replicate=row.replicate,
        parent=row.parent,
        base=row.base,
        tier=trial.tier,
        believed=trial.believed or bool(trial.failure),
        preferred=trial.preferred,
        fault=fault or trial.failure,
        seedless=row.seedless if row.seedless != row.source_digest else None,
    )


def claims(log: Log, task: bytes, now_ms: int, me: bytes) -> list[LiveClaim]:
    """What ``me`` and those that are vouched for try at this moment on the task of this digest."""
    context = trust_context(log, me)
    return [
        LiveClaim(source_digest=row.source_digest, replicate=row.replicate, genome=_genome(log, row.id))
        for row in log.claims.open(task, now_ms=now_ms)
        if is_heard(row.author, now_ms, context, me)
    ]


def _genome(log: Log, claim: bytes) -> dict[str, int | float | str | bool]:
    record = log.records.find(claim)
    return record.body.genome if record and isinstance(record.body, Claim) else {}


def run_before(log: Log, task: Task, program: bytes, *, replicate: int = 0, me: bytes | None = None) -> bytes | None:
    """The run that makes another one of a program with the same seed needless; None where there is none.

    One of this device ``me`` that ended, however it ended; or one of another attested participant that has a value.
    Seconds differ between machines, so on a wall-clock task only one's own runs count.
    """
    with log.reader.snapshot():
        context = trust_context(log, me)
        runs = [run for _, number, _, run, _ in log.runs.of_programs(task.digest, [program]) if number == replicate]
        ended = [
            row
            for row in log.runs.history_of(runs)
            if row.budget == task.budget.amount
            and row.status not in STOPPED
            and (
                row.author == me
                or (
                    row.status == RunStatus.OK
                    and task.budget.unit != "seconds"
                    and any(whose(row.author, row.time, context))
                )
            )
        ]
    first = min(ended, key=lambda row: (row.status != RunStatus.OK, row.time, row.id), default=None)
    return None if first is None else first.id


def known_as(log: Log, task: Task, program: bytes, now_ms: int, *, me: bytes | None = None) -> str:
    """What is known of a program that was run with the first seed or is being tried; empty for a new one."""
    run = run_before(log, task, program, me=me)
    if run is not None:
        body = log.records.get(run).body_as(Run)
        reason = HIDDEN if log.hidden.of([run]) else body.reason
        came = f"gave {body.value:.6g}" if body.value is not None else f"ended as {body.status}: {reason}"
        return f"{short_id(run)} {came}"
    context = trust_context(log, me)
    tried = any(
        row.source_digest == program and row.author != me and is_heard(row.author, now_ms, context, me)
        for row in log.claims.open(task.digest, now_ms=now_ms)
    )
    return "another node is trying it now" if tried else ""


def reply_rules(log: Log, task: Task, parent: str, *, now_ms: int, me: bytes | None = None) -> AnswerRules:
    """What a model's answer must hold to that changes the program ``parent``; the log must stay open meanwhile."""
    names = names_of(task)
    return AnswerRules(
        parent=parent,
        files=frozenset(split_program(parent)),
        digest=lambda source: digest_of(task, source),
        largest_bytes=task.limits.program_kib << 10,
        past_result=lambda program: known_as(log, task, program, now_ms, me=me),
        guard=partial(static_guard, names=names) if names else None,
    )


def digest_of(task: Task, program: str) -> bytes:
    """The digest of a program for a task. Raises UsageError where it is none, or has other files."""
    if task.recipe.fault(split_program(program), task.harness) is not None:
        raise UsageError(f"its files would no longer be {', '.join(task.recipe.edit)}")
    return source_digest(program)


# A curve is shown as so many numbers, beside so many others that were measured, each with a name of so many characters.
CURVE_POINTS, MEASURED, NAME_CHARACTERS = 12, 8, 48


def curve_row(name: str, run: Run) -> str:
    """A run's curve as some numbers, and what else it measured, in one line; empty where there is neither."""
    values, points = run.curve, min(len(run.curve), CURVE_POINTS)
    picked = [values[round(at * (len(values) - 1) / (points - 1))] for at in range(points)] if points > 1 else []
    curve = " ".join(f"{value:.4g}" for value in picked)
    measured = ", ".join(
        f"{one_line(metric, NAME_CHARACTERS)} {value:.4g}" for metric, value in list(run.metrics.items())[:MEASURED]
    )
    return f"{name}  {'; '.join(part for part in (curve, measured) if part)}" if curve or measured else ""
