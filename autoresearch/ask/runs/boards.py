"""How far a task has come: its numbers, its best, its leaderboard.

Also what people type for a run: an id, the beginning of one, ``@`` for the best, ``@mine``, ``#N`` for the N-th row of
the board, and ``~N`` for a parent.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from statistics import fmean, median

import msgspec

from autoresearch.ask.attacks import attacks_answer
from autoresearch.ask.lookup import FoundTask, find_task, other_tasks, task_of
from autoresearch.ask.node import TaskStatus
from autoresearch.ask.people.voters import too_few, works_alone
from autoresearch.ask.runs.answers import BestAnswer, BoardLine, SizeView, TasksAnswer, TopAnswer
from autoresearch.errors import BEGIN, NotFound, UsageError
from autoresearch.judging.statistics import RANDOM, RANDOM_ERROR, SOLVED, mean, median_margin, stated_error
from autoresearch.log.log import Log
from autoresearch.log.standing import bases
from autoresearch.log.standing.answers import ProgramView, RunView, leading
from autoresearch.log.standing.cache import cached, cached_answer, in_snapshot
from autoresearch.log.standing.context import TrustContext, board_hardware, trust_context
from autoresearch.log.standing.jobs import confirmed_until
from autoresearch.log.standing.queries import board, program_view, run, run_body, with_marks
from autoresearch.log.standing.verdicts import verdict
from autoresearch.log.standing.verification import first_words
from autoresearch.log.tables.filters import Filter
from autoresearch.log.tables.runs import NEITHER
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.record.kinds import Verification
from autoresearch.task.folder_state import BASELINE
from autoresearch.text import one_line, sign_of
from autoresearch.words import NOT_FAILED, SOUND, BoardSection, RunState

DEFAULT_ROWS = 20
# So many rows of a board are looked through for those that are wanted.
MOST_ROWS = 1000
# So many programs of a board say what agents are compared with there.
_LINE_PROGRAMS = 20
_LINES = {"random": (RANDOM, RANDOM_ERROR), "solved": (SOLVED, "")}
NO_LINES = "What random actions earn here is not known: no verifier, and no run of this node, has measured it."


def task_status(log: Log, task: FoundTask, *, author: bytes | None = None) -> TaskStatus:
    """The task and how far the network has come with it; ``best`` is what ``author`` would build upon."""
    return cached(log, ("status", task, author), lambda: _task_status(log, task, author))


def _task_status(log: Log, task: FoundTask, author: bytes | None) -> TaskStatus:
    statuses = log.runs.endings(task.digest)
    best = best_program(log, task, author=author)
    if best and not best.verdict and log.trust.names_anybody:  # nobody measured it yet: then what that takes
        best = msgspec.structs.replace(best, verdict=verdict(log, log.records.get(parse_id(best.id))))
    own = task.baseline and (task.digest, task.baseline, task.budget)
    baseline = bases.program_as_reported(log, own, trust_context(log, author)) if own else None
    attacks = attacks_answer(log, task)
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
        attacked=attacks.sentence,
        self_reported=attacks.self_reported,
    )


@in_snapshot
def tasks_answer(
    log: Log, *, author: bytes | None = None, archived: frozenset[bytes] = frozenset(), all_tasks: bool = False
) -> TasksAnswer:
    """The tasks that somebody published, those with the most runs first; with ``all_tasks`` the archived ones too.

    The best of each is what ``author`` would build upon.
    """
    digests = dict.fromkeys(row.digest for row in log.tasks.all(visible=True))
    tasks = [
        msgspec.structs.replace(task_status(log, task, author=author), archived=task.digest in archived)
        for task in map(partial(task_of, log), digests)
        if task is not None and (all_tasks or task.digest not in archived)
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
    trust = trust_context(log, author)
    confirmed = _best_backed(log, task, trust, RunState.CONFIRMED)
    leader = run(log, parse_id(status.best.id)) if status.best else None
    provisional, reported = _best_backed(log, task, trust, RunState.PROVISIONAL), _best_reported(log, task, trust)
    demoted = _demoted(log, task, trust, confirmed)
    views = _with_marks(log, [status.best, confirmed, provisional, reported, demoted])
    return BestAnswer(
        task=msgspec.structs.replace(status, best=views[0]),
        confirmed=views[1],
        provisional=views[2],
        reported=views[3],
        demoted=views[4],
        run=leader,
        note=_note(log, task, status, confirmed),
        other_tasks=other_tasks(log, task, archived),
        sizes=_sizes(log, task, trust, leader),
    )


def _sizes(log: Log, task: FoundTask, trust: TrustContext, leader: RunView | None) -> list[SizeView]:
    """What the program that leads a task is worth in its other sizes."""
    views = []
    for row in log.tasks.sizes(task.digest):
        assert row.budget is not None, "a size has one"
        view, best = SizeView(name=row.name, budget=row.budget), bases.preferred(log, row.digest, trust)
        if leader is not None:
            program = log.programs.find(row.digest, bytes.fromhex(leader.run.source_digest), row.budget)
            baseline = log.programs.find(row.digest, task.baseline or b"", row.budget)
            if program is not None:
                sign = log.tasks.sign(row.digest)
                gain = None if baseline is None else sign * (baseline.mean - program.mean)
                view = msgspec.structs.replace(view, runs=program.runs, value=program.mean, gain=gain)
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
    trust = trust_context(log, author)
    status = task_status(log, task, author=author)
    most = limit if budget is None else MOST_ROWS
    read = partial(board, log, task.digest, trust, limit=most)
    programs = cached_answer(log, "board", (task.digest, author, most), read)
    if budget is not None:
        programs = [row for row in programs if row.budget <= budget][:limit]
    confirmed = next((row for row in programs if row.section == BoardSection.CONFIRMED), None)
    lines = _lines(log, task, trust, author)
    note = _note(log, task, status, confirmed)
    best, *marked = _with_marks(log, [status.best, *programs])
    views = [program for program in marked if program]
    return TopAnswer(
        task=msgspec.structs.replace(status, best=best),
        programs=views,
        note=note,
        other_tasks=other_tasks(log, task, archived),
        hardware=board_hardware(log, task.digest) or "",
        lines=lines or [],
        lines_note="" if lines is None or lines else NO_LINES,
        hidden=log.listing.counts(Filter(task.digest)).hidden if log.hidden else 0,
    )


def _lines(log: Log, task: FoundTask, trust: TrustContext, author: bytes | None) -> list[BoardLine] | None:
    """What agents are compared with in their environment, as verifiers measured it, else this node (``author``).

    None where the task has no environment. An author could state any number: what it states stands on its own board
    alone. The programs that are asked about are the same whatever part of the board is shown.
    """
    if log.tasks.stated(task.digest, "budget", "unit") != "episodes":
        return None
    measured: defaultdict[bytes, list[Mapping[str, float]]] = defaultdict(list)
    verified = islice(bases.verified_programs(log, task.digest, trust), _LINE_PROGRAMS)
    for record in log.records.several([program.row.first for program in verified]):
        for verification, report in first_words(log, record):
            measured[report.voter].append(verification.body_as(Verification).metrics)
    lines = _pooled_lines(measured)
    if lines or author is None:
        return lines
    own = islice(bases.of_device(log, task.digest, author, trust), _LINE_PROGRAMS)
    runs = [run_body(log, row.first).metrics for row in own]
    return [msgspec.structs.replace(line, verifiers=0) for line in _pooled_lines({author: runs})]


def _pooled_lines(measured: Mapping[bytes, Sequence[Mapping[str, float]]]) -> list[BoardLine]:
    """The lines by the metrics of each who measured them: a mean of each, and the median of these.

    So one that measured often, or states what it likes, is one among the others.
    """
    lines = []
    for name, (value, error) in _LINES.items():
        by_voter = {who: [each for each in metrics if value in each] for who, metrics in measured.items()}
        by_voter = {who: metrics for who, metrics in by_voter.items() if metrics}
        if not by_voter:
            continue
        means, errors = [], []
        for metrics in by_voter.values():
            means.append(mean([each[value] for each in metrics]))
            stated = [each for each in (stated_error(each, error) for each in metrics) if each is not None]
            errors += [math.sqrt(fmean(each**2 for each in stated) / len(stated))] if stated else []
        half = median_margin(median(errors), len(means)) if errors else None
        lines.append(BoardLine(name=name, value=median(means), margin=half, verifiers=len(means)))
    return lines


@in_snapshot
def best_program(log: Log, task: FoundTask, *, author: bytes | None = None) -> ProgramView | None:
    """The program that the next change builds upon, and that ``@`` names."""
    placed = bases.preferred(log, task.digest, trust_context(log, author))
    return program_view(log, placed.row, placed.judgement) if placed else None


def _best_backed(log: Log, task: FoundTask, trust: TrustContext, state: RunState) -> ProgramView | None:
    placed = next(bases.backed(log, task.digest, trust, state), None)
    return program_view(log, placed.row, placed.judgement) if placed else None


def _best_reported(log: Log, task: FoundTask, trust: TrustContext) -> ProgramView | None:
    """The best that nobody checked, by a participant who counts where anybody is named."""
    for placed in bases.judged_rows(log, bases.vouched(log, task.digest, trust, visible=True), trust):
        if placed.judgement.state is RunState.REPORTED:
            return program_view(log, placed.row, placed.judgement)
    return None


def _with_marks(log: Log, programs: Sequence[ProgramView | None]) -> list[ProgramView | None]:
    """What there is of these with what the log shows of their authors, looked for once."""
    marked = iter(with_marks(log, [program for program in programs if program]))
    return [next(marked) if program else None for program in programs]


def _demoted(log: Log, task: FoundTask, trust: TrustContext, confirmed: ProgramView | None) -> ProgramView | None:
    """What was confirmed, is no more, and would lead: people who built on it have to know."""
    sign = sign_of(task.direction)
    for placed in bases.checked(log, task.digest, trust, [NEITHER], visible=True):
        if confirmed is not None and sign * placed.row.mean >= sign * (confirmed.reported or 0.0):
            return None
        end = None if placed.judgement.state in SOUND else confirmed_until(log, placed.row.first)
        if end is not None:
            view = program_view(log, placed.row, placed.judgement)
            return msgspec.structs.replace(view, confirmed_until_ms=end.time_ms)
    return None


def _note(log: Log, task: FoundTask, status: TaskStatus, confirmed: ProgramView | None) -> str:
    """What has to be said of the numbers: that nobody confirmed them, that they are of one kind of hardware."""
    hardware = board_hardware(log, task.digest)
    compared = f"Wall-clock numbers are compared on one kind of hardware: {one_line(hardware, 80)}." if hardware else ""
    # The standing may end with a command, behind which nothing can stand.
    return " ".join(filter(None, (compared, _standing_note(log, task, status, confirmed))))


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


# What people type for a run that has a name, and what it means.
_NAMED = {"@": "the best run", "@mine": "the best of this device", BASELINE: "the baseline's run"}
_NAMES = ", ".join(f"{name} for {meaning}" for name, meaning in _NAMED.items()) + ", #2 for the board's second row"
# Words of other tools for such a run.
_WORDS = {"@": "best head top winner", "@mine": "mine own my", BASELINE: "baseline base first root original initial"}
_NEWEST = frozenset({"latest", "last", "newest", "recent", "current", "tip"})
_REFERENCE = re.compile(r"(?P<start>@[a-z]*|(?P<row>#[1-9][0-9]{0,2})|[^@~]+)(?:~(?P<steps>[0-9]{0,4}))?")


@in_snapshot
def resolve_reference(
    log: Log,
    text: str,
    *,
    task: FoundTask | None = None,
    author: bytes | None = None,
    archived: frozenset[bytes] = frozenset(),
) -> bytes:
    """The id of the record that is meant: ``bafy…``, ``g3x``, ``@``, ``@mine``, ``@baseline``, ``#2``, ``@~2``.

    ``@`` is the best run of the task: confirmed, else provisional, else ``author``'s own, else reported; never one that
    is in doubt. ``@mine`` is the best of ``author`` by its own word, ``@baseline`` the first run of the unchanged
    program, ``#2`` the second row of the board as ``top`` shows it. Without ``task`` it is the one worked on last that
    is not ``archived``. ``~N`` goes N parents back.

    Raises:
        NotFound: there is none.
        AmbiguousId: several ids begin so.
        UsageError: it is none of these forms, or ``~`` follows what is no run.
    """
    match = _REFERENCE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"“{text[:80]}” names no run.", hint=f"an id or its beginning, {_NAMES}, or one with ~1")
    start, steps = match["start"], match["steps"]
    if start in _NAMED or match["row"]:
        task = task or find_task(log, author=author, archived=archived)
        run_id = _named_run(log, start, task, author) if start in _NAMED else _board_run(log, start, task, author)
    else:
        run_id = _resolve(log, start, text.strip()[len(start) :])
    return run_id if steps is None else _ancestor(log, run_id, int(steps or 1))


def _resolve(log: Log, start: str, steps: str) -> bytes:
    """The record whose id begins so; a word that is none, such as ``HEAD~1``, leads on to what is meant."""
    try:
        if start.startswith("@"):
            raise UsageError(f"{start} names no run.", hint=_NAMES)
        return log.records.resolve(start)
    except (NotFound, UsageError) as error:
        word = start.lower().removeprefix("@")
        kind, _, name = start.rpartition("/")
        near = next((name for name, words in _WORDS.items() if word in words.split()), "")
        hint = f"did you mean {near}{steps}? {near} is {_NAMED[near]}" if near else error.hint
        if any(task.name == start for task in log.tasks.all()):
            hint = f"the best run of the task {start}: @ --task {start}"
        elif start.isprintable() and log.releases.named(kind, name):  # what is no text can't be looked for
            hint = f"the id of a component: autoresearch search {name}"
        elif word in _NEWEST:
            hint = "autoresearch run list begins with the newest"
        elif not near and isinstance(error, UsageError) and not hint.startswith("did you mean"):
            hint = f"an id or its beginning, as autoresearch run list has them; {_NAMES}"
        raise type(error)(f"{error}", hint=hint) from None


def _named_run(log: Log, start: str, task: FoundTask, author: bytes | None) -> bytes:
    context = trust_context(log)
    if start == "@":
        program = best_program(log, task, author=author)
        run_id = parse_id(program.id) if program else None
    elif start == BASELINE:
        baseline = (task.digest, task.baseline, task.budget) if task.baseline else None
        row = bases.program_as_reported(log, baseline, context) if baseline else None
        run_id = row.first if row else None
    else:
        mine = bases.best_of(log, task.digest, author, context) if author else None
        run_id = mine.first if mine else None
    if run_id is None:
        whose = {"@mine": " of this device", BASELINE: " of the baseline"}.get(start, "")
        raise NotFound(f"No run{whose} on {task.name} has a value yet.", hint=BEGIN)
    return run_id


def _board_run(log: Log, start: str, task: FoundTask, author: bytes | None) -> bytes:
    row = int(start[1:])
    rows = board(log, task.digest, trust_context(log, author), limit=max(row, DEFAULT_ROWS))
    if row > len(rows):
        raise NotFound(f"The board of {task.name} has {len(rows)} rows, not {row}.", hint="autoresearch top")
    return parse_id(rows[row - 1].id)


def _ancestor(log: Log, run_id: bytes, steps: int) -> bytes:
    ancestor = run_id
    for done in range(steps):
        parent = run_body(log, ancestor).parent
        if parent is None:
            sentence = f"The run {short_id(run_id)} has {done} ancestors, not {steps}."
            raise NotFound(sentence, hint=f"autoresearch run lineage {short_id(run_id)}")
        if not log.records.has([parent]):
            raise NotFound(f"The parent of {short_id(ancestor)} is not in this log.", hint="autoresearch up")
        ancestor = parent
    return ancestor
