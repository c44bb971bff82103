"""Beliefs: is a value believed that its program printed itself? By all runs of its task, and by what a person believes.

Three things speak against one: it is past the task's floor; its program prints or measures the number in another way
than the task's own program; or it is a jump, see :mod:`autoresearch.judging.belief`. No verifier helps against the last
two: the same program prints the same number everywhere. A person who believes one such run believes all runs that
measure as it does, and values as good.

A jump is judged by all values, not only by those before it. So a value is believed when others have filled the gap.
``printed`` has the values, ``reach`` the best one that is believed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from autoresearch.judging.belief import least_believed
from autoresearch.log.connection import own_authors
from autoresearch.log.derive.step import Items, Step, done
from autoresearch.log.rows import RunFacts
from autoresearch.log.standing.metrics import MetricDefinition, metric_of
from autoresearch.log.tables.beliefs import PrintedRow
from autoresearch.log.tables.standings import JudgedRun
from autoresearch.log.tables.tables import Tables
from autoresearch.task.bounds import Bound, bound_of
from autoresearch.task.model import possible_value
from autoresearch.words import BELIEVABLE, Disbelief, RunState


def derive(log: Tables, tasks: Sequence[bytes], _: float) -> Items:
    """Of tasks whose runs went, find again what is believed."""
    for task in tasks:
        find_reach(log, task)
    return {}


def with_beliefs(log: Tables, runs: Sequence[RunFacts], rows: Sequence[JudgedRun]) -> list[JudgedRun]:
    """Rows of runs with the state of those that are not believed. Others that it decides are judged again."""
    by_task = defaultdict[bytes, list[int]](list)
    for at, run in enumerate(runs):
        by_task[run.task].append(at)
    result = list(rows)
    for task, places in by_task.items():
        if (metric := metric_of(log, task)) is not None:
            some = _believed(log, task, metric, [runs[at] for at in places], [rows[at] for at in places])
            for at, row in zip(places, some, strict=True):
                result[at] = row
    return result


def _believed(
    log: Tables, task: bytes, metric: MetricDefinition, runs: Sequence[RunFacts], rows: Sequence[JudgedRun]
) -> list[JudgedRun]:
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
            counts = row.compared and (row.attested or run.author in own) and row.judgement.state in BELIEVABLE
            printed.append(PrintedRow(run.n, task, metric.sign * run.value, bool(counts and doubt is None)))
    log.beliefs.write(printed, [run.n for run in runs if not run.valued])
    reach = find_reach(log, task) if metric.printed else None
    result = []
    for run, row, doubt in zip(runs, rows, doubts, strict=True):
        reason = doubt
        if doubt is None and run.valued and reach is not None and run.id not in ids:
            reason = Disbelief.JUMP if metric.sign * run.value < reach else None
        if reason is None or not run.valued or row.judgement.state not in BELIEVABLE:
            result.append(row)
        else:
            judgement = row.judgement._replace(state=RunState.NOT_BELIEVED)
            result.append(row._replace(judgement=judgement, disbelief=reason.value))
    return result


def find_reach(log: Tables, task: bytes) -> float | None:
    """Find the best score on a task that is believed, by all scores. Runs that this concerns are judged again."""
    before, after = log.beliefs.reach(task), _reach(log, task)
    log.beliefs.set_reach(task, after)
    done(log.reader.connection, "beliefs", [task])
    if before != after:
        ends = sorted(-math.inf if reach is None else reach for reach in (before, after))
        log.beliefs.unsettle(task, *ends)
    return after


def _reach(log: Tables, task: bytes) -> float | None:
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


def _bound(metric: MetricDefinition, value: float) -> Bound | None:
    """The bound that a metric has by its name, else by its task."""
    named = bound_of(metric.name, metric.direction, [value])
    stated = None if metric.floor is None else Bound(metric.floor, counted=False)
    return named or stated


BELIEFS = Step(
    "beliefs",
    reads="record run task standing measuring believed",
    writes="printed reach",
    derive=derive,
)
