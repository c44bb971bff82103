"""The board of a contest: which runs count, the places of those that do, and a reason for each that takes none."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

import msgspec

from autoresearch.ask.challenges.answers import ChallengeAnswer, ContestantView, SubmissionView
from autoresearch.ask.comparing import MeasuredProgram, RankedPrograms, comparison
from autoresearch.ask.discussion import Fact
from autoresearch.ask.lookup import FoundTask, task_of
from autoresearch.ask.people.voters import too_few
from autoresearch.ask.runs.answers import RunRow
from autoresearch.ask.runs.boards import MOST_ROWS, task_status
from autoresearch.ask.runs.rows import rows_of
from autoresearch.errors import NotFound
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.rows import HistoryRow
from autoresearch.log.standing.answers import ProgramView, leading, numbers_of
from autoresearch.log.standing.cache import in_snapshot, roster_of
from autoresearch.log.standing.context import (
    TrustContext,
    board_hardware,
    participant_with_key,
    trust_context,
    trusted_authors,
    whose,
)
from autoresearch.log.standing.queries import board, with_marks
from autoresearch.log.standing.verdicts import spread_of
from autoresearch.record.encoding import format_id, parse_id, short_id
from autoresearch.record.kinds import Admission, Contest
from autoresearch.record.record import Record
from autoresearch.task.model import Metric
from autoresearch.text import age, counted, moment, one_line, sign_of
from autoresearch.trust.invite import USES_MAX
from autoresearch.trust.roster import Roster, last_word
from autoresearch.words import (
    BELIEVABLE,
    COPY,
    COPY_SENTENCE,
    RUN_STATE_SENTENCES,
    RUN_STATUS_SENTENCES,
    STOPPED,
    UNDECIDED,
    BoardSection,
    RunState,
    RunStatus,
)

LATE, EARLY, OVER_QUOTA, BASELINE, AGAIN = "late", "early", "over quota", "baseline", "repetition"
UNATTESTED = BoardSection.UNATTESTED.value
UNCOUNTED = frozenset({LATE, EARLY, OVER_QUOTA, BASELINE, UNATTESTED})
# The first so many of the board are compared in pairs.
COMPARED = 3
# Of one key: a record whose device did not speak for a founder then does not count.
_NEWEST = 20
# Of so many runs each is judged by the rules of the contest, the oldest; of those of strangers so many are told.
_SUBMISSIONS_MOST, _STRANGERS_MOST = 20_000, 1_000
NO_CHALLENGE = "autoresearch challenge new DIR --ends 7d --for friends"


@in_snapshot
def challenge_in_force(log: Log) -> Record | None:
    """The last word of the network's founders on their contest; None without one."""
    roster, founders = roster_of(log), log.trust.founders
    challenges = [
        record
        for key in roster.keys_of(founders)
        for record in log.records.newest(kind="challenge", author=key, limit=_NEWEST)
        if isinstance(record.body, Contest) and roster.voter(record.author, record.time).root in founders
    ]
    return last_word(challenges) if challenges else None


def contest_end(log: Log) -> int | None:
    """When the contest of this network ends, Unix milliseconds; None where it holds none."""
    record = challenge_in_force(log)
    return record.body_as(Contest).ends if record else None


def challenge_here(log: Log) -> tuple[Record, FoundTask]:
    """The contest of this network and its task. Raises NotFound where it has none, or its task is not here."""
    record = challenge_in_force(log)
    if record is None:
        raise NotFound(f"the network {log.network.name} holds no contest", hint=NO_CHALLENGE)
    task = task_of(log, record.body_as(Contest).task)
    if task is None:
        raise NotFound("the task of this contest is not here yet", hint="autoresearch network peers")
    return record, task


def contest_words(log: Log, task: bytes, now_ms: int) -> str:
    """What somebody who runs a task must know of the contest on it; empty without one, and where it counts each run."""
    record = challenge_in_force(log)
    body = record.body_as(Contest) if record else None
    if body is None or body.task != task:
        return ""
    if now_ms >= body.ends:
        return f"the contest on it ended {age(body.ends, now_ms)}: runs from now on take no place"
    first = f"the contest counts your first {counted(body.runs, 'run')} alone, also those that a search makes here"
    return first if body.runs else ""


@in_snapshot
def challenge_answer(
    log: Log, blobs: BlobStore, *, now_ms: int, me: bytes | None = None, every: bool = False
) -> ChallengeAnswer:
    """The contest of this network; with ``every`` all submissions with a reason each, and comparisons.

    Raises:
        NotFound: it has none, or its task is not here yet.
    """
    record, task = challenge_here(log)
    body = record.body_as(Contest)
    trust = trust_context(log, me)
    rows, history = _rows(log, blobs, task.digest, trust, me), {row.id: row for row in log.runs.history(task.digest)}
    outcomes = _left_out(log, task, body, rows, history)
    left_out = frozenset(run for run, (word, _) in outcomes.items() if word != COPY)
    programs = with_marks(log, board(log, task.digest, trust, limit=MOST_ROWS, without=left_out))
    hardware = board_hardware(log, task.digest) or ""
    submissions = _submissions(task, hardware, rows, history, outcomes, programs)
    root = roster_of(log).voter(me, now_ms).root if me else b""
    return ChallengeAnswer(
        id=format_id(record.id),
        title=body.title or task.name,
        network=log.network.name,
        task=task_status(log, task, author=me),
        begins_ms=body.begins,
        ends_ms=body.ends,
        ended=now_ms >= body.ends,
        runs_each=body.runs,
        rules=body.rules.sha256.hex() if body.rules else "",
        founder=root in log.trust.founders,
        programs=programs,
        contestants=_contestants(log, submissions),
        waiting=sum(each.counts and each.outcome in UNDECIDED for each in submissions),
        unsettled=log.todo.count(),
        note=too_few(log),
        submissions=submissions if every else [],
        comparisons=_comparisons(log, task, programs) if every else [],
    )


def _rows(log: Log, blobs: BlobStore, task: bytes, trust: TrustContext, me: bytes | None) -> list[RunRow]:
    """The runs of a task, the oldest first. However many strangers publish, those of participants are all there."""
    rows = rows_of(log, blobs, task, me=me)
    oldest = partial(log.listing.page, order="time", falling=False, limit=_SUBMISSIONS_MOST, skip=0)
    numbers = oldest(replace(rows.every, authors=trusted_authors(trust, me)))
    others = [n for n in oldest(rows.every) if n not in set(numbers)] if len(numbers) < _SUBMISSIONS_MOST else []
    return sorted(rows.at([*numbers, *others[:_STRANGERS_MOST]]), key=lambda row: (row.time_ms, row.id))


def _left_out(
    log: Log, task: FoundTask, body: Contest, rows: Sequence[RunRow], history: Mapping[bytes, HistoryRow]
) -> dict[bytes, tuple[str, str]]:
    """Why the rules of the contest give runs no place: a word and a sentence by run."""
    reasons: dict[bytes, tuple[str, str]] = {}
    counts = Counter[str]()
    dated, trust = log.runs.dated_back(body.task), trust_context(log)
    copies = log.evidence.originals(history.keys())
    for row in rows:
        run = parse_id(row.id)
        time_ms = max(row.time_ms, dated.get(run, 0))
        if time_ms >= body.ends:
            reasons[run] = LATE, f"after the end: published {moment(time_ms)}, the contest ended {moment(body.ends)}"
            continue
        if time_ms < body.begins:
            reasons[run] = EARLY, f"before the contest: published {moment(time_ms)}"
            continue
        if run in history and not whose(history[run].author, row.time_ms, trust).attested:
            reasons[run] = UNATTESTED, "its participant does not count: no founder admitted it, and no attestor vouches"
            continue
        if run in history and history[run].source_digest == task.baseline:
            reasons[run] = BASELINE, "the program that the contest begins with"
            continue
        if row.status not in STOPPED:
            counts[row.participant.key] += 1
        if body.runs and counts[row.participant.key] > body.runs:
            number = counts[row.participant.key]
            reasons[run] = OVER_QUOTA, f"its participant's run {number}, of {counted(body.runs, 'run')} that count"
        elif run in copies:
            reasons[run] = COPY, f"{COPY_SENTENCE}: {short_id(copies[run])}"
    return reasons


def _submissions(
    task: FoundTask,
    hardware: str,
    rows: Sequence[RunRow],
    history: Mapping[bytes, HistoryRow],
    outcomes: Mapping[bytes, tuple[str, str]],
    programs: Sequence[ProgramView],
) -> list[SubmissionView]:
    placed = {parse_id(program.id): program for program in programs}
    first = {history[run].seedless: run for run in placed if run in history}
    return [_submission(task, hardware, row, history, outcomes, placed, first) for row in rows]


def _submission(
    task: FoundTask,
    hardware: str,
    row: RunRow,
    history: Mapping[bytes, HistoryRow],
    outcomes: Mapping[bytes, tuple[str, str]],
    placed: Mapping[bytes, ProgramView],
    first: Mapping[bytes, bytes],
) -> SubmissionView:
    run = parse_id(row.id)
    program, compact = placed.get(run), history.get(run)
    position, last = (program.position, program.last_position) if program else (0, 0)
    before = first.get(compact.seedless) if compact and program is None else None
    sentence = row.verdict or RUN_STATE_SENTENCES[RunState(row.state)]
    word = row.state
    if run in outcomes:
        word, sentence = outcomes[run]
    elif row.status != RunStatus.OK:
        word = row.status
        sentence = RUN_STATUS_SENTENCES.get(RunStatus(row.status), "") + (f": {row.reason}" if row.reason else "")
    elif before is not None:
        word, sentence = AGAIN, f"a further run of the program of {short_id(before)}"
    elif program is not None and program.budget != task.budget and not position:
        sentence = f"with another budget than the task's; {sentence}"
    elif hardware and row.device != hardware:
        sentence = f"the board compares runs on {one_line(hardware, 80)}; {sentence}"
    return SubmissionView(
        **msgspec.structs.asdict(numbers_of(row)),
        id=row.id,
        time_ms=row.time_ms,
        participant=row.participant,
        title=row.headline,
        counts=word not in UNCOUNTED,
        outcome=word,
        position=position,
        last_position=last,
        reason=sentence,
    )


def _contestants(log: Log, submissions: Sequence[SubmissionView]) -> list[ContestantView]:
    """The participants with a submission, those with the better places first; then those admitted, with none."""
    by_participant: defaultdict[str, list[SubmissionView]] = defaultdict(list)
    for submission in submissions:
        by_participant[submission.participant.key].append(submission)
    roster = roster_of(log)
    for root in roster.admitted:
        by_participant.setdefault(root.hex(), [])
    views = []
    tokens = _tokens(log, roster)
    for key, theirs in by_participant.items():
        token = tokens.get(bytes.fromhex(key))
        counting = [each for each in theirs if each.counts]
        views.append(
            ContestantView(
                participant=participant_with_key(log, bytes.fromhex(key)),
                runs=len(theirs),
                counted=sum(each.counts for each in theirs),
                best=min(counting, key=_merit, default=None),
                token=token.hex() if token else "",
            )
        )
    return sorted(
        views, key=lambda view: (view.best is None, _merit(view.best) if view.best else (), view.participant.key)
    )


def _tokens(log: Log, roster: Roster) -> dict[bytes, bytes]:
    """The last invite that admitted each participant, though a founder may have admitted it by hand since."""
    tokens: dict[bytes, bytes] = {}
    for key in roster.keys_of(log.trust.founders):
        for record in log.records.newest(kind="admission", author=key, limit=4 * USES_MAX):
            if isinstance(record.body, Admission) and record.body.token:
                tokens.setdefault(record.body.participant, record.body.token)
    return tokens


def _merit(submission: SubmissionView) -> tuple[object, ...]:
    """Orders the submissions of a participant, the best first: places, then what verifiers measured, then reports."""
    placed = submission.position or 1 << 30
    gain = submission.gain if submission.gain is not None else submission.gain_reported
    return (
        placed,
        submission.last_position,
        submission.outcome not in BELIEVABLE,
        submission.verified is None,
        -(gain or 0.0),
        submission.time_ms,
    )


def _comparisons(log: Log, task: FoundTask, programs: Sequence[ProgramView]) -> list[Fact]:
    """How the first programs of the board differ, in pairs; of verified ones by the values of verifiers."""
    try:
        metric = msgspec.convert((log.tasks.definition(task.digest) or {}).get("metric"), Metric)
    except msgspec.ValidationError:
        return []
    firsts = [program for program in programs if program.position][:COMPARED]
    measured = [_measured(program) for program in firsts]
    ranked = [program for program in measured if program is not None]
    compared = RankedPrograms(ranked, None, spread_of(log, task.digest, metric), sign_of(task.direction), {})
    return [comparison(better, other, compared) for better, other in combinations(ranked, 2)]


def _measured(program: ProgramView) -> MeasuredProgram | None:
    value = leading(program).value
    if value is None:
        return None
    runs = program.verified_runs if program.verified is not None else program.reported_runs
    title = program.headline or program.title
    parent = parse_id(program.parent) if program.parent else None
    return MeasuredProgram(parse_id(program.id), title, value, max(runs, 1), parent, program.time_ms)
