"""The runs of a task as rows: a page of a table, what stands around a run, the way to it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import msgspec
import numpy as np

from autoresearch.ask.lookup import FoundTask, task_of
from autoresearch.ask.requests import RunsOf
from autoresearch.ask.runs.answers import (
    MarkCounts,
    PathAnswer,
    PathStep,
    RunContextAnswer,
    RunnersAnswer,
    RunnerView,
    RunRow,
    RunsAnswer,
)
from autoresearch.ask.runs.boards import task_status
from autoresearch.ask.runs.columns import MARKS, STATES, Ints, RunTable, changed_settings, run_table
from autoresearch.ask.runs.filtering import counts, found_by, in_order, mark_of, with_marks
from autoresearch.ask.runs.headlines import Teller, described, teller_of
from autoresearch.errors import NotFound
from autoresearch.judging.states import EVALUATE, Judgement
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import leading_gain
from autoresearch.log.standing.cache import in_snapshot, kept_answer, roster_of
from autoresearch.log.standing.context import participant_of
from autoresearch.log.standing.queries import run_body, run_numbers, wants_retest
from autoresearch.log.standing.verdicts import verdict_of
from autoresearch.log.standing.verification import counted_reports, judging
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.words import DISCREDITED, Origin

CHILDREN_SHOWN, BRANCHES_SHOWN, SAME_SHOWN = 8, 5, 8
# So many steps of a lineage are told; of longer ones those that changed the value least are left out.
STEPS_MOST = 200
# Of so many steps at most the branches are told too.
BRANCHED_MOST = 40
# States in which the reported value is no value at all.
_DISCREDITED = np.array([state in DISCREDITED for state in STATES])
# A gain below twice the noise of one seed may be luck; below the noise where verifiers measured pairs.
NOISES = {Origin.REPORTED: 2.0, Origin.VERIFIED: 1.0}


@dataclass(frozen=True, slots=True)
class Rows:
    """What makes rows of a task's runs. ``me`` is the device that asks."""

    log: Log
    table: RunTable
    teller: Teller
    me: bytes | None
    starred: frozenset[bytes]

    def at(self, places: Sequence[int]) -> list[RunRow]:
        """The rows of the runs at these places of the table."""
        parents = [int(self.table.parent[at]) for at in places]
        wanted = [self.table.ids[at] for at in dict.fromkeys([*places, *(at for at in parents if at >= 0)])]
        records = {record.id: record for record in self.log.records.find_ahead(wanted)}
        values, judge = self.log.runs.values(self.table.task, wanted), judging(self.log)
        judged = [
            judge(one.id, one.author, one.time, one.seq) for one in (records[self.table.ids[at]] for at in places)
        ]
        return [self._row(at, records, found, values) for at, found in zip(places, judged, strict=True)]

    def _row(self, at: int, records: dict[bytes, Record], found: Judgement, values: dict[bytes, float]) -> RunRow:
        table, record = self.table, records[self.table.ids[at]]
        body = record.body
        assert isinstance(body, Run)
        above = int(table.parent[at])
        parent = records[table.ids[above]].body if above >= 0 else None
        assert parent is None or isinstance(parent, Run)
        told = self.teller.tell(described(body, record.time), described(parent) if parent else None)
        state, mark = STATES[int(table.state[at])], mark_of(table, at)
        numbers = run_numbers(self.log, record, found, values=values)
        gain, _, origin = leading_gain(numbers)
        within = gain is not None and abs(gain) < table.noise * NOISES[origin]
        roster = roster_of(self.log)
        return RunRow(
            **msgspec.structs.asdict(numbers),
            id=format_id(record.id),
            number=at + 1,
            time_ms=record.time,
            cost_ms=int(table.cost[at]),
            cpu_ms=body.cpu_ms,
            mark=mark.value,
            state=state.value,
            status=body.status,
            reason=body.reason,
            found=self._found(record) if state in DISCREDITED else None,
            better=None if gain is None or within else table.sign * gain < 0,
            within_noise=within,
            in_doubt=state in DISCREDITED,
            leads=bool(table.leads[at]),
            led_by_claim=bool(table.led_by_claim[at]),
            headline=told.headline,
            because=told.because,
            change=told.changes,
            jump=told.jump,
            parent=format_id(body.parent) if body.parent else None,
            replicate=body.replicate,
            proposer=body.proposed_by,
            device=body.device,
            participant=participant_of(self.log, record.author, record.time),
            own=self.me is not None
            and roster.voter(record.author, record.time).root == roster.voter(self.me, record.time).root,
            retest=wants_retest(self.log, body.parent),
            starred=record.id in self.starred,
            children=int(table.children[at]),
            verdict=verdict_of(self.log, record.id),
        )

    def _found(self, record: Record) -> float | None:
        """The median of the values that verifiers measured in place of a refuted one."""
        author = roster_of(self.log).voter(record.author, record.time).voter
        values = [
            self.table.sign * report.values[0]
            for _, report in counted_reports(self.log, record)
            if report.stage == EVALUATE
            and not report.passed
            and report.values
            and report.attested
            and report.voter != author
        ]
        return median(values) if values else None

    def some(self, places: Ints, shown: int) -> tuple[MarkCounts, list[RunRow]]:
        """Some runs in numbers, with the best of them, and the rows of the best ``shown``."""
        table = self.table
        stands = table.compared[places] & ~_DISCREDITED[table.state[places]]
        ranked = places[stands]
        ranked = ranked[np.argsort(table.sign * table.value[ranked], kind="stable")]
        rest = places[~stands]
        rows = self.at([*ranked[:shown].tolist(), *rest[: max(0, shown - len(ranked))].tolist()])
        best = float(table.value[ranked[0]]) if len(ranked) else None
        found = np.bincount(table.mark[places], minlength=len(MARKS)).tolist()
        counted = {mark.value: count for mark, count in zip(MARKS, found, strict=True) if count}
        is_verified = best is not None and not math.isnan(table.verified[ranked[0]])
        origin = Origin.VERIFIED if is_verified else Origin.REPORTED
        return MarkCounts(total=len(places), counts=counted, best=best, best_origin=origin if ranked.size else ""), rows


def rows_of(
    log: Log, blobs: BlobStore, task: bytes, *, me: bytes | None = None, starred: frozenset[bytes] = frozenset()
) -> Rows:
    """What makes rows of the runs of the task with this digest."""
    return Rows(log, run_table(log, task), teller_of(log, blobs, task, me=me), me, starred)


@in_snapshot
def runs_answer(
    log: Log,
    blobs: BlobStore,
    task: FoundTask,
    asked: RunsOf,
    *,
    me: bytes | None = None,
    starred: frozenset[bytes] = frozenset(),
) -> RunsAnswer:
    """One page of the runs of a task that a filter finds. Raises UsageError where the filter is none."""
    rows = rows_of(log, blobs, task.digest, me=me, starred=starred)
    until = asked.until or log.reader.revision().row
    kept = found_by(log, rows.table, rows.teller, asked, me=me, until=asked.until)
    order = in_order(rows.table, with_marks(rows.table, kept, asked.state), asked.sort)
    pages = max(1, math.ceil(len(order) / asked.size))
    page = min(asked.page, pages)
    shown = order[(page - 1) * asked.size : page * asked.size].tolist()
    return RunsAnswer(
        task=task_status(log, task, author=me),
        runs=rows.at(shown),
        total=len(order),
        page=page,
        pages=pages,
        size=asked.size,
        sort=asked.sort,
        counts=counts(rows.table, kept),
        until=until,
    )


@in_snapshot
def run_context_answer(
    log: Log, blobs: BlobStore, run: bytes, *, me: bytes | None = None, starred: frozenset[bytes] = frozenset()
) -> RunContextAnswer:
    """What stands around a run. Raises UsageError where it is none, NotFound where it was withdrawn."""
    rows = rows_of(log, blobs, run_body(log, run).task, me=me, starred=starred)
    table, at = rows.table, _place(rows.table, run)
    total, children = rows.some(np.flatnonzero(table.parent == at), CHILDREN_SHOWN)
    digest = table.digests[at]
    same = [other for other, found in enumerate(table.digests) if found == digest and other != at][-SAME_SHOWN:]
    above = int(table.parent[at])
    return RunContextAnswer(
        row=rows.at([at])[0],
        parent=rows.at([above])[0] if above >= 0 else None,
        children=children,
        all_children=total,
        same_program=rows.at(same),
    )


@in_snapshot
def path_answer(
    log: Log, blobs: BlobStore, run: bytes, *, me: bytes | None = None, starred: frozenset[bytes] = frozenset()
) -> PathAnswer:
    """The way from the oldest known ancestor to a run, with the branches beside it.

    Raises UsageError where it is no run, NotFound where it was withdrawn or its task is not here.
    """
    body = run_body(log, run)
    task = task_of(log, body.task)
    if task is None:
        raise NotFound("The task of this run is not in this log.", hint="autoresearch network peers")
    rows = rows_of(log, blobs, task.digest, me=me, starred=starred)
    table, at = rows.table, _place(rows.table, run)
    path: list[int] = []
    while at >= 0 and len(path) < len(table):
        path.append(at)
        at = int(table.parent[at])
    path.reverse()
    values = table.value[path]
    steps = np.concatenate([[np.nan], np.diff(values)])
    # The steps that changed most, the first run and the last.
    sizes = np.nan_to_num(np.abs(steps))
    sizes[[0, -1]] = np.inf
    told = np.sort(np.argsort(-sizes, kind="stable")[:STEPS_MOST]).tolist()
    family = np.argsort(table.parent, kind="stable")
    firsts = np.searchsorted(table.parent[family], path)
    found: list[PathStep] = []
    for row, of in zip(rows.at([path[of] for of in told]), told, strict=True):
        children = family[firsts[of] : firsts[of] + int(table.children[path[of]])]
        beside = children[~np.isin(children, path[of + 1 : of + 2])]
        total, best = rows.some(beside, BRANCHES_SHOWN if len(told) <= BRANCHED_MOST else 0)
        found.append(PathStep(row=row, branches=total, branch_runs=best))
    return PathAnswer(task=task_status(log, task, author=me), steps=found, left_out=len(path) - len(told))


@kept_answer
def runners_answer(log: Log, blobs: BlobStore, task: FoundTask) -> RunnersAnswer:
    """The participants with runs on a task, those with the most first; and the settings that runs changed."""
    table, teller = run_table(log, task.digest), teller_of(log, blobs, task.digest, comparing=False)
    counts, last, devices = Counter(table.authors), dict[bytes, int](), defaultdict[bytes, set[str]](set)
    for at, (author, device) in enumerate(zip(table.authors, table.devices, strict=True)):
        devices[author].add(device)
        last[author] = at
    found: dict[str, RunnerView] = {}
    for author, count in counts.items():
        who = participant_of(log, author, int(table.time[last[author]]))
        before = found.get(who.key, RunnerView(participant=who, runs=0))
        both = sorted({*before.devices, *devices[author]} - {""})
        found[who.key] = RunnerView(participant=who, runs=before.runs + count, devices=both)
    return RunnersAnswer(
        runners=sorted(found.values(), key=lambda one: (-one.runs, one.participant.key)),
        settings=changed_settings(log, task.digest, baseline=teller.baseline, default=teller.default),
    )


def _place(table: RunTable, run: bytes) -> int:
    if run not in table.index:
        raise NotFound(f"The run {short_id(run)} was withdrawn by its author.")
    return table.index[run]
