"""Records of any kind: the newest, those that meet conditions, and one whole with everything that verifiers measured.

Conditions are written as ``value<1.1``, ``status=crashed``, ``title~warm-up``. What strangers wrote is kept to a line.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence

import msgspec

from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.notes import notes_of
from autoresearch.ask.people.voters import too_few_then, works_alone
from autoresearch.ask.records import LogAnswer, Measured, RecordView, ShowAnswer, StateChange, VerificationStateView
from autoresearch.ask.registry.releases import release_view
from autoresearch.errors import UsageError
from autoresearch.judging.states import EVALUATE, REPLICATE
from autoresearch.log.log import Log
from autoresearch.log.rows import StoredRun
from autoresearch.log.standing.cache import in_snapshot, roster_of
from autoresearch.log.standing.context import participant_of, trust_context, whose
from autoresearch.log.standing.jobs import states_over_time
from autoresearch.log.standing.queries import marks_of, run_view, wants_retest
from autoresearch.log.standing.verdicts import noise_doubt, verdict
from autoresearch.log.standing.verification import allowed_difference, counted_reports, judgement
from autoresearch.record import kinds
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.record import Record, plain_body
from autoresearch.text import moment, one_line
from autoresearch.words import BUDGET_UNITS, MEASURED_BY, RUN_MODES, UNDECIDED, RunState, RunStatus


@in_snapshot
def verification_state_view(log: Log, run: Record, *, marks: bool = True) -> VerificationStateView:
    """The word for a run, why it is no better, who measured what; with ``marks`` its author's, which takes time."""
    judged = judgement(log, run.id)
    body = run.body_as(kinds.Run)
    author = roster_of(log).voter(run.author, run.time).voter
    counted = {record.id for record, report in counted_reports(log, run) if report.attested and report.voter != author}
    original = log.evidence.originals([run.id]).get(run.id)
    return VerificationStateView(
        state=judged.state.value,
        reason=reason(log, run, judged.state),
        tolerance=allowed_difference(log, body),
        changes=[
            StateChange(state=change.state.value, id=format_id(change.record), time_ms=change.time_ms)
            for change in states_over_time(log, run.id)
        ],
        copy_of=format_id(original) if original else None,
        retest=wants_retest(log, body.parent),
        marks=marks_of(log, run) if marks else [],
        noise=noise_doubt(log, body.task),
        attested=whose(run.author, run.time, trust_context(log)).attested,
        measured=[_measured(log, body, log.records.get(row.id), counted) for row in log.verifications.of(run.id)],
    )


def reason(log: Log, run: Record, state: RunState) -> str:
    """The sentence about the verdict; in a network too small to confirm anything it says so, and what to do."""
    assert isinstance(run.body, kinds.Run)
    sentence = verdict(log, run)
    if state not in UNDECIDED or run.body.value is None or works_alone(log, run.body.task):
        return sentence
    few = too_few_then(log, run)
    return f"{sentence}; {few}" if few else sentence


def _measured(log: Log, run: kinds.Run, record: Record, counted: set[bytes]) -> Measured:
    body = record.body_as(kinds.Verification)
    return Measured(
        id=format_id(record.id),
        author=record.author.hex(),
        time_ms=record.time,
        stage=body.stage,
        round=body.round,
        verdict=body.verdict,
        value=body.value,
        values=list(body.values),
        parent_values=list(body.parent_values),
        baseline_values=list(body.baseline_values),
        metrics={name: float(number) for name, number in body.metrics.items()},
        allowed=allowed_difference(log, run, body) if body.stage == EVALUATE else None,
        counts=record.id in counted,
        device=body.device,
        participant=participant_of(log, record.author, record.time),
    )


DEFAULT_RECORDS = 50
# So many records are looked through at most for those that are wanted.
SEARCHED_MOST = 100_000


@in_snapshot
def log_answer(  # noqa: PLR0913 - one for each way to choose
    log: Log,
    *,
    kind: str | None = None,
    author: bytes | None = None,
    task: FoundTask | None = None,
    limit: int = DEFAULT_RECORDS,
    before: bytes | None = None,
    claims: bool = True,
    since_ms: int = 0,
    where: Condition | None = None,
    starred: frozenset[bytes] = frozenset(),
    only_starred: bool = False,
) -> LogAnswer:
    """The newest records first; ``before`` is the id of the last one of the page before.

    Without ``claims`` they are left out: every run has one, and they say nothing once it has ended. ``where`` chooses
    among the ``SEARCHED_MOST`` newest, and ``since_ms`` those of that time and later. ``only_starred`` leaves of all
    records those that are ``starred``.

    Raises:
        NotFound: there is no record ``before``.
    """
    mark = log.records.get(before) if before is not None else None
    digest = task.digest if task else None
    without = None if claims or kind == "claim" else "claim"
    depth = limit
    while True:
        if only_starred:
            records = [
                record
                for record in sorted(filter(None, map(log.records.find, starred)), key=_when, reverse=True)
                if kind in (None, record.kind)
                and author in (None, record.author)
                and digest in (None, getattr(record.body, "task", None))
            ]
        else:
            records = log.records.newest(
                kind=kind, author=author, task=digest, limit=depth, without=without, visible=True
            )
        page = [
            record
            for record in records
            if (mark is None or _when(record) < _when(mark))
            and record.time >= since_ms
            and (where is None or where(record))
        ]
        is_all = only_starred or len(records) < depth or records[-1].time < since_ms or depth >= SEARCHED_MOST
        if len(page) >= limit or is_all:
            views = [stated_view(log, record, starred) for record in page[:limit]]
            since = page[:limit][-1].time if len(page) >= limit else since_ms
            hidden = log.records.count_hidden(kind=kind, task=digest, author=author, since_ms=since, without=without)
            return LogAnswer(records=views, hidden=hidden)
        # The log reads from its newest end only: look further back until the page is full.
        depth *= 4


def _when(record: Record) -> tuple[int, bytes]:
    return record.time, record.id


@in_snapshot
def show_answer(
    log: Log, record_id: bytes, *, marks: bool = True, starred: frozenset[bytes] = frozenset()
) -> ShowAnswer:
    """One record, whole; of a run without its author's marks when there are many to show. Raises NotFound."""
    record = log.records.get(record_id)
    forked = log.devices.forked(record)
    withdrawal = log.records.withdrawal(record)
    source = _stated(log, record.body, "metric", "source")
    return ShowAnswer(
        record=stated_view(log, record, starred),
        run=run_view(log, StoredRun(record, forked)) if isinstance(record.body, kinds.Run) else None,
        verification=verification_state_view(log, record, marks=marks) if isinstance(record.body, kinds.Run) else None,
        body={} if isinstance(record.body, kinds.Run) else plain_body(record.body),
        links=[format_id(link) for link in record.links],
        measured_by=source if source in MEASURED_BY else "",
        budget_unit=_budget_unit(log, record.body),
        forked=forked,
        withdrawn=withdrawal is not None,
        withdrawn_ms=withdrawal.time if withdrawal else None,
        withdrawn_reason=getattr(withdrawal.body, "reason", "") if withdrawal else "",
        notes=notes_of(log, record) if isinstance(record.body, kinds.Run) else [],
        release=release_view(log, record.id) if log.releases.find(record.id) else None,  # None: it is withdrawn
    )


def _budget_unit(log: Log, body: object) -> str:
    """The unit of a run's budget; empty where its task is not here. Agents are trained for episodes, on any task."""
    if isinstance(body, kinds.Run) and body.mode in RUN_MODES:
        return "episodes"
    unit = _stated(log, body, "budget", "unit")
    return unit if unit in BUDGET_UNITS else ""


def _stated(log: Log, body: object, section: str, name: str) -> str:
    """A text in the definition of a run's task; empty where that is not here."""
    text = log.tasks.stated(body.task, section, name) if isinstance(body, kinds.Run) else None
    return text if isinstance(text, str) else ""


def record_view(log: Log, record: Record) -> RecordView:
    """One record in a line."""
    return RecordView(
        id=format_id(record.id),
        kind=record.kind,
        author=record.author.hex(),
        seq=record.seq,
        time_ms=record.time,
        summary=summary(record.body),
        participant=participant_of(log, record.author, record.time),
    )


def stated_view(log: Log, record: Record, starred: frozenset[bytes] = frozenset()) -> RecordView:
    """One record in a line, of a run with its state; and whether it is among the ``starred``."""
    view = msgspec.structs.replace(record_view(log, record), starred=record.id in starred)
    if not isinstance(record.body, kinds.Run):
        return view
    return msgspec.structs.replace(view, state=judgement(log, record.id).state.value)


Condition = Callable[[Record], bool]


_NUMBERS = {"value": "value", "replicate": "replicate", "seconds": "duration_ms", "cpu_seconds": "cpu_ms"}


_TEXTS = ("status", "title", "hypothesis")


_COMPARISONS = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}


_FORM = re.compile(r"\s*([a-z_]+)\s*(<=|>=|!=|<|>|=|~)\s*(.*?)\s*", re.DOTALL)


_HINT = f"such as value<1.1, status=crashed, title~warm-up; names: {', '.join((*_NUMBERS, *_TEXTS))}"


def parse_conditions(texts: Sequence[str]) -> Condition | None:
    """A function that says whether a record is a run that meets all conditions; None of no condition.

    Raises:
        UsageError: one of them has another form.
    """
    conditions = [_parse(text) for text in texts]
    if not conditions:
        return None
    return lambda record: all(condition(record) for condition in conditions)


def _parse(text: str) -> Condition:
    match = _FORM.fullmatch(text)
    name, sign, operand = match.groups() if match else ("", "", "")
    if name in _NUMBERS and sign != "~":
        return _of_number(name, sign, _number(text, operand))
    if name in _TEXTS and sign in ("=", "!=", "~"):
        return _of_text(name, sign, operand.casefold())
    raise UsageError(f"“{text[:80]}” is no condition on runs", hint=_HINT)


def _of_number(name: str, sign: str, operand: float) -> Condition:
    field, scale = _NUMBERS[name], 1000 if _NUMBERS[name].endswith("_ms") else 1

    def holds(record: Record) -> bool:
        number = getattr(record.body, field) if isinstance(record.body, kinds.Run) else None
        return number is not None and bool(_COMPARISONS[sign](number, scale * operand))

    return holds


def _of_text(name: str, sign: str, operand: str) -> Condition:
    def holds(record: Record) -> bool:
        if not isinstance(record.body, kinds.Run):
            return False
        text = getattr(record.body, name).casefold()
        return operand in text if sign == "~" else (text == operand) == (sign == "=")

    return holds


def _number(text: str, operand: str) -> float:
    try:
        return float(operand)
    except ValueError:
        raise UsageError(f"“{text[:80]}” compares with no number", hint=_HINT) from None


SUMMARY_CHARACTERS = 120


def summary(body: kinds.Body | dict[str, object]) -> str:
    """What a record says, in a line; empty for kinds that this version doesn't know."""
    return one_line(_sentence(body), SUMMARY_CHARACTERS)


def _sentence(body: kinds.Body | dict[str, object]) -> str:
    match body:
        case kinds.Run(title=title, status=status, value=value):
            end = one_line(f"{value:.6g}" if status == RunStatus.OK and value is not None else status)
            return f"{one_line(title or 'run', SUMMARY_CHARACTERS - len(end) - 2)}: {end}"
        case kinds.Task(name=name, summary=words):
            return f"{name}: {words}" if words else name
        case kinds.Claim(title=title):
            return f"trying: {title}" if title else "trying a change"
        case kinds.Note(topic=topic, text=text):
            return f"{topic}: {text}"
        case kinds.Verification(verdict=verdict, stage=stage, run=run, value=value):
            measured = "" if value is None else f", measured {value:.6g}"
            # Pairs that ran pass, whatever they found: what follows from all of them is the run's state.
            outcome = "pairs ran" if (stage, verdict) == (REPLICATE, "pass") else verdict
            return f"{stage} of {short_id(run)}: {outcome}{measured}"
        case kinds.Identity() | kinds.Attestation() | kinds.Admission() | kinds.Join():
            return _about_a_participant(body)
        case kinds.Contest(title=title, ends=ends):
            return f"{title or 'a contest'}: until {moment(ends)}"
        case kinds.Release(name=name, version=version):
            return f"{name} {version}"
        case kinds.Yank(release=release, reason=reason):
            return f"{short_id(release)}: {reason}"
        case kinds.Merge(device=device):
            return f"ends the fork of {device.hex()[:8]}"
        case kinds.Commitment(stage=stage, run=run):
            return f"{stage} of {short_id(run)}: measured; what came out follows"
        case _:
            return body.reason if isinstance(body, kinds.Withdrawal) else ""


def _about_a_participant(body: kinds.Identity | kinds.Attestation | kinds.Admission | kinds.Join) -> str:
    match body:
        case kinds.Identity(action=action, device=device, name=name):
            return f"{action} {device.hex()[:8] if device else ''} {name}"
        case kinds.Attestation(subject=subject, method=method):
            return f"{method} shown by {subject.hex()[:8]}"
        case kinds.Admission(action=action, participant=participant, reason=reason):
            return f"{action} {participant.hex()[:8]}{f': {reason}' if reason else ''}"
        case kinds.Join(participant=participant, token=token):
            return f"{participant.hex()[:8]} joined with invite {token.hex()[:8]}"
