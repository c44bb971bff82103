"""What a task's number is, and how programs print or measure it, read from sources that are here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from autoresearch.log.blobs import BlobStore
from autoresearch.log.standing.cache import cached
from autoresearch.log.tables.tables import Tables
from autoresearch.record.kinds import Run
from autoresearch.record.kinds import Task as TaskBody
from autoresearch.task.measuring import measuring_digest
from autoresearch.task.model import possible_value
from autoresearch.text import MINIMIZE, sign_of
from autoresearch.words import DISBELIEF_SENTENCES, RUN_STATE_SENTENCES, RunState


class MetricDefinition(NamedTuple):
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


def metric_of(log: Tables, task: bytes) -> MetricDefinition | None:
    """What is known of a task's number; None without a definition."""
    return cached(log, ("metric", task), lambda: _metric(log, task), lasting=True)


def _metric(log: Tables, task: bytes) -> MetricDefinition | None:
    definition = log.tasks.definition(task) or {}
    metric, baseline = definition.get("metric"), definition.get("baseline")
    if not isinstance(metric, Mapping):
        return None
    floor, printed = possible_value(metric.get("floor")), metric.get("source") == "stdout"
    direction = str(metric.get("direction", MINIMIZE))
    digest = baseline if isinstance(baseline, bytes) else None
    return MetricDefinition(str(metric.get("name", "")), direction, floor, printed, digest)


def disbelief_sentence(log: Tables, run: bytes) -> str:
    """Why the value of a run that is not believed is not."""
    reason = log.beliefs.of([run]).get(run)
    return DISBELIEF_SENTENCES[reason] if reason else RUN_STATE_SENTENCES[RunState.NOT_BELIEVED]


# So many of the best runs of a task have their sources read.
_READ = 200


def read_sources(log: Tables, blobs: BlobStore, tasks: Sequence[bytes] | None = None) -> None:
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


def note_sources(log: Tables, task: bytes, sources: Mapping[bytes, str]) -> None:
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


def _baseline(log: Tables, blobs: BlobStore, task: bytes) -> str | None:
    row = log.tasks.find(task)
    body = log.records.get(row.id).body if row else None
    return blobs.text(body.baseline.sha256) if isinstance(body, TaskBody) else None


def _source(log: Tables, blobs: BlobStore, run: bytes) -> str | None:
    body = log.records.get(run).body
    return blobs.text(body.source.sha256) if isinstance(body, Run) else None
