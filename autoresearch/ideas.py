"""Turns a program that somebody wrote by hand into a plan: which run it changes, and what the change is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from autoresearch.answers import resolve_reference, task_of
from autoresearch.errors import NotFound, UsageError
from autoresearch.log import BlobStore, Log
from autoresearch.recalling import known_genome, text_of
from autoresearch.records import Run, short_id
from autoresearch.research import Plan, plan_as_it_stands
from autoresearch.tasks import Task, source_digest
from autoresearch.views import contenders, trust_context

# An edited program is compared with so many of the best and of one's own newest, and with the baseline.
COMPARED_BEST = 20
COMPARED_OWN = 20
TITLE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Idea:
    """A program for a task, and why it should help.

    ``parent`` names the run whose program was edited (an id, the beginning of one, ``@``). Left out, it is the known
    run whose program differs in the fewest lines.
    """

    task: Task
    program: str
    parent: str = ""
    hypothesis: str = ""
    replicate: int = 0


def plan_of_idea(log: Log, blobs: BlobStore, idea: Idea, *, author: bytes) -> Plan:
    """The plan to run an idea, as the child of the run whose program was edited.

    The baseline has no parent. A program that was run before is run as it was then, whatever ``parent`` says.

    Raises:
        NotFound, AmbiguousId: ``parent`` names no run here, or several.
        UsageError: ``parent`` is no run on this task, or the program is not Python.
    """
    task, program, hypothesis, replicate = idea.task, idea.program, idea.hypothesis, idea.replicate
    named = run_on(log, task, idea.parent, author) if idea.parent else None
    if source_digest(program) == source_digest(task.baseline.decode()):
        genome, _ = known_genome(log, blobs, task, program, None)
        return plan_as_it_stands(task, program, replicate=replicate, title="the baseline, unchanged", genome=genome)
    same = log.programs.find(task.digest, source_digest(program), float(task.budget.amount))
    if same is not None:
        body = log.records.get(same.first).body
        assert isinstance(body, Run)
        return plan_as_it_stands(
            task, program, replicate=replicate, title=body.title, parent=body.parent, base=body.base,
            genome=dict(body.genome), hypothesis=hypothesis or body.hypothesis,
        )  # fmt: skip
    before = named or _nearest(log, blobs, task, program, author)
    title = _title(hypothesis, (before and text_of(log, blobs, before)) or task.baseline.decode(), program)
    genome, base = known_genome(log, blobs, task, program, before)
    return plan_as_it_stands(
        task, program, replicate=replicate, title=title, parent=before, base=base, genome=genome, hypothesis=hypothesis
    )


def run_on(log: Log, task: Task, reference: str, author: bytes | None) -> bytes:
    """The run on a task that somebody names: an id, the beginning of one, ``@``.

    Raises:
        NotFound, AmbiguousId: there is none, or several.
        UsageError: it is no run on this task.
    """
    published = task_of(log, task.digest)
    if published is None and reference.startswith("@"):
        raise NotFound(f"No run on {task.name} has a value yet.", hint=f"autoresearch run {task.folder}")
    found = resolve_reference(log, reference, task=published, author=author)
    body = log.records.get(found).body
    if not isinstance(body, Run) or body.task != task.digest:
        raise UsageError(
            f"{short_id(found)} is no run on the task {task.name}",
            hint="name a run that `autoresearch top` or `autoresearch log` shows",
        )
    return found


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
        here = trust_context(log, author)
        yield from (placed.row.first for placed in contenders(log, task.digest, here, limit=COMPARED_BEST))
        yield from (stored.record.id for stored in log.runs.newest(task.digest, limit=COMPARED_OWN, author=author))
        baseline = log.programs.find(task.digest, source_digest(task.baseline.decode()), float(task.budget.amount))
        if baseline is not None:
            yield baseline.first


def changed_lines(old: str, new: str) -> int:
    """How many lines only one of two texts has; moved lines do not count. Linear in their length."""
    before, after = Counter(old.splitlines()), Counter(new.splitlines())
    return (before - after).total() + (after - before).total()


def _title(hypothesis: str, old: str, new: str) -> str:
    """The beginning of the hypothesis; without one the changed line, or how many lines changed."""
    said = " ".join(hypothesis.split())
    if said:
        return said if len(said) <= TITLE_CHARACTERS else said[: TITLE_CHARACTERS - 1] + "…"
    before, after = Counter(old.splitlines()), Counter(new.splitlines())
    added = [line.split("#")[0].strip() for line in (after - before).elements()]
    if len(added) == 1 and 0 < len(added[0]) <= TITLE_CHARACTERS:
        return added[0]
    return f"{max(len(added), (before - after).total())} lines changed by hand"
