"""The register of dead ends of a task, read from a log; and whether a proposal goes into one again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import cached
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.credit import is_heard
from autoresearch.log.standing.trials import Trial, trials
from autoresearch.log.standing.verdicts import spread_of
from autoresearch.log.tables.differences import differing
from autoresearch.propose.mind.recall import text_of
from autoresearch.propose.search.dead_ends import TRIES, DeadEnd, Noise, Try, cause_of, code_lines, dead_ends
from autoresearch.record.kinds import Run
from autoresearch.run.experiment import Plan
from autoresearch.task.model import Metric, Task
from autoresearch.text import one_line, sign_of
from autoresearch.words import NOT_EVALUATED, STOPPED, RunStatus

# So many programs that failed for one cause are read, and so many of the newest that work.
FAILED_READ, WORKING_READ = 20, 100
_FAULT = 200


def dead_ends_of(
    log: Log, blobs: BlobStore, task: bytes, metric: Metric, budget: float | None, *, me: bytes | None
) -> list[DeadEnd]:
    """The dead ends of a task by the runs with this budget (None: by all), of attested participants and one's own."""
    place = ("dead ends", task, budget, me)
    return cached(log, place, lambda: _dead_ends_of(log, blobs, task, metric, budget, me))


def budget_of(task: Task) -> float | None:
    """The budget of the runs of a task that are compared; None: all are."""
    return None if task.budget.unit == "episodes" else float(task.budget.amount)


def repeated_end(log: Log, blobs: BlobStore, task: Task, plan: Plan, *, me: bytes | None) -> DeadEnd | None:
    """The dead end that a plan goes into again without saying why it differs; None for a program that was run before.

    A hypothesis says so that names one of the dead end's runs.
    """
    if plan.replicate or log.programs.find(task.digest, plan.source_digest, float(task.budget.amount)):
        return None
    parent = log.records.find(plan.parent) if plan.parent else None
    before = parent.body.genome if parent and isinstance(parent.body, Run) else {}
    for end in dead_ends_of(log, blobs, task.digest, task.metric, budget_of(task), me=me):
        if end.is_repeated(before, plan.genome, plan.source) and not end.is_answered(plan.hypothesis):
            return end
    return None


def _dead_ends_of(
    log: Log, blobs: BlobStore, task: bytes, metric: Metric, budget: float | None, me: bytes | None
) -> list[DeadEnd]:
    context = trust_context(log, me)
    groups: dict[bytes, list[Trial]] = defaultdict(list)
    for trial in trials(log, task, context, device=me or b""):
        row = trial.row
        if budget in (None, row.budget) and row.status not in STOPPED and is_heard(row.author, row.time, context, me):
            groups[row.seedless].append(trial)
    values = {program: [trial.value for trial in group if _has_value(trial)] for program, group in groups.items()}
    means = {program: sum(numbers) / len(numbers) for program, numbers in values.items() if numbers}  # type: ignore[arg-type]
    sign = sign_of(metric.direction)
    best = min(means, key=lambda program: (sign * means[program], program), default=None)
    spread = spread_of(log, task, metric)
    programs = {trial.row.id: program for program, group in groups.items() for trial in group}
    firsts = {
        program: min(group, key=lambda trial: (trial.row.time, trial.row.id)) for program, group in groups.items()
    }
    faults = _faults(log, [first for program, first in firsts.items() if program not in means])
    tries = []
    for program, first in firsts.items():
        above = programs.get(first.row.parent) if first.row.parent else None
        if above is None or above == program or above not in means or not (program in means or program in faults):
            continue
        same_base = first.row.base == firsts[above].row.base
        settings = _settings(first)
        tries.append(
            Try(
                id=first.row.id,
                author=first.row.author,
                changed=differing(_settings(firsts[above]), settings, same_base=same_base),
                settings=settings,
                value=means.get(program),
                runs=len(values[program]),
                parent=above,
                parent_value=means[above],
                parent_runs=len(values[above]),
                is_alone=same_base,
                fault=faults.get(program, ""),
            )
        )
    often = {cause for cause, number in Counter(map(cause_of, tries)).items() if cause and number >= TRIES}
    places = Counter[str]()
    for at, each in enumerate(tries):
        places[cause_of(each)] += 1
        if cause_of(each) in often and places[cause_of(each)] <= FAILED_READ:
            tries[at] = each._replace(added=_added(log, blobs, each, firsts))
    newest = sorted(means, key=lambda program: -firsts[program].row.time)[:WORKING_READ] if often else []
    texts = (text_of(log, blobs, firsts[program].row.id) for program in newest)
    return dead_ends(
        tries,
        noise=None if spread is None else Noise(spread.deviation, spread.wide),
        sign=sign,
        best=_settings(firsts[best]) if best else {},
        working=[text for text in texts if text],
    )


def _has_value(trial: Trial) -> bool:
    return trial.row.status == RunStatus.OK and trial.value is not None and trial.believed


def _settings(trial: Trial) -> Mapping[str, int | float | str | bool]:
    return msgspec.json.decode(trial.row.genome, type=dict[str, bool | int | float | str])


def _faults(log: Log, failed: Sequence[Trial]) -> dict[bytes, str]:
    """How programs explain that they failed, by their digests."""
    rows = [each.row for each in failed if each.row.status not in (*NOT_EVALUATED, RunStatus.OK)]
    bodies = {record.id: record.body for record in log.records.several([row.id for row in rows])}
    impossible = {each.row.seedless: each.failure for each in failed if each.failure}
    return impossible | {
        row.seedless: one_line(body.reason, _FAULT) or row.status
        for row in rows
        if isinstance(body := bodies.get(row.id), Run)
    }


def _added(log: Log, blobs: BlobStore, each: Try, firsts: Mapping[bytes, Trial]) -> frozenset[str]:
    """The lines that a failed program has and its parent lacks."""
    program, before = text_of(log, blobs, each.id), text_of(log, blobs, firsts[each.parent].row.id)
    return code_lines(program) - code_lines(before) if program and before else frozenset()
