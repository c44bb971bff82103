"""Answers as small plain values for coding agents. What others wrote stands apart from what this node computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from autoresearch.ask.acts.varying import VaryAnswer
from autoresearch.ask.discussion import NoteView, OpenClaim
from autoresearch.ask.node import QueuedRun, StatusAnswer, TaskStatus, WorkerStatus
from autoresearch.ask.records import EditOutcome, RecordView
from autoresearch.ask.runs.answers import DiffAnswer, EffectView, RunRow
from autoresearch.log.standing.answers import ProgramView, RunNumbers, RunView, numbers_of
from autoresearch.text import MAXIMIZE, MINIMIZE, sanitised
from autoresearch.words import RunStatus

# Where text of other participants stands in an answer. The server's instructions say what that means.
OTHERS = "written_by_participants"
LINE_CHARACTERS = 280
PAGE_CHARACTERS = 12_000

Facts = dict[str, Any]


def filled(**facts: object) -> Facts:
    """Facts without those that say nothing."""
    return {name: value for name, value in facts.items() if value not in (None, "", [], {})}


def quoted(**values: object) -> Facts:
    """What others chose, apart: texts, and values with names that they gave."""
    cleaned = {name: _clean(value) for name, value in values.items() if value}
    return {OTHERS: cleaned} if cleaned else {}


def _clean(content: object) -> object:
    match content:
        case str():
            return sanitised(content, lines=True)[:LINE_CHARACTERS]
        case Mapping():
            return {_clean(name): _clean(value) for name, value in content.items()}
        case list() | tuple():
            return [_clean(value) for value in content]
    return content


def _word(word: str, words: type[StrEnum] | tuple[str, ...]) -> str | None:
    """A word of this program; None for another one, that a participant made up."""
    return str(word) if word in tuple(words) else None


def page_facts(text: str, offset: int) -> Facts:
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


def status_facts(answer: StatusAnswer) -> Facts:
    """What the node does, what waits, and how far the task is."""
    return filled(
        state=answer.state,
        reason=answer.reason,
        task=task_facts(answer.task) if answer.task else None,
        workers=[_worker(each) for each in answer.workers],
        queue=[queued(each) for each in answer.queue],
        to_count=answer.to_count,
        conditions=[sanitised(f"{condition.name}: {condition.sentence}") for condition in answer.conditions],
    )


def task_facts(task: TaskStatus) -> Facts:
    """The question and how far the network has come with it."""
    return filled(
        direction=_word(task.direction, (MINIMIZE, MAXIMIZE)),
        floor=task.floor,
        baseline=task.baseline,
        best={"id": task.best.id, "state": task.best.state, **number_facts(task.best)} if task.best else None,
        runs=task.runs,
        failed=task.failed,
    ) | quoted(name=task.name, metric=task.metric)


def _worker(worker: WorkerStatus) -> Facts:
    run = worker.run
    if run is None:
        return filled(device=worker.device, doing="nothing")
    facts = filled(device=worker.device, doing=run.kind or "run", fraction=round(run.fraction, 3), loss=run.loss)
    return facts | quoted(title=run.title, headline=run.headline)


def queued(waiting: QueuedRun) -> Facts:
    """A program that waits for a worker."""
    return filled(name=waiting.name, parent=waiting.parent) | quoted(title=waiting.title, waits=waiting.reason)


def number_facts(numbers: RunNumbers) -> Facts:
    """The numbers of a run by their words: what its author reports, what verifiers measured, its gain on its parent."""
    return {name: number for name, number in msgspec.structs.asdict(numbers_of(numbers)).items() if number is not None}


def program_facts(program: ProgramView) -> Facts:
    """A row of the leaderboard."""
    return filled(
        position=program.position or None,
        id=program.id,
        state=program.state,
        verdict=program.verdict,
        **number_facts(program),
        parent=program.parent,
    ) | quoted(title=program.title, headline=program.headline)


def run_facts(view: RunView) -> Facts:
    """One run, and how it compares with its parent."""
    run = view.run
    return filled(
        id=view.id,
        status=_word(run.status, RunStatus) or "unknown",
        state=view.standing.state,
        **number_facts(view.standing),
        parent=run.parent,
        seed=run.seed,
        replicate=run.replicate,
        seconds=round(run.duration_ms / 1000, 1),
    ) | quoted(
        title=run.title,
        headline=view.standing.headline,
        hypothesis=run.hypothesis,
        reason=run.reason,
        proposer=run.proposed_by,
        metrics=run.metrics,
    )


def record_facts(record: RecordView) -> Facts:
    """A record in a line."""
    return filled(id=record.id, kind=record.kind, state=record.state) | quoted(summary=record.summary)


def row_facts(row: RunRow) -> Facts:
    """One run of those that a condition finds."""
    return filled(
        id=row.id,
        status=_word(row.status, RunStatus) or "unknown",
        state=row.state,
        **number_facts(row),
        parent=row.parent,
        replicate=row.replicate,
    ) | quoted(headline=row.headline)


def note_facts(note: NoteView) -> Facts:
    """A note, with what became of the runs that cite it."""
    return filled(
        id=note.id, topic=note.topic, evidence=list(note.evidence), better=note.better, worse=note.worse
    ) | quoted(text=note.text)


def claim_facts(claim: OpenClaim) -> Facts:
    """What is being tried, and until when (milliseconds since 1970)."""
    return filled(id=claim.id, until_ms=claim.until_ms, source_digest=claim.source_digest) | quoted(title=claim.title)


def effect_facts(effect: EffectView) -> Facts:
    """What a setting did."""
    facts = msgspec.structs.asdict(effect)
    return filled(**{name: value for name, value in facts.items() if name not in ("name", "failed_as")}) | quoted(
        setting=effect.name, failed_as=effect.failed_as
    )


def experiment_facts(experiment: VaryAnswer, again: Facts) -> Facts:
    """An experiment: its programs, what each value did, which settings depend on each other; ``again`` asks for it."""
    following: list[Facts] = [{"tool": "run", "arguments": again}]
    if not experiment.to_go:
        following = [
            {"tool": "best", "arguments": {}},
            {"tool": "run", "arguments": {"parent": "@"}, "add": ["edits", "hypothesis"]},
        ]
    return filled(
        next=following,
        variants=msgspec.to_builtins(experiment.variants),
        levels=msgspec.to_builtins(experiment.levels),
        interactions=msgspec.to_builtins(experiment.interactions),
        noise=experiment.noise,
        proposed=experiment.proposed,
        to_go=experiment.to_go,
        elsewhere=experiment.elsewhere or None,
    )


def outcome_facts(outcome: EditOutcome) -> Facts:
    """What came of a run, with the next step as calls of tools."""
    facts = msgspec.to_builtins(outcome)
    calls = [filled(**call) for call in facts.pop("calls")]
    cause, notes = facts.pop("cause"), facts.pop("notes")
    for name in ("parent_seeds", "margin", "within_noise") if outcome.gain is None else ():
        del facts[name]
    return filled(**facts | {"next": calls}) | quoted(cause=cause, notes=notes)


def listed_facts(rows: Sequence[Facts], *, limit: int) -> Facts:
    """A page of rows; a full one says how to go on."""
    last = rows[-1].get("id") if len(rows) == limit else None
    return {"rows": list(rows), **({"next_before": last} if last else {})}


def change_facts(diff: DiffAnswer) -> Facts:
    """What changed between two runs."""
    part = page_facts(diff.diff, 0)
    texts = {OTHERS: {**quoted(change=diff.change).get(OTHERS, {}), **part[OTHERS]}}
    numbers = {"old_numbers": number_facts(diff.old_numbers), "new_numbers": number_facts(diff.new_numbers)}
    return {"old": diff.old, "new": diff.new, "is_parent": diff.is_parent, **filled(**numbers), **part, **texts}
