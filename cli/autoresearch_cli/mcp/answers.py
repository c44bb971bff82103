"""What the tools answer: small, and with what others wrote apart from what this node computed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from autoresearch.api import (
    NoteView,
    OpenClaim,
    ProgramView,
    QueuedRun,
    RecordView,
    RunView,
    StatusAnswer,
    TaskStatus,
    WorkerStatus,
)
from autoresearch.direction import MAXIMIZE, MINIMIZE
from autoresearch.sanitise import sanitised
from autoresearch.words import RunStatus

# Where text of other participants stands in an answer. The server's instructions say what that means.
OTHERS = "written_by_participants"
LINE_CHARACTERS = 280
PAGE_CHARACTERS = 12_000

Facts = dict[str, Any]


def _filled(**facts: object) -> Facts:
    """Facts without those that say nothing."""
    return {name: value for name, value in facts.items() if value not in (None, "", [], {})}


def _quoted(**said: object) -> Facts:
    """What others chose, apart: texts, and values with names that they gave."""
    shown = {name: _clean(value) for name, value in said.items() if value}
    return {OTHERS: shown} if shown else {}


def _clean(said: object) -> object:
    match said:
        case str():
            return sanitised(said, lines=True)[:LINE_CHARACTERS]
        case Mapping():
            return {_clean(name): _clean(value) for name, value in said.items()}
        case list() | tuple():
            return [_clean(value) for value in said]
    return said


def _word(word: str, known: type[StrEnum] | tuple[str, ...]) -> str | None:
    """A word of this program; None for another one, that a participant made up."""
    return str(word) if word in tuple(known) else None


def page(text: str, offset: int) -> Facts:
    """A part of a long text of a participant, and where the next one begins."""
    clean = sanitised(text, lines=True)
    part = clean[offset : offset + PAGE_CHARACTERS]
    following = offset + len(part)
    return {
        "offset": offset,
        "characters": len(clean),
        "next_offset": following if following < len(clean) else None,
        OTHERS: {"text": part},
    }


def status(answer: StatusAnswer) -> Facts:
    """What the node does, what waits, and how far the task is."""
    return _filled(
        state=answer.state,
        reason=answer.reason,
        task=task(answer.task) if answer.task else None,
        workers=[_worker(each) for each in answer.workers],
        queue=[queued(each) for each in answer.queue],
        to_count=answer.to_count,
        warnings=[sanitised(text) for text in answer.warnings],
    )


def task(found: TaskStatus) -> Facts:
    """The question and how far the network has come with it."""
    return _filled(
        direction=_word(found.direction, (MINIMIZE, MAXIMIZE)),
        floor=found.floor,
        baseline=found.baseline,
        best=found.best.value if found.best and found.best.value is not None else found.best and found.best.mean,
        runs=found.runs,
        failed=found.failed,
    ) | _quoted(name=found.name, metric=found.metric)


def _worker(worker: WorkerStatus) -> Facts:
    run = worker.run
    if run is None:
        return _filled(device=worker.device, doing="nothing")
    facts = _filled(device=worker.device, doing=run.kind or "run", fraction=round(run.fraction, 3), loss=run.loss)
    return facts | _quoted(title=run.title, headline=run.headline)


def queued(waiting: QueuedRun) -> Facts:
    """A program that waits for a worker."""
    return _filled(name=waiting.name, parent=waiting.parent) | _quoted(title=waiting.title, waits=waiting.reason)


def program(found: ProgramView) -> Facts:
    """A row of the leaderboard."""
    return _filled(
        position=found.position or None,
        id=found.id,
        state=found.state,
        mean=found.mean,
        runs=found.runs,
        measured_by_others=found.value,
        margin=found.margin,
        parent=found.parent,
    ) | _quoted(title=found.title, headline=found.headline)


def run(found: RunView, parent: RunView | None = None) -> Facts:
    """One run, and how it compares with its parent."""
    delta = None if parent is None or None in (found.value, parent.value) else found.value - parent.value  # type: ignore[operator]
    return _filled(
        id=found.id,
        status=_word(found.status, RunStatus) or "unknown",
        state=found.state,
        value=found.value,
        parent=found.parent,
        parent_value=parent.value if parent else None,
        delta=None if delta is None else round(delta, 6),
        seed=found.seed,
        replicate=found.replicate,
        seconds=round(found.duration_ms / 1000, 1),
    ) | _quoted(
        title=found.title,
        headline=found.headline,
        hypothesis=found.hypothesis,
        reason=found.reason,
        proposer=found.proposer,
        metrics=found.metrics,
    )


def record(found: RecordView) -> Facts:
    """A record in a line."""
    return _filled(id=found.id, kind=found.kind, state=found.state) | _quoted(summary=found.summary)


def note(found: NoteView) -> Facts:
    """A note, with what became of the runs that cite it."""
    return _filled(
        id=found.id, topic=found.topic, evidence=list(found.evidence), better=found.better, worse=found.worse
    ) | _quoted(text=found.text)


def claim(found: OpenClaim) -> Facts:
    """What is being tried, and until when (milliseconds since 1970)."""
    return _filled(id=found.id, until_ms=found.until_ms, source_digest=found.source_digest) | _quoted(title=found.title)


def listed(rows: Sequence[Facts], *, limit: int) -> Facts:
    """A page of rows; a full one says how to go on."""
    last = rows[-1].get("id") if len(rows) == limit else None
    return {"rows": list(rows), **({"next_before": last} if last else {})}


def change(old: str, new: str, values: Mapping[str, float | None], changed: Mapping[str, object], diff: str) -> Facts:
    """What changed between two runs."""
    part = page(diff, 0)
    quoted = {OTHERS: {**_quoted(change=changed).get(OTHERS, {}), **part[OTHERS]}}
    return {"old": old, "new": new, **_filled(**values), **part, **quoted}
