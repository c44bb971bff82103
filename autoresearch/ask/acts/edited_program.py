"""A program that somebody wrote by hand: the plan that it becomes, and one run of it in this process.

The plan says which run it changes, and what the change is called. The run needs no daemon; it is walled in, measured
and published like any other.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.lookup import task_of
from autoresearch.ask.runs.boards import resolve_reference
from autoresearch.errors import NotFound, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.bases import contenders
from autoresearch.log.standing.context import is_own_program, own_keys, trust_context
from autoresearch.paths import Paths
from autoresearch.propose.mind.recall import known_genome, text_of
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Run
from autoresearch.run.bench import Ceiling
from autoresearch.run.experiment import Plan, again, plan_as_it_stands
from autoresearch.run.folder import Conditions, RunRequest, checkpoint_of, log_of, new_run
from autoresearch.run.packages import are_allowed, may_install
from autoresearch.run.runner import RunSite, outcome_of, run_here
from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.settings import Work
from autoresearch.task.folder_state import BASELINE
from autoresearch.task.loading import shipped_as
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from autoresearch.task.seeds import seedless_digest, stated_seedless
from autoresearch.text import brief

# An edited program is compared with so many of the best and of one's own newest, and with the baseline.
COMPARED_BEST = 20
COMPARED_OWN = 20
TITLE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Idea:
    """A program for a task, and why it should help.

    ``parent`` names the run whose program was edited (an id, the beginning of one, ``@``, ``@baseline``). Left out, it
    is the known run whose program differs in the fewest lines.
    """

    task: Task
    program: str
    parent: str = ""
    hypothesis: str = ""
    replicate: int = 0


def plan_of_idea(log: Log, blobs: BlobStore, idea: Idea, *, author: bytes) -> Plan:
    """The plan to run an idea, as the child of the run whose program was edited; of a replicate with other seeds.

    The baseline has no parent. A program that was run before is run as it was then, whatever ``parent`` says.

    Raises:
        NotFound, AmbiguousId: ``parent`` names no run here, or several.
        UsageError: ``parent`` is no run on this task, or the program is not Python.
    """
    return again(_first_plan(log, blobs, idea, author), idea.replicate)


def _first_plan(log: Log, blobs: BlobStore, idea: Idea, author: bytes) -> Plan:
    task, program, hypothesis = idea.task, idea.program, idea.hypothesis
    named = run_on(log, task, idea.parent, author) if idea.parent not in ("", BASELINE) else None
    if source_digest(program) == source_digest(task.baseline.decode()):
        genome, _ = known_genome(log, blobs, task, program, None)
        return plan_as_it_stands(task, program, title="the baseline, unchanged", genome=genome)
    idea_digest = seedless_digest(program)
    same = log.programs.find(task.digest, idea_digest, float(task.budget.amount))
    replicate = seed_number(log, task, program)
    if idea_digest == seedless_digest(task.baseline.decode()):
        genome, _ = known_genome(log, blobs, task, task.baseline.decode(), None)
        title = "the baseline with another seed"
        return plan_as_it_stands(task, program, replicate=replicate, title=title, genome=genome, hypothesis=hypothesis)
    if same is not None:
        body = log.records.get(same.first).body_as(Run)
        return plan_as_it_stands(
            task, program, replicate=replicate, title=body.title, parent=body.parent, base=body.base,
            genome=dict(body.genome), hypothesis=hypothesis or body.hypothesis,
        )  # fmt: skip
    if idea.parent == BASELINE:
        named = _baseline(log, task)
    before = named if idea.parent else _nearest(log, blobs, task, program, author)
    title = _title(hypothesis, (before and text_of(log, blobs, before)) or task.baseline.decode(), program)
    genome, base = known_genome(log, blobs, task, program, before)
    return plan_as_it_stands(task, program, title=title, parent=before, base=base, genome=genome, hypothesis=hypothesis)


def seed_number(log: Log, task: Task, program: str) -> int:
    """Which repetition a program is that differs in its seeds alone from others that ran: 0 where there is none.

    The number with which it ran itself, else the next one that no repetition has.
    """
    if stated_seedless(program) is None:
        return 0
    digest = source_digest(program)
    runs = log.runs.of_programs(task.digest, [seedless_digest(program)], any_seeds=True)
    own = [number for source, number, *_ in runs if source == digest]
    return min(own) if own else max((number + 1 for _, number, *_ in runs), default=0)


def run_on(log: Log, task: Task, reference: str, author: bytes | None) -> bytes:
    """The run on a task that somebody names: an id, the beginning of one, ``@``.

    Raises:
        NotFound, AmbiguousId: there is none, or several.
        UsageError: it is no run on this task.
    """
    published = task_of(log, task.digest)
    if published is None and reference.startswith("@"):
        raise NotFound(
            f"No run on {task.name} has a value yet.", hint=f"autoresearch run {shlex.quote(str(task.folder))}"
        )
    run = resolve_reference(log, reference, task=published, author=author)
    body = log.records.get(run).body
    if not isinstance(body, Run) or body.task != task.digest:
        raise UsageError(
            f"{short_id(run)} is no run on the task {task.name}",
            hint="name a run that `autoresearch top` or `autoresearch node records` shows",
        )
    return run


def _nearest(log: Log, blobs: BlobStore, task: Task, program: str, author: bytes) -> bytes | None:
    """The run whose program differs in the fewest lines, a better one before a worse; None: the log has none."""
    best, fewest = None, -1
    for run in _candidates(log, task, author):
        source = text_of(log, blobs, run)
        if source is None:
            continue
        different = changed_lines(source, program)
        if fewest < 0 or different < fewest:
            best, fewest = run, different
    return best


def _candidates(log: Log, task: Task, author: bytes) -> Iterator[bytes]:
    with log.reader.snapshot():
        trust = trust_context(log, author)
        yield from (placed.row.first for placed in contenders(log, task.digest, trust, limit=COMPARED_BEST))
        yield from (stored.record.id for stored in log.runs.newest(task.digest, limit=COMPARED_OWN, author=author))
        if (baseline := _baseline(log, task)) is not None:
            yield baseline


def _baseline(log: Log, task: Task) -> bytes | None:
    """The first run of the task's baseline, whoever ran it."""
    row = log.programs.find(task.digest, source_digest(task.baseline.decode()), float(task.budget.amount))
    return None if row is None else row.first


def changed_lines(old: str, new: str) -> int:
    """How many lines only one of two texts has; moved lines do not count. Linear in their length."""
    before, after = Counter(old.splitlines()), Counter(new.splitlines())
    return (before - after).total() + (after - before).total()


def _title(hypothesis: str, old: str, new: str) -> str:
    """The beginning of the hypothesis; without one the changed line, or how many lines changed."""
    summary = " ".join(hypothesis.split())
    if summary:
        return summary if len(summary) <= TITLE_CHARACTERS else _cut(summary)
    before, after = Counter(old.splitlines()), Counter(new.splitlines())
    added = [line.split("#")[0].strip() for line in (after - before).elements()]
    if len(added) == 1 and 0 < len(added[0]) <= TITLE_CHARACTERS:
        return added[0]
    return f"{max(len(added), (before - after).total())} lines changed by hand"


def _cut(summary: str) -> str:
    """The beginning of a text that fits a title, up to a comma or a word: never half a setting."""
    beginning = summary[: TITLE_CHARACTERS - 1]
    ends = (beginning.rfind(", "), beginning.rfind(" "), len(beginning))
    return beginning[: next(end for end in ends if end >= TITLE_CHARACTERS // 2)].rstrip(",;: ") + "…"


def run_once(
    idea: Idea,
    paths: Paths,
    *,
    now_ms: Callable[[], int],
    work: Work,
    device: str = "cpu",
    progress: Callable[[float, str], None] | None = None,
) -> str:
    """Run an idea once, in this process, and publish the run. Returns the record's id, as text.

    Raises:
        Locked: a daemon or another command works with this device key.
        Refused: the task asks for more than the ceiling, or others wrote some of it and there is no sandbox.
        PackagesNotAllowed: the task's packages have to be installed, and nobody allowed it.
        AutoresearchError: the task can't be run; how the program ends is no error but the record's status.
    """
    task, ceiling = idea.task, Ceiling.of(work)
    ceiling.check(task)
    with Notebook(paths) as notebook:
        notebook.publish_identity(now_ms())
        level, _ = detect_level()
        own = own_keys(notebook.log, notebook.author, now_ms())
        plan = plan_of_idea(notebook.log, notebook.blobs, idea, author=notebook.author)
        foreign = level >= Level.LANDLOCK or not is_own_program(
            notebook.log, task, plan.source, plan.parent, own, shipped=shipped_as(task)
        )

        def tell(step: RunProgress) -> None:
            if progress:
                progress(step.fraction, "" if step.loss is None else f"loss {brief(step.loss)}")

        conditions = Conditions(
            ceiling=ceiling,
            threads=work.threads,
            device=device,
            foreign=foreign,
            may_install=may_install(task, paths, work, notebook.log, notebook.author, now_ms()) if task.packages else 0,
            programs_may_install=are_allowed([plan.source], paths, work),
        )
        place = RunSite(level, paths.task_data, paths.environments, paths.allowed)
        request = RunRequest(run=new_run("run"), task=task, conditions=conditions, plan=plan)
        with run_here(request, place, paths.spool, on_progress=tell) as (folder, ended):
            notebook.publish_task(task, now_ms())
            published = notebook.publish_run(
                plan, outcome_of(ended), now_ms(), log=log_of(folder), checkpoint=checkpoint_of(folder)
            )
    return format_id(published.record.id)
