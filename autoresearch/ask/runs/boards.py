"""How far a task has come: its numbers, its best, its leaderboard.

Also what people type for a run: an id, the beginning of one, ``@`` for the best, ``@mine``, and ``~N`` for a parent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

import msgspec

from autoresearch.ask.lookup import FoundTask, find_task, other_tasks, task_of
from autoresearch.ask.node import TaskStatus
from autoresearch.ask.people.voters import too_few, works_alone
from autoresearch.ask.runs.answers import BestAnswer, BoardLine, SizeView, TasksAnswer, TopAnswer
from autoresearch.errors import BEGIN, NotFound, UsageError
from autoresearch.log.log import Log
from autoresearch.log.rows import ProgramRow
from autoresearch.log.standing.answers import ProgramView, RunView, leading
from autoresearch.log.standing.bases import (
    CHECKING_AUTHORS,
    backed,
    best_of,
    checked,
    judged_rows,
    preferred,
    program_as_reported,
    visible_programs,
    vouched,
)
from autoresearch.log.standing.cache import in_snapshot
from autoresearch.log.standing.context import TrustContext, board_hardware, trust_context
from autoresearch.log.standing.jobs import confirmed_until
from autoresearch.log.standing.queries import board, program_view, run, run_body, with_marks
from autoresearch.log.standing.verdicts import verdict
from autoresearch.log.tables.filters import Filter
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.text import one_line, sign_of
from autoresearch.words import NOT_FAILED, SOUND, BoardSection, RunState

DEFAULT_ROWS = 20
# So many rows of a board are looked through for those that are wanted.
MOST_ROWS = 1000
_LINES = {"random": "random_reward", "solved": "solved_reward"}


@in_snapshot
def task_status(log: Log, task: FoundTask, *, author: bytes | None = None) -> TaskStatus:
    """The task and how far the network has come with it; ``best`` is what ``author`` would build upon."""
    statuses = log.runs.endings(task.digest)
    best = best_program(log, task, author=author)
    if best and not best.verdict and log.trust.names_anybody:  # nobody measured it yet: then what that takes
        best = msgspec.structs.replace(best, verdict=verdict(log, log.records.get(parse_id(best.id))))
    baseline = _baseline(log, task, trust_context(log, author))
    return TaskStatus(
        name=task.name,
        digest=task.digest.hex(),
        metric=task.metric,
        direction=task.direction,
        floor=task.floor,
        noise=rules.noise if (rules := log.tasks.rules(task.digest)) else 0.0,
        baseline=baseline.mean if baseline else None,
        best=best,
        closed=closed(baseline.mean, leading(best).value, task.floor) if baseline and best else None,
        runs=sum(statuses.values()),
        failed=sum(count for status, count in statuses.items() if status not in NOT_FAILED),
    )


@in_snapshot
def tasks_answer(
    log: Log, *, author: bytes | None = None, archived: frozenset[bytes] = frozenset(), all_tasks: bool = False
) -> TasksAnswer:
    """The tasks that somebody published, those with the most runs first; with ``all_tasks`` the archived ones too.

    The best of each is what ``author`` would build upon.
    """
    digests = dict.fromkeys(row.digest for row in log.tasks.all(visible=True))
    published = [task_of(log, digest) for digest in digests]
    shown = [task for task in published if task is not None and (all_tasks or task.digest not in archived)]
    tasks = [
        msgspec.structs.replace(task_status(log, task, author=author), archived=task.digest in archived)
        for task in shown
    ]
    hidden = len({row.digest for row in log.tasks.all()} - digests.keys())
    return TasksAnswer(tasks=sorted(tasks, key=lambda task: (-task.runs, task.digest)), hidden=hidden)


@in_snapshot
def best_answer(
    log: Log, task: FoundTask, *, author: bytes | None = None, archived: frozenset[bytes] = frozenset()
) -> BestAnswer:
    """The best confirmed program, the best provisional and the best reported one; ``run`` is the one to build upon.

    ``author`` is the device that asks: while nothing is checked, its own runs come before what others say. Tasks that
    are ``archived`` are not among the others that are named.
    """
    status = task_status(log, task, author=author)
    here = trust_context(log, author)
    confirmed = _best_backed(log, task, here, RunState.CONFIRMED)
    leader = run(log, parse_id(status.best.id)) if status.best else None
    provisional, reported = _best_backed(log, task, here, RunState.PROVISIONAL), _best_reported(log, task, here)
    demoted = _demoted(log, task, here, confirmed)
    shown = _with_marks(log, [status.best, confirmed, provisional, reported, demoted])
    return BestAnswer(
        task=msgspec.structs.replace(status, best=shown[0]),
        confirmed=shown[1],
        provisional=shown[2],
        reported=shown[3],
        demoted=shown[4],
        run=leader,
        note=_note(log, task, status, confirmed),
        other_tasks=other_tasks(log, task, archived),
        sizes=_sizes(log, task, here, leader),
    )


def _sizes(log: Log, task: FoundTask, here: TrustContext, leader: RunView | None) -> list[SizeView]:
    """What the program that leads a task is worth in its other sizes."""
    views = []
    for row in log.tasks.sizes(task.digest):
        assert row.budget is not None, "a size has one"
        view, best = SizeView(name=row.name, budget=row.budget), preferred(log, row.digest, here)
        if leader is not None:
            found = log.programs.find(row.digest, bytes.fromhex(leader.run.source_digest), row.budget)
            baseline = log.programs.find(row.digest, task.baseline or b"", row.budget)
            if found is not None:
                sign = log.tasks.sign(row.digest)
                gain = None if baseline is None else sign * (baseline.mean - found.mean)
                view = msgspec.structs.replace(view, runs=found.runs, value=found.mean, gain=gain)
        views.append(msgspec.structs.replace(view, best=best.value if best else None))
    return views


@in_snapshot
def top_answer(
    log: Log,
    task: FoundTask,
    *,
    limit: int = DEFAULT_ROWS,
    budget: float | None = None,
    author: bytes | None = None,
    archived: frozenset[bytes] = frozenset(),
) -> TopAnswer:
    """The leaderboard of a task, in sections where others' words count; ``archived`` tasks are not named as others.

    With a ``budget`` only programs with at most that are shown; each keeps its place.
    """
    here = trust_context(log, author)
    status = task_status(log, task, author=author)
    programs = board(log, task.digest, here, limit=limit if budget is None else MOST_ROWS)
    if budget is not None:
        programs = [row for row in programs if row.budget <= budget][:limit]
    confirmed = next((row for row in programs if row.section == BoardSection.CONFIRMED), None)
    note = _note(log, task, status, confirmed)
    best, *shown = _with_marks(log, [status.best, *programs])
    status = msgspec.structs.replace(status, best=best)
    found = [program for program in shown if program]
    return TopAnswer(
        task=status,
        programs=found,
        note=note,
        other_tasks=other_tasks(log, task, archived),
        hardware=board_hardware(log, task.digest) or "",
        lines=_lines(log, task, found),
        hidden=log.listing.counts(Filter(task.digest)).hidden if log.hidden else 0,
    )


def _lines(log: Log, task: FoundTask, programs: Sequence[ProgramView]) -> list[BoardLine]:
    """What the evaluations of agents measured of their environment: the median, as authors state it."""
    rules = log.tasks.rules(task.digest)
    if rules is None or not rules.any_budget:
        return []
    stated = [run_body(log, parse_id(program.id)).metrics for program in programs]
    values = {name: [each[key] for each in stated if key in each] for name, key in _LINES.items()}
    return [BoardLine(name=name, value=median(found)) for name, found in values.items() if found]


@in_snapshot
def best_program(log: Log, task: FoundTask, *, author: bytes | None = None) -> ProgramView | None:
    """The program that the next change builds upon, and that ``@`` names."""
    found = preferred(log, task.digest, trust_context(log, author))
    return program_view(log, found.row, found.judgement, position=1) if found else None


def _best_backed(log: Log, task: FoundTask, here: TrustContext, state: RunState) -> ProgramView | None:
    found = next(iter(visible_programs(log, backed(log, task.digest, here, state))), None)
    return program_view(log, found.row, found.judgement, position=1) if found else None


def _best_reported(log: Log, task: FoundTask, here: TrustContext) -> ProgramView | None:
    """The best that nobody checked, by a participant who counts where anybody is named."""
    for number, placed in enumerate(judged_rows(log, vouched(log, task.digest, here, visible=True), here), start=1):
        if placed.judgement.state is RunState.REPORTED:
            return program_view(log, placed.row, placed.judgement, position=number)
    return None


def _with_marks(log: Log, programs: Sequence[ProgramView | None]) -> list[ProgramView | None]:
    """What there is of these with what the log shows of their authors, looked for once."""
    found = iter(with_marks(log, [program for program in programs if program]))
    return [next(found) if program else None for program in programs]


def _demoted(log: Log, task: FoundTask, here: TrustContext, confirmed: ProgramView | None) -> ProgramView | None:
    """What was confirmed, is no more, and would lead: people who built on it have to know."""
    sign = sign_of(task.direction)
    for placed in visible_programs(log, checked(log, task.digest, here, voters=CHECKING_AUTHORS)):
        if confirmed is not None and sign * placed.row.mean >= sign * (confirmed.reported or 0.0):
            return None
        end = None if placed.judgement.state in SOUND or not placed.attested else confirmed_until(log, placed.row.first)
        if end is not None:
            view = program_view(log, placed.row, placed.judgement, position=0)
            return msgspec.structs.replace(view, confirmed_until_ms=end.time_ms)
    return None


def _note(log: Log, task: FoundTask, status: TaskStatus, confirmed: ProgramView | None) -> str:
    """What has to be said of the numbers: that nobody confirmed them, that they are of one kind of hardware."""
    hardware = board_hardware(log, task.digest)
    compared = f"Wall-clock numbers are compared on one kind of hardware: {one_line(hardware, 80)}." if hardware else ""
    return " ".join(filter(None, (_standing_note(log, task, status, confirmed), compared)))


def _standing_note(log: Log, task: FoundTask, status: TaskStatus, confirmed: ProgramView | None) -> str:
    """What has to be said of numbers that nobody confirmed; nothing to a participant who works alone."""
    if status.best is None:
        return f"No run of {task.name} has a value yet."
    if confirmed is not None or works_alone(log, task.digest):
        return ""
    claim = "Reported numbers are their author's claim"
    few = too_few(log)
    return f"{claim}: {few}" if few else f"{claim}: none is confirmed yet."


def closed(baseline: float | None, value: float | None, floor: float | None) -> float | None:
    """The share of the way from the baseline to the floor that a value has done, 0 to 1, for both directions.

    None where there is no way. A value that is worse than the baseline has done nothing of it.
    """
    if baseline is None or value is None or floor is None or baseline == floor:
        return None
    return min(1.0, max(0.0, (baseline - value) / (baseline - floor)))


def _baseline(log: Log, task: FoundTask, here: TrustContext) -> ProgramRow | None:
    """The program of the task's own program."""
    return program_as_reported(log, (task.digest, task.baseline, task.budget), here) if task.baseline else None


_REFERENCE = re.compile(r"(?P<start>@[a-z]*|[^@~]+)(?:~(?P<steps>[0-9]{0,4}))?")


@in_snapshot
def resolve_reference(
    log: Log,
    text: str,
    *,
    task: FoundTask | None = None,
    author: bytes | None = None,
    archived: frozenset[bytes] = frozenset(),
) -> bytes:
    """The id of the record that is meant: ``bafy…``, ``g3x``, ``@``, ``@mine``, each with ``~`` or ``~2`` if wanted.

    ``@`` is the best run of the task: confirmed, else provisional, else ``author``'s own, else reported; never one that
    is in doubt. ``@mine`` is the best of ``author`` by its own word. Without ``task`` it is the one worked on last
    that is not ``archived``. ``~N`` goes N parents back.

    Raises:
        NotFound: there is none.
        AmbiguousId: several ids begin so.
        UsageError: it is none of these forms, or ``~`` follows what is no run.
    """
    match = _REFERENCE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"“{text[:80]}” names no run.", hint="an id or its beginning, @, @mine, or one of them with ~1"
        )
    start, steps = match["start"], match["steps"]
    if start.startswith("@"):
        if start not in ("@", "@mine"):
            raise UsageError(f"{start} names no run.", hint="@ is the best run, @mine the best of this device")
        found = _best(log, start, task or find_task(log, author=author, archived=archived), author)
    else:
        found = log.records.resolve(start)
    return found if steps is None else _ancestor(log, found, int(steps or 1))


def _best(log: Log, start: str, task: FoundTask, author: bytes | None) -> bytes:
    if start == "@":
        program = best_program(log, task, author=author)
        found = parse_id(program.id) if program else None
    else:
        mine = best_of(log, task.digest, author, trust_context(log)) if author else None
        found = mine.first if mine else None
    if found is None:
        whose = "" if start == "@" else " of this device"
        raise NotFound(f"No run{whose} on {task.name} has a value yet.", hint=BEGIN)
    return found


def _ancestor(log: Log, run_id: bytes, steps: int) -> bytes:
    found = run_id
    for done in range(steps):
        parent = run_body(log, found).parent
        if parent is None:
            known = f"The run {short_id(run_id)} has {done} ancestors, not {steps}."
            raise NotFound(known, hint=f"autoresearch run lineage {short_id(run_id)}")
        if not log.records.has([parent]):
            raise NotFound(f"The parent of {short_id(found)} is not in this log.")
        found = parent
    return found
