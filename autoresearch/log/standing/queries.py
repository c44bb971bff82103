"""Queries of a log: best, leaderboard, history, claims, lineage, statistics, annotations of a run.

Confirmed programs are ranked, others have sections of their own. Annotations are an author's marks and ban, and the run
that is copied.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

import msgspec

from autoresearch.errors import UsageError
from autoresearch.judging.places import BoardPlace, Interval, places
from autoresearch.judging.states import Judgement
from autoresearch.judging.statistics import TaskRules
from autoresearch.log.log import Log
from autoresearch.log.rows import ProgramRow, StoredRun
from autoresearch.log.standing import answers, bases
from autoresearch.log.standing.cache import in_snapshot, roster_of
from autoresearch.log.standing.context import TrustContext, participant_of
from autoresearch.log.standing.participants import TrackRecord, mark_view, track_records
from autoresearch.log.standing.verdicts import decimals_of, verdict_of
from autoresearch.log.standing.verification import find_judgement, judgement, judgements
from autoresearch.record.encoding import format_id, parse_id
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record, plain_body
from autoresearch.text import difference
from autoresearch.words import FALSE_VALUE, SOUND, BoardSection, RunState, RunStatus, with_article


def with_marks(log: Log, programs: Sequence[answers.ProgramView]) -> list[answers.ProgramView]:
    """The same programs with their authors' marks and bans, and the runs that they copy."""
    behind = records_behind(log, [(bytes.fromhex(program.author), program.time_ms) for program in programs])
    originals = log.evidence.originals([parse_id(program.id) for program in programs])
    return [
        msgspec.structs.replace(
            program,
            marks=_marks(records),
            banned_until_ms=banned_until(records),
            copy_of=_formatted(originals.get(parse_id(program.id))),
        )
        for program, records in zip(programs, behind, strict=True)
    ]


def marks_of(log: Log, run: Record) -> list[answers.MarkView]:
    """The marks of a run's author, by the devices that it has now or had then."""
    return _marks(records_behind(log, [(run.author, run.time)])[0])


def banned_until(records: Sequence[TrackRecord]) -> int | None:
    """When a participant's ban ends, Unix milliseconds; None when it was never banned."""
    return max((record.banned_until_ms for record in records if record.banned_until_ms), default=None)


def records_behind(log: Log, signed: Sequence[tuple[bytes, int]]) -> list[list[TrackRecord]]:
    """The track records of the participant behind each device at its time, looked up together.

    By voter and by root key: what a participant did before its attestation belongs to it too.
    """
    roster = roster_of(log)
    voters = [roster.voter(device, time_ms) for device, time_ms in signed]
    records = track_records(log, {who for voter in voters for who in (voter.voter, voter.root)})
    return [[records[who] for who in dict.fromkeys((voter.voter, voter.root)) if who in records] for voter in voters]


def _marks(records: Sequence[TrackRecord]) -> list[answers.MarkView]:
    return [mark_view(mark) for record in records for mark in record.marks]


def _formatted(record: bytes | None) -> str | None:
    return None if record is None else format_id(record)


MAX_LINEAGE = 1000
# So many programs beyond the last that is shown are read at once.
_LOOK_AHEAD = 10
_UNPLACED = BoardPlace(0, 0)
# A child of a false run was compared with a value that does not exist.


def run(log: Log, run_id: bytes) -> answers.RunView:
    """One run, withdrawn or not. Raises NotFound, or UsageError when the id is that of another kind of record."""
    run_body(log, run_id)
    record = log.records.get(run_id)
    return run_view(log, StoredRun(record, log.devices.forked(record)))


def run_body(log: Log, run_id: bytes) -> Run:
    """The body of a run's record. Raises NotFound, or UsageError when it is another kind of record."""
    record = log.records.get(run_id)
    if not isinstance(record.body, Run):
        raise UsageError(
            f"{format_id(run_id)} is {with_article(record.kind)}, not a run.",
            hint="autoresearch node records --kind run",
        )
    return record.body


@in_snapshot
def leaderboard(log: Log, task: bytes, limit: int = 50) -> list[answers.ProgramView]:
    """The best programs of a task first, by reported mean ± noise/√n: ok runs with the full budget, or any.

    Behind them, without a position, those that are not believed. What a person here hides is left out. Empty while the
    task's own record is not in the log: without it the better direction is not known.
    """
    following, by_run = bases.walk(log, task, visible=True), dict[bytes, Judgement]()
    believed: list[ProgramRow] = []
    others: list[ProgramRow] = []
    # The last may share its place with more than are shown.
    while len(believed) < limit or believed[-1].rank == believed[limit - 1].rank:
        page = list(islice(following, max(limit - len(believed), _LOOK_AHEAD)))
        if not page:
            break
        by_run |= judgements(log, (row.first for row in page))
        for row in page:
            (others if by_run[row.first].state is RunState.NOT_BELIEVED else believed).append(row)
    rows = [*believed[:limit], *others][:limit]
    around = around_programs(log, task, rows)
    ranked = dict(zip((row.first for row in believed), _reported_places(believed), strict=True))
    return [
        program_view(log, row, by_run[row.first], place=ranked.get(row.first, _UNPLACED), around=around) for row in rows
    ]


def _reported_places(rows: Sequence[ProgramRow]) -> list[BoardPlace]:
    """The places of programs by their reports: equal ones share them. What authors state of errors widens none."""
    return places([Interval(rank, rank) for row in rows if (rank := row.rank) is not None])


@in_snapshot
def lineage(log: Log, run_id: bytes) -> list[answers.LineageStep]:
    """The runs from the oldest known ancestor to this one.

    Raises NotFound, or UsageError when the id is that of another kind of record.
    """
    path = [run(log, run_id)]
    while path[-1].run.parent and len(path) < MAX_LINEAGE:
        parent = log.records.find(parse_id(path[-1].run.parent))
        if parent is None or not isinstance(parent.body, Run):
            break
        path.append(run_view(log, StoredRun(parent, log.devices.forked(parent))))
    path.reverse()
    return [
        answers.LineageStep(
            run=view,
            retest=before is not None and before.standing.state in FALSE_VALUE,
            verdict=verdict_of(log, parse_id(view.id), judgement(log, parse_id(view.id))),
        )
        for before, view in pairwise([None, *path])
        if view is not None
    ]


def run_numbers(
    log: Log, record: Record, judged: Judgement, *, values: Mapping[bytes, float] | None = None
) -> answers.RunNumbers:
    """The numbers of one run with this judgement. ``values`` are reported ones, its parent's among them."""
    body = record.body_as(Run)
    value = body.value if body.status == RunStatus.OK else None
    values_by_run = log.runs.values(body.task, [body.parent]) if values is None and body.parent else values or {}
    rules = log.tasks.rules(body.task)
    numbers = _numbers(rules, judged, value=value, before=values_by_run.get(body.parent or b""))
    decimals = decimals_of(log, body.task)
    return answers.RunNumbers(reported=value, reported_runs=int(value is not None), decimals=decimals, **numbers)


def _numbers(
    rules: TaskRules | None, judged: Judgement, *, value: float | None, before: float | None
) -> dict[str, Any]:
    """What verifiers measured of a run, and how much better its reported value is than ``before``, its parent's."""
    return {
        "verified": judged.value,
        "verified_margin": judged.margin,
        "verified_is_worse": bool(judged.is_worse),
        "verified_runs": judged.runs,
        "verifiers": judged.voters,
        "gain": judged.improvement,
        "gain_margin": judged.improvement_margin,
        "gain_reported": None
        if value is None or before is None
        else (rules.sign if rules else 1.0) * difference(before, value),
    }


def statistics(log: Log, task: bytes) -> answers.TaskStatistics:
    """The number of runs, by status, of ranked programs and of devices."""
    statuses, authors = log.runs.endings(task), log.runs.count_authors(task)
    return answers.TaskStatistics(
        runs=sum(statuses.values()), statuses=statuses, programs=log.programs.count(task), authors=authors
    )


def run_view(log: Log, stored: StoredRun) -> answers.RunView:
    """A stored run as an answer."""
    record = stored.record
    judged = judgement(log, record.id)
    return answers.RunView(
        id=format_id(record.id),
        author=record.author.hex(),
        seq=record.seq,
        time_ms=record.time,
        participant=participant_of(log, record.author, record.time),
        run=msgspec.convert(plain_body(record.body), answers.RunFields),
        standing=answers.RunStanding(
            state=judged.state.value, forked=stored.forked, **msgspec.structs.asdict(run_numbers(log, record, judged))
        ),
    )


def wants_retest(log: Log, parent: bytes | None) -> bool:
    """Whether a run builds on one that was found false."""
    judged = find_judgement(log, parent) if parent is not None else None
    return judged is not None and judged.state in FALSE_VALUE


class AroundPrograms(NamedTuple):
    """What program views need of their task and of their runs and parents: its rules, reported values, judgements."""

    rules: TaskRules | None
    values: Mapping[bytes, float]
    parents: Mapping[bytes, Judgement]


def around_programs(log: Log, task: bytes, rows: Sequence[ProgramRow]) -> AroundPrograms:
    """The same for several programs of a task, read together."""
    parents = {row.parent for row in rows if row.parent}
    # A program is a mean of its runs, and so is its parent.
    values = log.entries.reported(task, list({row.first for row in rows} | parents))
    return AroundPrograms(log.tasks.rules(task), values, judgements(log, parents))


def program_view(
    log: Log,
    row: ProgramRow,
    judged: Judgement,
    *,
    place: BoardPlace = _UNPLACED,
    section: str = "",
    around: AroundPrograms | None = None,
) -> answers.ProgramView:
    """A program as an answer, with the judgement of its first run."""
    assert row.rank is not None
    rules, values, parents = around or around_programs(log, row.task, [row])
    parent = parents.get(row.parent or b"")
    return answers.ProgramView(
        position=place.first,
        last_position=place.last,
        id=format_id(row.first),
        source_digest=row.source_digest.hex(),
        reported=row.mean,
        reported_runs=row.runs,
        score=(rules.sign if rules else 1.0) * row.rank,
        state=judged.state.value,
        title=row.title,
        author=row.author.hex(),
        parent=_formatted(row.parent),
        time_ms=row.first_time,
        section=section,
        participant=participant_of(log, row.author, row.first_time),
        retest=parent is not None and parent.state in FALSE_VALUE,
        verdict=verdict_of(log, row.first, judged),
        budget=row.budget,
        decimals=decimals_of(log, row.task),
        **_numbers(
            rules, judged, value=row.mean if row.first in values else None, before=values.get(row.parent or b"")
        ),
    )


# How many rows each section takes in turn while there is room.
_TURNS = {
    BoardSection.CONFIRMED: 3,
    BoardSection.OPEN: 3,
    BoardSection.FAILED: 1,
    BoardSection.UNATTESTED: 1,
}


@in_snapshot
def board(
    log: Log, task: bytes, context: TrustContext, *, limit: int, without: Collection[bytes] = ()
) -> list[answers.ProgramView]:
    """The best programs of a task by section, at most ``limit`` together. Where trust names nobody, one section.

    Only confirmed programs have a position, by the measured value. In a network too small to confirm anything the open
    ones have one, by the reported value. Programs that stand by a run of ``without`` are left out and take no place.
    """
    if not context.naming:
        return leaderboard(log, task, limit)
    sections = {
        name: [program for program in programs if program.row.first not in without]
        for name, programs in _sections(log, task, context, limit).items()
    }
    shares = _shares({name: len(rows) for name, rows in sections.items()}, limit)
    rows = [program.row for name, programs in sections.items() for program in programs[: shares[name]]]
    around = around_programs(log, task, rows)
    ranked = BoardSection.CONFIRMED if context.verifying else BoardSection.OPEN
    if context.verifying:
        ends = [Interval.around(program.value, program.judgement.margin) for program in sections[ranked]]
        in_order = places(ends, maximize=around.rules is not None and around.rules.sign < 0)
    else:
        in_order = _reported_places([program.row for program in sections[ranked]])
    return [
        program_view(
            log,
            program.row,
            program.judgement,
            place=in_order[number] if name is ranked else _UNPLACED,
            section=name.value,
            around=around,
        )
        for name, rows in sections.items()
        for number, program in enumerate(rows[: shares[name]])
    ]


def _sections(log: Log, task: bytes, context: TrustContext, limit: int) -> dict[BoardSection, Sequence[bases.Placed]]:
    confirmed = list(bases.backed(log, task, context, RunState.CONFIRMED))  # all: the places of few follow from them
    provisional = bases.backed(log, task, context, RunState.PROVISIONAL)
    waiting = list(islice(provisional, limit if context.verifying else 0))
    failed: list[bases.Placed] = []
    seen = {(program.row.seedless, program.row.budget) for program in (*confirmed, *waiting)}
    last: float | None = None  # the rank at which the search ended, None where there was nothing more
    rows = (row for row in bases.vouched(log, task, context, visible=True) if (row.seedless, row.budget) not in seen)
    for program in bases.judged_rows(log, rows, context):
        (waiting if program.judgement.state in SOUND else failed).append(program)
        if len(waiting) >= limit and (context.verifying or program.row.rank != waiting[limit - 1].row.rank):
            last = program.row.rank
            break
    unattested = list(islice(bases.unvouched(log, task, context, up_to=last), limit))
    return {
        BoardSection.CONFIRMED: confirmed,
        BoardSection.OPEN: waiting,
        BoardSection.FAILED: failed,
        BoardSection.UNATTESTED: bases.placed(log, unattested, context),
    }


def _shares(lengths: dict[BoardSection, int], limit: int) -> dict[BoardSection, int]:
    """How many rows of each section are shown: the sections take turns until there is no more room."""
    shares = dict.fromkeys(lengths, 0)
    while sum(shares.values()) < min(limit, sum(lengths.values())):
        for name, turns in _TURNS.items():
            room = limit - sum(shares.values())
            shares[name] += min(turns, room, lengths[name] - shares[name])
    return shares
