"""Every question to the log, as one function. The daemon answers it over HTTP, and a command without a daemon itself.

What reads the log is loaded by the function: a command that has its answer from the daemon does without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from autoresearch.ask import requests
from autoresearch.ask.challenges.answers import ChallengeAnswer
from autoresearch.ask.discussion import AttacksAnswer, ClaimsAnswer, NotesAnswer
from autoresearch.ask.operation import PLAIN, Text, operation
from autoresearch.ask.people.participants import EvidenceAnswer, EvidenceListAnswer, VerificationsAnswer
from autoresearch.ask.records import (
    HiddenAnswer,
    HiddenListAnswer,
    LogAnswer,
    SearchAnswer,
    ShowAnswer,
    StarAnswer,
)
from autoresearch.ask.registry.components import ReleaseAnswer
from autoresearch.ask.runs import answers
from autoresearch.errors import NotFound, UsageError
from autoresearch.log.standing.answers import CreditAnswer
from autoresearch.words import with_article

if TYPE_CHECKING:
    from autoresearch.ask.desk import Desk

A = TypeVar("A", ShowAnswer, answers.BestAnswer, answers.TopAnswer, answers.LineageAnswer, LogAnswer)
KEY_BYTES = 32
# Each of thousands of submissions has a row.
CHALLENGE_SECONDS = 60.0


@operation("GET /v1/best")
def best(desk: Desk, request: requests.OfTask) -> answers.BestAnswer:
    """The best confirmed run of a task, and beside it the best provisional and the best reported one."""
    from autoresearch.ask.runs.boards import best_answer

    archived = desk.archived()
    with desk.log.reader.snapshot():
        task = desk.task(request.task)
        return _with_headlines(desk, best_answer(desk.log, task, author=desk.me, archived=archived))


@operation("GET /v1/tasks")
def tasks(desk: Desk, request: requests.TasksOf) -> answers.TasksAnswer:
    """The tasks of the log, those with the most runs first."""
    from autoresearch.ask.runs.boards import tasks_answer

    return tasks_answer(desk.log, author=desk.me, archived=desk.archived(), all_tasks=request.archived)


@operation("GET /v1/top")
def top(desk: Desk, request: requests.TopOf) -> answers.TopAnswer:
    """The leaderboard of a task."""
    from autoresearch.ask.runs.boards import top_answer

    task, archived = desk.task(request.task), desk.archived()
    answer = top_answer(desk.log, task, limit=request.limit, budget=request.budget, author=desk.me, archived=archived)
    return _with_headlines(desk, answer)


@operation("GET /v1/challenge", seconds=CHALLENGE_SECONDS)
def challenge(desk: Desk, request: requests.ChallengeOf) -> ChallengeAnswer:
    """The contest of this network: its end, its board, its participants; 404 where it holds none."""
    from autoresearch.ask.challenges.board import challenge_answer

    return challenge_answer(desk.log, desk.blobs, now_ms=desk.now_ms(), me=desk.me, every=request.every)


@operation("GET /v1/credit")
def credit(desk: Desk, request: requests.OfTaskAndParticipant) -> CreditAnswer:
    """What participants have done that others can count; without `participant` all, without `task` on all tasks."""
    from autoresearch.ask.people.evidence import credit_answer

    task = desk.task(request.task) if request.task else None
    return credit_answer(desk.log, request.participant, author=desk.me, task=task)


@operation("GET /v1/evidence")
def evidence_list(desk: Desk, request: requests.EvidenceOf) -> EvidenceListAnswer:
    """Signed records that prove misbehaviour, the newest first; without `participant` of everybody."""
    from autoresearch.ask.people.evidence import evidence_list_answer

    return evidence_list_answer(desk.log, request.participant, kind=request.kind, author=desk.me)


@operation("GET /v1/evidence/{id}")
def evidence(desk: Desk, request: requests.OneEvidence) -> EvidenceAnswer:
    """One piece of evidence, checked step by step; `holds` is null where a value has to be measured to tell."""
    from autoresearch.ask.people.evidence import evidence_answer

    return evidence_answer(desk.log, desk.blobs, desk.record(request.id, request.task), request.kind)


@operation("GET /v1/records")
def records(desk: Desk, request: requests.RecordsOf) -> LogAnswer:
    """Records, newest first; `before` asks for the next page."""
    from autoresearch.ask.show import log_answer, parse_conditions
    from autoresearch.record.kinds import KINDS

    if request.kind is not None and request.kind not in KINDS:
        raise UsageError(f"there is no kind of record “{request.kind}”", hint=f"kinds: {', '.join(KINDS)}")
    answer = log_answer(
        desk.log,
        kind=request.kind,
        author=_author(desk, request.author),
        task=desk.task(request.task) if request.task else None,
        limit=request.limit,
        before=desk.log.records.resolve(request.before) if request.before else None,
        claims=request.claims,
        since_ms=request.since_ms,
        where=parse_conditions(request.where),
        starred=desk.starred(),
        only_starred=request.starred,
    )
    return _with_headlines(desk, answer)


@operation("GET /v1/records/{id}")
def record(desk: Desk, request: requests.OneRecord) -> ShowAnswer:
    """One record of any kind, whole."""
    from autoresearch.ask.people.hiding import hidden_view
    from autoresearch.ask.show import show_answer

    identified = desk.record(request.id, request.task)
    answer = show_answer(desk.log, identified, starred=desk.starred())
    hidden = [hidden_view(desk.log, row) for row in desk.log.hidden.reasons(identified)]
    return _with_headlines(desk, msgspec.structs.replace(answer, hidden_by=hidden))


@operation("GET /v1/runs/{id}")
def run(desk: Desk, request: requests.OneRecord) -> ShowAnswer:
    """One run, whole."""
    answer = record(desk, request)
    if answer.run is None:
        raise UsageError(
            f"{answer.record.id} is {with_article(answer.record.kind)}, not a run.", hint="GET /v1/records/{id}"
        )
    return answer


@operation("GET /v1/runs")
def runs(desk: Desk, request: requests.RunsOf) -> answers.RunsAnswer:
    """The runs of a task that a filter finds, page by page, each with its change, its state and what led to it."""
    from autoresearch.ask.runs.rows import runs_answer

    return runs_answer(desk.log, desk.blobs, desk.task(request.task), request, me=desk.me, starred=desk.starred())


@operation("GET /v1/participants/{participant}/runs")
def participant_runs(desk: Desk, request: requests.RunsOfParticipant) -> answers.ParticipantRunsAnswer:
    """The runs of a participant on all tasks: the newest, and the best of each."""
    from autoresearch.ask.runs.rows import participant_runs_answer

    return participant_runs_answer(desk.log, desk.blobs, request, me=desk.me, starred=desk.starred())


@operation("GET /v1/progress")
def progress(desk: Desk, request: requests.ProgressOf) -> answers.ProgressAnswer:
    """The runs of a task as marks of a chart; where they are too many, those that led and a sample of the others."""
    from autoresearch.ask.runs.progress import progress_answer

    return progress_answer(desk.log, desk.blobs, desk.task(request.task), request, me=desk.me)


@operation("GET /v1/groups")
def groups(desk: Desk, request: requests.GroupsOf) -> answers.GroupsAnswer:
    """The runs of a task that a filter finds in groups by one setting or two: how many, the best, median and spread."""
    from autoresearch.ask.runs.groups import groups_answer

    return groups_answer(desk.log, desk.task(request.task), request, me=desk.me)


@operation("GET /v1/columns")
def columns(desk: Desk, request: requests.ColumnsOf) -> answers.ColumnsAnswer:
    """The runs of a task as columns, the newest 200,000: ids, marks, values, parents, and the settings asked for."""
    from autoresearch.ask.runs.progress import columns_answer

    return columns_answer(desk.log, desk.task(request.task), request, me=desk.me)


@operation("GET /v1/runs/{id}/context")
def run_context(desk: Desk, request: requests.OneRecord) -> answers.RunContextAnswer:
    """What stands around a run: its row, its parent's, its children, runs of the same program."""
    from autoresearch.ask.runs.rows import run_context_answer

    identified = desk.record(request.id, request.task)
    return run_context_answer(desk.log, desk.blobs, identified, me=desk.me, starred=desk.starred())


@operation("GET /v1/runs/{id}/path")
def path(desk: Desk, request: requests.PathOf) -> answers.PathAnswer:
    """The way from the baseline to a run, with the branches beside it; of a long one the steps that changed most."""
    from autoresearch.ask.runs.rows import path_answer

    identified = desk.record(request.id, request.task)
    return path_answer(desk.log, desk.blobs, identified, request, me=desk.me, starred=desk.starred())


@operation("GET /v1/runners")
def runners(desk: Desk, request: requests.OfTask) -> answers.RunnersAnswer:
    """Who has runs on a task, and on which hardware."""
    from autoresearch.ask.runs.rows import runners_answer

    return runners_answer(desk.log, desk.task(request.task))


@operation("GET /v1/runs/{id}/source", media=PLAIN)
def source(desk: Desk, request: requests.OneRecord) -> Text:
    """The program of a run as one text; fetched from other nodes when it is not here."""
    from autoresearch.ask.runs.diffs import run_source

    return Text(run_source(desk.log, desk.blobs, desk.record(request.id, request.task)))


@operation("GET /v1/runs/{id}/log", media=PLAIN)
def training_log(desk: Desk, request: requests.OneRecord) -> Text:
    """What a run printed."""
    from autoresearch.ask.runs.diffs import run_log

    return Text(run_log(desk.log, desk.blobs, desk.record(request.id, request.task)))


@operation("GET /v1/runs/{id}/lineage")
def lineage(desk: Desk, request: requests.OneRecord) -> answers.LineageAnswer:
    """The steps from the baseline to a run."""
    from autoresearch.ask.runs.diffs import lineage_answer

    return _with_headlines(desk, lineage_answer(desk.log, desk.record(request.id, request.task)))


@operation("GET /v1/diff")
def diff(desk: Desk, request: requests.Difference) -> answers.DiffAnswer:
    """What changed between two runs; without `old` from the newer one's parent."""
    from autoresearch.ask.runs.diffs import diff_answer, parent_of

    new = desk.record(request.new, request.task)
    old = desk.record(request.old, request.task) if request.old else parent_of(desk.log, new)
    return diff_answer(desk.log, desk.blobs, old, new)


@operation("GET /v1/effects")
def effects(desk: Desk, request: requests.OfTask) -> answers.EffectsAnswer:
    """What each setting of a task did to the metric, in pairs of a run and its parent; the surest improvement first."""
    from autoresearch.ask.runs.diffs import effects_answer

    return effects_answer(desk.log, desk.task(request.task), me=desk.me, blobs=desk.blobs)


@operation("GET /v1/notes")
def notes(desk: Desk, request: requests.NotesOf) -> NotesAnswer:
    """The notes on a task: the newest, or those that fit words best."""
    from autoresearch.ask.notes import notes_answer

    task = desk.task(request.task)
    return notes_answer(desk.log, task, query=request.query, topic=request.topic, limit=request.limit, me=desk.me)


@operation("GET /v1/attacks")
def attacks(desk: Desk, request: requests.OfTask) -> AttacksAnswer:
    """What participants found when they attacked a task: the newest report of each, and what they come to."""
    from autoresearch.ask.attacks import attacks_answer

    return attacks_answer(desk.log, desk.task(request.task))


@operation("GET /v1/since")
def since(desk: Desk, request: requests.SinceOf) -> answers.SinceAnswer:
    """What happened on a task from a time on: runs, people, verdicts, the best value, and what became of hypotheses."""
    from autoresearch.ask.runs.since import gains, since_answer

    now_ms = desk.now_ms()
    task = desk.task(request.task)
    answer = since_answer(desk.log, task, since_ms=request.since_ms, to_ms=request.to_ms, now_ms=now_ms, me=desk.me)
    return msgspec.structs.replace(answer, gains=gains(desk.log, desk.blobs, task, answer, me=desk.me))


@operation("GET /v1/timeline")
def timeline(desk: Desk, request: requests.TimelineOf) -> answers.TimelineAnswer:
    """How many runs each device ended on a task in equal parts of time, how many failed, and what it verified."""
    from autoresearch.ask.runs.since import timeline_answer

    return timeline_answer(desk.log, desk.task(request.task), last_ms=request.last_ms)


@operation("GET /v1/claims")
def claims(desk: Desk, request: requests.OfTask) -> ClaimsAnswer:
    """What is being tried on a task now, by whom, until when."""
    from autoresearch.ask.people.claims import claims_answer

    return claims_answer(desk.log, desk.task(request.task), now_ms=desk.now_ms(), me=desk.me)


@operation("GET /v1/verifications")
def verifications(desk: Desk, request: requests.OfTask) -> VerificationsAnswer:
    """The runs of a task that wait for verifiers, what this node has to do with each, and the newest verifications."""
    from autoresearch.ask.people.verification import verifications_answer

    task = desk.task(request.task)
    return verifications_answer(desk.log, task, device=desk.me, seed=desk.seed, now_ms=desk.now_ms())


@operation("GET /v1/search")
def search(desk: Desk, request: requests.SearchOf) -> SearchAnswer:
    """Runs, settings and notes of a task, participants, components and commands that have all of some words."""
    from autoresearch.ask.search import search_answer

    try:
        task = desk.task(request.task)
    except NotFound:
        if request.task:
            raise
        task = None  # no task is here, or all are archived
    return search_answer(desk.log, desk.blobs, request, task=task, me=desk.me, starred=desk.starred())


@operation("GET /v1/releases/{id}")
def release(desk: Desk, request: requests.OneRecord) -> ReleaseAnswer:
    """One release of a component, whole."""
    from autoresearch.ask.registry.releases import release_answer

    return release_answer(desk.log, desk.record(request.id, request.task), me=desk.me)


@operation("GET /v1/hidden")
def hidden(desk: Desk, request: requests.HiddenOf) -> HiddenAnswer:
    """What is hidden on this machine, the newest first."""
    from autoresearch.ask.people.hiding import hidden_answer

    return hidden_answer(desk.log, request)


@operation("GET /v1/participants/{participant}/hidden")
def hidden_list(desk: Desk, request: requests.HiddenListOf) -> HiddenListAnswer:
    """The newest list of what a participant hides, as hiding it here would take it over."""
    from autoresearch.ask.people.hiding import hidden_list_answer

    return hidden_list_answer(desk.log, request.participant, me=desk.me, limit=request.limit)


@operation("POST /v1/stars")
def star(desk: Desk, request: requests.StarRequest) -> StarAnswer:
    """Star a record on this machine, or with `starred` false no longer."""
    from autoresearch.log.local import Choice, choose
    from autoresearch.record.encoding import format_id

    starred = desk.log.records.get(desk.record(request.id)).id
    changed = choose(desk.choices, Choice.STARRED, starred, chosen=request.starred)
    return StarAnswer(id=format_id(starred), starred=request.starred, changed=changed)


def _with_headlines(desk: Desk, answer: A) -> A:
    from autoresearch.ask.runs.headlines import with_headlines

    return with_headlines(desk.log, desk.blobs, answer, me=desk.me)


def _author(desk: Desk, text: str | None) -> bytes | None:
    if text is None or text == "me":
        return desk.me if text else None
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise UsageError("an author is a key of 64 hexadecimal digits, or me", hint="autoresearch network credit")
    return key
