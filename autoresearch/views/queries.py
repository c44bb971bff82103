"""Queries: best, leaderboard, history, claims, lineage, statistics. Functions of a log's records."""

from __future__ import annotations

import msgspec

from autoresearch.api import LineageStep, ProgramView, RunView
from autoresearch.errors import UsageError
from autoresearch.log import Log, ProgramRow, StoredRun
from autoresearch.records import Run, format_id, parse_id
from autoresearch.verification import Judgement, margin
from autoresearch.views.bans import bans
from autoresearch.views.cache import endings_of, in_snapshot, verified
from autoresearch.views.display_names import participant_of
from autoresearch.views.hardware import comparing
from autoresearch.views.models import ClaimView, HistoryEntry, TaskStatistics
from autoresearch.views.ranking import program_as_reported
from autoresearch.views.trust_context import trust_context
from autoresearch.views.verification_state import judge_soon, judgement, state_of
from autoresearch.words import RunState, with_article

MAX_LINEAGE = 1000
# So many more rows are read, since some may be copies or on other hardware.
PAGE_MORE = 20
# A child of a false run was compared with a value that does not exist.
FALSE = (RunState.REFUTED, RunState.FRAUD)

_genome = msgspec.json.Decoder(dict[str, int | float | str | bool])


def runs(log: Log, task: bytes, *, limit: int = 50, author: bytes | None = None) -> list[RunView]:
    """The newest runs on a task first."""
    return [run_view(log, stored) for stored in log.runs.newest(task, limit=limit, author=author)]


def run(log: Log, run_id: bytes) -> RunView:
    """One run, withdrawn or not. Raises NotFound, or UsageError when the id is that of another kind of record."""
    run_body(log, run_id)
    record = log.records.get(run_id)
    return run_view(log, StoredRun(record, log.devices.forked(record)))


def run_body(log: Log, run_id: bytes) -> Run:
    """The body of a run's record. Raises NotFound, or UsageError when it is another kind of record."""
    record = log.records.get(run_id)
    if not isinstance(record.body, Run):
        raise UsageError(
            f"{format_id(run_id)} is {with_article(record.kind)}, not a run.", hint="autoresearch log --kind run"
        )
    return record.body


def history(log: Log, task: bytes) -> list[HistoryEntry]:
    """All runs on a task, compact, the oldest first. Runs behind an unmerged fork are left out."""
    return [
        HistoryEntry(
            id=format_id(row.id),
            source_digest=row.source_digest.hex(),
            genome=_genome.decode(row.genome),
            value=row.value,
            replicate=row.replicate,
            parent=_id(row.parent),
            base=_hex(row.base),
            status=row.status,
            author=row.author.hex(),
            budget=row.budget,
            time_ms=row.time,
        )
        for row in log.runs.history(task)
        if not row.forked
    ]


def live_claims(log: Log, task: bytes, now_ms: int) -> list[ClaimView]:
    """The claims that hold now, the oldest first."""
    return [
        ClaimView(
            id=format_id(row.id),
            source_digest=row.source_digest.hex(),
            replicate=row.replicate,
            author=row.author.hex(),
            time_ms=row.time,
            until_ms=row.until,
            title=row.title,
        )
        for row in log.claims.open(task, now_ms=now_ms)
    ]


@in_snapshot
def leaderboard(log: Log, task: bytes, limit: int = 50) -> list[ProgramView]:
    """The best programs of a task first, by reported mean ± noise/√n: ok runs with the full budget, or any.

    Empty while the task's own record is not in the log: without it the better direction is not known.
    """
    kept: list[ProgramRow] = []
    skip, size, is_comparable = 0, limit + PAGE_MORE, comparing(log, task)
    while len(kept) < limit and (page := log.programs.ranked(task, limit=size, skip=skip)):
        kept += filter(is_comparable, page)
        skip += size
    judge_soon(log, [run for row in kept[:limit] for run in (row.first, row.parent) if run])
    rows = enumerate(kept[:limit], start=1)
    return [program_view(log, row, judgement(log, row.first), position=position) for position, row in rows]


def best(log: Log, task: bytes) -> ProgramView | None:
    """The first of the leaderboard, or None."""
    return next(iter(leaderboard(log, task, limit=1)), None)


@in_snapshot
def lineage(log: Log, run_id: bytes) -> list[LineageStep]:
    """The runs from the oldest known ancestor to this one, each with the change of its mean from its parent.

    Raises NotFound, or UsageError when the id is that of another kind of record.
    """
    path = [run(log, run_id)]
    while path[-1].parent and len(path) < MAX_LINEAGE:
        parent = log.records.find(parse_id(path[-1].parent))
        if parent is None or not isinstance(parent.body, Run):
            break
        path.append(run_view(log, StoredRun(parent, log.devices.forked(parent))))
    steps: list[LineageStep] = []
    here = trust_context(log)
    for view in reversed(path):
        program = (bytes.fromhex(view.task), bytes.fromhex(view.source_digest), view.budget)
        row = program_as_reported(log, program, here)
        mean = row.mean if row else view.value
        before = steps[-1].mean if steps else None
        delta = mean - before if mean is not None and before is not None else None
        step = LineageStep(run=view, mean=mean, runs=row.runs if row else 0, delta=delta)
        steps.append(_measured(log, step, retest=bool(steps) and steps[-1].run.state in FALSE))
    return steps


def _measured(log: Log, step: LineageStep, *, retest: bool) -> LineageStep:
    """A step with the values that others measured."""
    found, rules = judgement(log, parse_id(step.run.id)), log.tasks.rules(bytes.fromhex(step.run.task))
    return msgspec.structs.replace(
        step,
        retest=retest,
        value=found.value,
        margin=margin(found.error, found.runs, noise=rules.noise if rules else 0.0),
        gain=None if found.improvement is None else -log.tasks.sign(bytes.fromhex(step.run.task)) * found.improvement,
        others=found.runs,
        voters=found.voters,
    )


def statistics(log: Log, task: bytes) -> TaskStatistics:
    """The number of runs, by status, of ranked programs and of devices."""
    statuses, authors = endings_of(log, task)
    return TaskStatistics(
        runs=sum(statuses.values()), statuses=statuses, programs=log.programs.count(task), authors=authors
    )


def run_view(log: Log, stored: StoredRun) -> RunView:
    """A stored run as an answer."""
    record, body = stored.record, stored.record.body
    assert isinstance(body, Run)
    return RunView(
        id=format_id(record.id),
        task=body.task.hex(),
        mode=body.mode,
        status=body.status,
        state=state_of(log, record.id),
        reason=body.reason,
        value=body.value,
        metrics=body.metrics,
        curve=body.curve,
        source=body.source.sha256.hex(),
        source_bytes=body.source.size,
        source_digest=body.source_digest.hex(),
        parent=_id(body.parent),
        base=_hex(body.base),
        replicate=body.replicate,
        seed=body.seed,
        budget=body.budget,
        genome=body.genome,
        title=body.title,
        hypothesis=body.hypothesis,
        expected=body.expected,
        proposer=body.proposer.name if body.proposer else "",
        log=body.log.sha256.hex() if body.log else None,
        checkpoint=body.checkpoint.sha256.hex() if body.checkpoint else None,
        checkpoint_bytes=body.checkpoint.size if body.checkpoint else 0,
        duration_ms=body.duration_ms,
        cpu_ms=body.cpu_ms,
        peak_memory_bytes=body.peak_memory_bytes,
        sandbox=body.sandbox,
        device=body.device,
        environment=body.environment,
        author=record.author.hex(),
        seq=record.seq,
        time_ms=record.time,
        forked=stored.forked,
        participant=participant_of(log, record.author, record.time),
        origin=_id(body.origin),
    )


def wants_retest(log: Log, parent: bytes | None) -> bool:
    """Whether a run builds on one that was found false."""
    if parent is None or not (parent in verified(log) or parent in bans(log).frauds):
        return False  # nobody can have found anything
    record = log.records.find(parent)
    return record is not None and isinstance(record.body, Run) and state_of(log, record.id) in FALSE


def program_view(log: Log, row: ProgramRow, found: Judgement, *, position: int, section: str = "") -> ProgramView:
    """A program as an answer, with the judgement of its first run."""
    assert row.rank is not None
    rules = log.tasks.rules(row.task)
    return ProgramView(
        position=position,
        id=format_id(row.first),
        source_digest=row.source_digest.hex(),
        runs=row.runs,
        mean=row.mean,
        score=log.tasks.sign(row.task) * row.rank,
        state=found.state.value,
        title=row.title,
        author=row.author.hex(),
        parent=_id(row.parent),
        time_ms=row.first_time,
        value=found.value,
        margin=margin(found.error, found.runs, noise=rules.noise if rules else 0.0),
        others=found.runs,
        voters=found.voters,
        section=section,
        retest=wants_retest(log, row.parent),
        participant=participant_of(log, row.author, row.first_time),
    )


def _id(record_id: bytes | None) -> str | None:
    return None if record_id is None else format_id(record_id)


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()
