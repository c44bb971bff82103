"""The runs of a task as rows: a page of a table, what stands around a run, the way to it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import median

import msgspec

from autoresearch.ask.lookup import FoundTask, task_of
from autoresearch.ask.requests import MAXIMUM_ROWS, PathOf, RunsOf, RunsOfParticipant
from autoresearch.ask.runs import answers
from autoresearch.ask.runs.boards import task_status
from autoresearch.ask.runs.filtering import counts_of, filter_of, order_of, within
from autoresearch.ask.runs.headlines import RunTeller, described, teller_of
from autoresearch.errors import NotFound
from autoresearch.judging.states import EVALUATE, Judgement
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import leading_gain
from autoresearch.log.standing.cache import cached_answer, in_snapshot, roster_of
from autoresearch.log.standing.context import board_hardware, participant_of
from autoresearch.log.standing.queries import run_body, run_numbers
from autoresearch.log.standing.verdicts import stated_spread, verdict_of
from autoresearch.log.standing.verification import counted_reports, judgements
from autoresearch.log.tables.filters import Filter, ListedRun
from autoresearch.log.tables.places import Place, Places, Sums
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.words import COUNTED_MARKS, DISCREDITED, FALSE_VALUE, HIDDEN, Origin, RunMark, RunState

CHILDREN_SHOWN, BRANCHES_SHOWN, SAME_SHOWN = 8, 5, 8
# Of so many steps at most the branches are told too.
BRANCHED_MOST = 40
# Marks of runs whose reported value is no value at all.
_DISCREDITED = frozenset(state.value for state in DISCREDITED)
# A gain below twice the noise of one seed may be luck; below the noise where verifiers measured pairs.
NOISES = {Origin.REPORTED: 2.0, Origin.VERIFIED: 1.0}


@dataclass(frozen=True, slots=True)
class Rows:
    """What makes rows of a task's runs. ``every`` finds them all, ``me`` is the device that asks."""

    log: Log
    every: Filter
    teller: RunTeller
    me: bytes | None
    starred: frozenset[bytes]
    places: Places
    chance: float
    """The noise by which a gain is judged: larger where it was seen in few runs."""
    sign: float
    task: str  # its name

    def at(self, numbers: Sequence[int]) -> list[answers.RunRow]:
        """The rows of the runs with these numbers. Of those that are hidden no words are told."""
        if not numbers:
            return []
        facts = self.log.listing.facts(self.every, numbers)
        ids = [run_id for run in facts.values() for run_id in (run.id, run.parent) if run_id]
        records = {record.id: record for record in self.log.records.several(list(dict.fromkeys(ids)))}
        sums = self.places.of(facts[n].place for n in numbers)
        values = self.log.runs.values(self.every.task, ids)
        judged, hidden = judgements(self.log, ids), self.log.hidden.of(ids)
        rows = (self._row(facts[n], judged, place, records, values) for n, place in zip(numbers, sums, strict=True))
        return [
            msgspec.structs.replace(
                row, hidden=True, headline=HIDDEN, because="", reason="", change=[], jump=False, proposer=""
            )
            if facts[n].id in hidden
            else row
            for n, row in zip(numbers, rows, strict=True)
        ]

    def _row(
        self,
        run: ListedRun,
        judged: Mapping[bytes, Judgement],
        place: Sums,
        records: dict[bytes, Record],
        values: dict[bytes, float],
    ) -> answers.RunRow:
        record = records[run.id]
        body, judgement = record.body_as(Run), judged[run.id]
        above = records.get(body.parent) if body.parent else None
        parent = above.body if above and isinstance(above.body, Run) and above.body.task == body.task else None
        text = self.teller.tell(described(body, record.time), described(parent) if parent else None)
        state = RunState(run.state)
        repeats = parent is not None and parent.idea == body.idea and parent.source_digest != body.source_digest
        numbers = run_numbers(self.log, record, judgement, values={} if repeats else values)  # another seed is no gain
        gain, margin, origin = leading_gain(numbers)
        within = gain is not None and abs(gain) < max(margin or 0.0, self.chance * NOISES[origin])
        roster = roster_of(self.log)
        return answers.RunRow(
            **msgspec.structs.asdict(numbers),
            id=format_id(record.id),
            task=self.task,
            number=place.number,
            time_ms=record.time,
            cost_ms=place.cost_ms,
            cpu_ms=body.cpu_ms,
            mark=mark_of(run),
            state=state.value,
            status=body.status,
            reason=body.reason,
            refuting_value=self._refuting_value(record) if state in DISCREDITED else None,
            better=None if gain is None or within else gain > 0,
            within_noise=within,
            in_doubt=state in DISCREDITED,
            leads=run.leads,
            led_by_claim=run.led_by_claim,
            headline=text.headline,
            because=text.because,
            change=text.changes,
            jump=text.jump,
            parent=format_id(body.parent) if body.parent else None,
            replicate=body.replicate,
            proposer=body.proposed_by,
            device=body.device,
            participant=participant_of(self.log, record.author, record.time),
            own=self.me is not None
            and roster.voter(record.author, record.time).root == roster.voter(self.me, record.time).root,
            retest=body.parent is not None and judged[body.parent].state in FALSE_VALUE,
            starred=record.id in self.starred,
            children=self.log.listing.children(body.task, record.id),
            verdict=verdict_of(self.log, record.id, judgement),
        )

    def _refuting_value(self, record: Record) -> float | None:
        """The median of the values that verifiers measured in place of a refuted one."""
        author = roster_of(self.log).voter(record.author, record.time).voter
        values = [
            self.sign * report.values[0]
            for _, report in counted_reports(self.log, record)
            if report.stage == EVALUATE
            and not report.passed
            and report.values
            and report.attested
            and report.voter != author
        ]
        return median(values) if values else None

    def children(
        self, run: bytes, most: int, *, but: int | None = None
    ) -> tuple[answers.MarkCounts, list[answers.RunRow]]:
        """The children of a run in numbers, with the best value, and the rows of the best; one may be left out."""
        children = [child for child in self.log.listing.beside(self.every, run) if child[0] != but]
        standing = [
            (self.sign * value, n)
            for n, mark, value, compared, _ in children
            if compared and value is not None and mark not in _DISCREDITED
        ]
        standing.sort(key=lambda pair: pair[0])
        ranked = [n for _, n in standing]
        rest = [n for n in (child[0] for child in children) if n not in set(ranked)]
        counted = Counter(mark for _, mark, *_ in children)
        counts = {mark.value: counted[mark.value] for mark in RunMark if counted[mark.value]}
        best = self.sign * standing[0][0] if standing else None
        verified = {n for n, *_, is_verified in children if is_verified}
        origin = "" if not ranked else Origin.VERIFIED if ranked[0] in verified else Origin.REPORTED
        total = answers.MarkCounts(total=len(children), counts=counts, best=best, best_origin=origin)
        return total, self.at([*ranked, *rest][:most])


def mark_of(run: ListedRun) -> str:
    """How a run is shown: one that is only reported leads where it was the best when it came."""
    return RunMark.LEADING.value if run.mark == RunMark.REPORTED and run.led_by_claim else run.mark


def rows_of(
    log: Log, blobs: BlobStore, task: bytes, *, me: bytes | None = None, starred: frozenset[bytes] = frozenset()
) -> Rows:
    """What makes rows of the runs of the task with this digest."""
    rules, published = log.tasks.rules(task), task_of(log, task)
    return Rows(
        log,
        Filter(task, board_hardware(log, task) or "", hidden=True),
        teller_of(log, blobs, task, me=me),
        me,
        starred,
        log.listing.places(task),
        chance=stated_spread(log, task).wide,
        sign=rules.sign if rules else 1.0,
        task=published.name if published else "",
    )


@in_snapshot
def runs_answer(
    log: Log,
    blobs: BlobStore,
    task: FoundTask,
    request: RunsOf,
    *,
    me: bytes | None = None,
    starred: frozenset[bytes] = frozenset(),
) -> answers.RunsAnswer:
    """One page of the runs of a task that a filter finds. Raises UsageError where the filter is none.

    Which runs these are is kept until the log changes: a filter may look at every run of the task.
    """
    until = request.until or log.reader.revision().row
    criteria, (order, falling) = (
        filter_of(log, task.digest, request, me=me, until=request.until),
        order_of(request.sort),
    )
    if request.since or request.to:
        criteria = within(criteria, log.listing.places(task.digest), request)
    counts, hidden = counts_of(log, criteria) if criteria else ({}, 0)
    total = sum(runs for mark, runs in counts.items() if not (criteria and criteria.marks) or mark in criteria.marks)
    pages = max(1, math.ceil(total / request.size))
    page = min(request.page, pages)
    numbers: list[int] = []
    if criteria and total:
        size, skip = request.size, (page - 1) * request.size
        read = partial(log.listing.page, criteria, order, falling=falling, limit=size, skip=skip)
        numbers = cached_answer(log, "page", (criteria, order, falling, size, skip), read)
    return answers.RunsAnswer(
        task=task_status(log, task, author=me),
        runs=rows_of(log, blobs, task.digest, me=me, starred=starred).at(numbers),
        total=total,
        page=page,
        pages=pages,
        size=request.size,
        sort=request.sort,
        counts=counts,
        until=until,
        hidden=hidden,
    )


@in_snapshot
def participant_runs_answer(
    log: Log,
    blobs: BlobStore,
    request: RunsOfParticipant,
    *,
    me: bytes | None = None,
    starred: frozenset[bytes] = frozenset(),
) -> answers.ParticipantRunsAnswer:
    """The runs of a participant on all tasks. Raises UsageError where that is no beginning of a key."""
    newest: list[tuple[Place, bytes, int]] = []
    best: dict[bytes, int] = {}
    total, devices = 0, set[str]()
    for task in dict.fromkeys(row.digest for row in log.tasks.all()):
        criteria = filter_of(log, task, RunsOf(by=request.participant), me=me)
        counts = log.listing.counts(criteria).marks if criteria else {}
        if criteria is None or not counts:
            continue
        total += sum(counts.values())
        last = log.listing.facts(criteria, log.listing.page(criteria, "time", falling=True, limit=request.limit))
        newest += [(run.place, task, run.n) for run in last.values()]
        sound = replace(criteria, marks=frozenset(mark.value for mark in COUNTED_MARKS))
        for n in log.listing.page(sound, "value", falling=log.tasks.sign(task) < 0, limit=1):
            best[task] = n
        theirs = {*(criteria.authors or ()), *(own.device for own in criteria.own)}
        devices |= {device for author, device in log.listing.hardware(task) if author in theirs and device}
    newest = sorted(newest, reverse=True)[: request.limit]
    tasks = {*best, *(task for _, task, _ in newest)}
    rows = {task: rows_of(log, blobs, task, me=me, starred=starred) for task in tasks}
    leaders = [row for task, n in best.items() for row in rows[task].at([n])]
    return answers.ParticipantRunsAnswer(
        newest=[row for _, task, n in newest for row in rows[task].at([n])],
        best=sorted(leaders, key=lambda row: -row.time_ms),
        total=total,
        devices=sorted(devices),
    )


@in_snapshot
def run_context_answer(
    log: Log, blobs: BlobStore, run: bytes, *, me: bytes | None = None, starred: frozenset[bytes] = frozenset()
) -> answers.RunContextAnswer:
    """What stands around a run. Raises UsageError where it is none, NotFound where it was withdrawn."""
    body = run_body(log, run)
    rows, n = rows_of(log, blobs, body.task, me=me, starred=starred), _number_of(log, run)
    with log.hidden.included() if log.hidden.of([run]) else nullcontext():
        row = rows.at([n])[0]  # it was asked for by its name
    total, children = rows.children(run, CHILDREN_SHOWN)
    way = log.listing.way(n, most=2)
    return answers.RunContextAnswer(
        row=row,
        parent=rows.at([way[0][0]])[0] if len(way) > 1 else None,
        children=children,
        all_children=total,
        same_program=rows.at(log.listing.same_program(body.task, n, SAME_SHOWN)),
    )


@in_snapshot
def path_answer(
    log: Log,
    blobs: BlobStore,
    run: bytes,
    request: PathOf | None = None,
    *,
    me: bytes | None = None,
    starred: frozenset[bytes] = frozenset(),
) -> answers.PathAnswer:
    """The way from the oldest known ancestor to a run, with the branches beside it.

    Of a way with more steps than are asked for those that changed the value least are left out.

    Raises UsageError where it is no run, NotFound where it was withdrawn or its task is not here.
    """
    body = run_body(log, run)
    task = task_of(log, body.task)
    if task is None:
        raise NotFound("The task of this run is not in this log.", hint="autoresearch network peers")
    rows = rows_of(log, blobs, task.digest, me=me, starred=starred)
    way = cached_answer(log, "way", run, lambda: log.listing.way(_number_of(log, run)))
    values = [value for _, _, value in way]
    # The steps that changed most, the first run and the last.
    steps = (0.0 if old is None or new is None else abs(new - old) for old, new in pairwise(values))
    sizes = [math.inf, *steps]
    sizes[-1] = math.inf
    places = sorted(sorted(range(len(way)), key=lambda at: -sizes[at])[: request.steps if request else MAXIMUM_ROWS])
    path: list[answers.PathStep] = []
    for row, at in zip(rows.at([way[at][0] for at in places]), places, strict=True):
        if request and not request.branches:
            path.append(answers.PathStep(row=row, branches=None))
            continue
        following = way[at + 1][0] if at + 1 < len(way) else None
        branches = BRANCHES_SHOWN if len(places) <= BRANCHED_MOST else 0
        total, best = rows.children(way[at][1], branches, but=following)
        path.append(answers.PathStep(row=row, branches=total, branch_runs=best))
    return answers.PathAnswer(task=task_status(log, task, author=me), steps=path, left_out=len(way) - len(places))


@in_snapshot
def runners_answer(log: Log, task: FoundTask) -> answers.RunnersAnswer:
    """The participants with runs on a task, those with the most first; and the settings that runs changed."""
    hardware = defaultdict[bytes, set[str]](set)
    for author, device in log.listing.hardware(task.digest):
        hardware[author].add(device)
    runners: dict[str, answers.RunnerView] = {}
    hidden = log.hidden.of_keys(hardware)
    for author, (runs, _, last_ms) in log.listing.devices(task.digest).items():
        if author in hidden:
            continue
        who = participant_of(log, author, last_ms)
        before = runners.get(who.key, answers.RunnerView(participant=who, runs=0))
        devices = sorted({*before.devices, *hardware[author]} - {""})
        runners[who.key] = answers.RunnerView(participant=who, runs=before.runs + runs, devices=devices)
    return answers.RunnersAnswer(
        runners=sorted(runners.values(), key=lambda runner: (-runner.runs, runner.participant.key)),
        settings=log.pairs.settings(task.digest),
    )


def _number_of(log: Log, run: bytes) -> int:
    number = log.listing.number(run)
    if number is None:
        raise NotFound(f"The run {short_id(run)} was withdrawn by its author.", hint="autoresearch run list")
    return number
