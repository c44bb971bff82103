"""Is a value believed that its program printed itself? A function of the set of runs, and of what a person believes.

Three things speak against one: it is past the task's floor; its program prints or measures the number in another way
than the task's own program; or it is a jump, see :mod:`autoresearch.judging.belief`. No verifier helps against the last
two: the same program prints the same number everywhere. A person who believes one such run believes all runs that
measure as it does, and values as good.

A jump is judged by all values, not only by those before it. So a value is believed when others have filled the gap.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from autoresearch.errors import AutoresearchError
from autoresearch.judging.belief import least_believed
from autoresearch.log.blobs import BlobStore
from autoresearch.log.connection import own_authors
from autoresearch.log.rows import RunFacts
from autoresearch.log.standing.cache import cached
from autoresearch.log.tables.beliefs import PrintedRow
from autoresearch.log.tables.standings import Settled
from autoresearch.record.kinds import Run
from autoresearch.record.kinds import Task as TaskBody
from autoresearch.task.bounds import Bound, bound_of
from autoresearch.task.measuring import measuring_digest
from autoresearch.task.model import possible_value
from autoresearch.text import MINIMIZE, sign_of
from autoresearch.words import BELIEVABLE, DISBELIEF_SENTENCES, RUN_STATE_SENTENCES, Disbelief, RunState

if TYPE_CHECKING:
    from autoresearch.log.log import Log


class Metric(NamedTuple):
    """What a task's definition says of its number. ``printed``: the program itself prints it."""

    name: str
    direction: str
    floor: float | None
    printed: bool
    baseline: bytes | None

    @property
    def sign(self) -> float:
        """The factor that makes smaller values better."""
        return sign_of(self.direction)


def metric_of(log: Log, task: bytes) -> Metric | None:
    """What is known of a task's number; None without a definition."""
    return cached(log, ("metric", task), lambda: _metric(log, task), lasting=True)


def _metric(log: Log, task: bytes) -> Metric | None:
    definition = log.tasks.definition(task) or {}
    metric, baseline = definition.get("metric"), definition.get("baseline")
    if not isinstance(metric, Mapping):
        return None
    floor, printed = possible_value(metric.get("floor")), metric.get("source") == "stdout"
    direction = str(metric.get("direction", MINIMIZE))
    digest = baseline if isinstance(baseline, bytes) else None
    return Metric(str(metric.get("name", "")), direction, floor, printed, digest)


def with_beliefs(log: Log, runs: Sequence[RunFacts], rows: Sequence[Settled]) -> list[Settled]:
    """Rows of runs with the state of those that are not believed. Other runs for which that decides are unsettled.

    Called in :meth:`Writer.settling`, or in the transaction that stores a record.
    """
    by_task = defaultdict[bytes, list[int]](list)
    for at, run in enumerate(runs):
        by_task[run.task].append(at)
    result = list(rows)
    for task, places in by_task.items():
        if (metric := metric_of(log, task)) is not None:
            some = _judged(log, task, metric, [runs[at] for at in places], [rows[at] for at in places])
            for at, row in zip(places, some, strict=True):
                result[at] = row
    return result


def _judged(log: Log, task: bytes, metric: Metric, runs: Sequence[RunFacts], rows: Sequence[Settled]) -> list[Settled]:
    believed, own = log.beliefs.believed(task), own_authors(log.path.parent / "heads")
    ids = {run.id for run in believed}
    programs = {run.source_digest for run in runs} | ({metric.baseline} if metric.baseline else set())
    ways = log.beliefs.measuring(task, programs) if metric.printed else {}
    usual = (ways.get(metric.baseline) or None) if metric.baseline else None  # nothing found says nothing
    trusted = {usual, None, *(run.measuring for run in believed)}
    doubts: list[Disbelief | None] = []
    printed: list[PrintedRow] = []
    for run, row in zip(runs, rows, strict=True):
        doubt = None
        if run.valued and possible_value(run.value, sign=metric.sign, floor=metric.floor) is None:
            doubt = Disbelief.FLOOR
        elif usual is not None and ways.get(run.source_digest) not in trusted and run.id not in ids:
            doubt = Disbelief.MEASURE
        doubts.append(doubt)
        if run.valued and metric.printed:
            counts = row.compared and (row.attested or run.author in own) and row.found.state in BELIEVABLE
            printed.append(PrintedRow(run.n, task, metric.sign * run.value, bool(counts and doubt is None)))
    log.beliefs.write(printed, [run.n for run in runs if not run.valued])
    reach = find_reach(log, task) if metric.printed else None
    result = []
    for run, row, doubt in zip(runs, rows, doubts, strict=True):
        reason = doubt
        if doubt is None and run.valued and reach is not None and run.id not in ids:
            reason = Disbelief.JUMP if metric.sign * run.value < reach else None
        if reason is None or not run.valued or row.found.state not in BELIEVABLE:
            result.append(row)
        else:
            found = row.found._replace(state=RunState.NOT_BELIEVED)
            result.append(row._replace(found=found, disbelief=reason.value))
    return result


def find_reach(log: Log, task: bytes) -> float | None:
    """Find the best score on a task that is believed, by all that are known. Runs that this concerns are unsettled."""
    before, after = log.beliefs.reach(task), _reach(log, task)
    log.beliefs.set_reach(task, after)
    if before != after:
        ends = sorted(-math.inf if one is None else one for one in (before, after))
        log.beliefs.unsettle(task, *ends)
    return after


def _reach(log: Log, task: bytes) -> float | None:
    """From the value that the task began with, and from each that a person believes, to the next one within reach."""
    metric = metric_of(log, task)
    if metric is None or not metric.printed or (first := log.beliefs.first(task, metric.baseline)) is None:
        return None
    bound = _bound(metric, metric.sign * first)
    best = min([first, *(run.score for run in log.beliefs.believed(task) if run.score is not None)])
    while True:
        least = least_believed(best, first, bound, sign=metric.sign)
        following = log.beliefs.best_from(task, least)
        if following is None or following >= best:
            return least
        best = following


def _bound(metric: Metric, value: float) -> Bound | None:
    """The bound that a metric has by its name, else by its task."""
    named = bound_of(metric.name, metric.direction, [value])
    stated = None if metric.floor is None else Bound(metric.floor, counted=False)
    return named or stated


def disbelief_sentence(log: Log, run: bytes) -> str:
    """Why the value of a run that is not believed is not."""
    reason = log.beliefs.of([run]).get(run)
    return DISBELIEF_SENTENCES[reason] if reason else RUN_STATE_SENTENCES[RunState.NOT_BELIEVED]


# So many of the best runs of a task have their sources read.
_READ = 200


def read_sources(log: Log, blobs: BlobStore, tasks: Sequence[bytes] | None = None) -> None:
    """Read from sources that are here how the best programs of some tasks measure, or of all, and the tasks' own.

    Runs for which that decides are to be settled again.
    """
    for task in log.beliefs.tasks() if tasks is None else tasks:
        metric = metric_of(log, task)
        if metric is None or not metric.printed or metric.baseline is None:
            continue
        unread = log.beliefs.unread(task, _READ)
        sources = {digest: _source(log, blobs, run) for digest, run in unread.items()}
        if metric.baseline not in log.beliefs.measuring(task, [metric.baseline]):
            sources[metric.baseline] = _baseline(log, blobs, task)
        note_sources(log, task, {digest: source for digest, source in sources.items() if source is not None})


def note_sources(log: Log, task: bytes, sources: Mapping[bytes, str]) -> None:
    """Note how programs on a task measure, by source digest, where their number is printed."""
    metric = metric_of(log, task)
    if metric is None or not metric.printed:
        return
    noted = log.beliefs.measuring(task, sources)
    new = {digest: source for digest, source in sources.items() if digest not in noted}
    rows = [(digest, measuring_digest(source, metric.name)) for digest, source in new.items()]
    if not rows:
        return
    with log.writer.settling():
        log.beliefs.note_measuring(task, rows)
        if metric.baseline in new:
            log.beliefs.unsettle(task, -math.inf, math.inf)


def _baseline(log: Log, blobs: BlobStore, task: bytes) -> str | None:
    row = log.tasks.find(task)
    body = log.records.get(row.id).body if row else None
    return _text(blobs, body.baseline.sha256) if isinstance(body, TaskBody) else None


def _source(log: Log, blobs: BlobStore, run: bytes) -> str | None:
    body = log.records.get(run).body
    return _text(blobs, body.source.sha256) if isinstance(body, Run) else None


def _text(blobs: BlobStore, sha256: bytes) -> str | None:
    try:
        return blobs.get(sha256).decode() if blobs.has(sha256) else None
    except (AutoresearchError, UnicodeDecodeError):
        return None
