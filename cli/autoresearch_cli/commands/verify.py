"""``verify``: measure another participant's run on this machine, and which runs wait for verifiers.

``evidence``: evidence against authors of records, and whether it holds.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from autoresearch.ask import questions
from autoresearch.ask.desk import Desk
from autoresearch.ask.node import Event
from autoresearch.ask.node_acts import Node
from autoresearch.ask.people.participants import EvidenceAnswer
from autoresearch.ask.records import Measured, ShowAnswer
from autoresearch.ask.requests import EvidenceOf, OfTask, OneEvidence, OneRecord, VerifyRequest
from autoresearch.errors import AutoresearchError, DaemonNotRunning, UsageError
from autoresearch.face.columns.column import short
from autoresearch.face.columns.people import EVIDENCE_COLUMNS
from autoresearch.face.columns.runs import AWAITED_COLUMNS
from autoresearch.log.standing.answers import ParticipantView
from autoresearch.log.standing.context import participant_of
from autoresearch.propose.mind.recall import text_of
from autoresearch.record.encoding import format_id, parse_id
from autoresearch.record.kinds import Task as TaskBody
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.words import EvidenceKind, VerifierPart
from autoresearch_cli import home
from autoresearch_cli.acts.packages import ask_for_packages
from autoresearch_cli.acts.task_folders import cached_folder
from autoresearch_cli.catalogue import AllowPackages, CommandApp, Json, complete_reference
from autoresearch_cli.catalogue import Task as TaskOption
from autoresearch_cli.event_display import EventMonitor, choose_display, text_in
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.rendering.credit import print_evidence
from autoresearch_cli.rendering.output import paged, print_json, print_list, say
from autoresearch_cli.rendering.records import print_verifications

COMMITTED = "committed"
# What an event tells of a measurement.
MEASURED = ("id", "stage", "round", "verdict", "value", "values", "parent_values", "baseline_values", "metrics")
app = CommandApp()


@app.command(
    "verify",
    ("autoresearch verify @", "measure the best run here"),
    ("autoresearch verify g3xk --json | jq .run.state", "what another run is now"),
    ("autoresearch verify --list", "which runs wait for verifiers"),
    see="show, top, work --only verify",
)
def verify(
    reference: Annotated[
        str,
        typer.Argument(metavar="ID", help="An id or its beginning, @ for the best.", autocompletion=complete_reference),
    ] = "",
    *,
    waiting: Annotated[bool, typer.Option("--list", help="Show which runs wait for verifiers; measure none.")] = False,
    task: TaskOption = "",
    allow_packages: AllowPackages = False,
    json: Json = False,
) -> None:
    """Measure another participant's run here and publish the result. Evaluates its model, or repeats the run."""
    if waiting == bool(reference):
        raise UsageError("name a run, or give --list", hint="autoresearch verify --list, autoresearch verify ID")
    if waiting:
        _list_waiting(task, json=json)
        return
    with open_desk(home.task_meant(task, reference)) as desk:
        run = format_id(desk.record(reference))
        unusual, program = _own_packages(desk, run), text_of(desk.log, desk.blobs, parse_id(run))
    if unusual is not None:
        ask_for_packages(unusual, [program or ""], allowed=allow_packages)
    event = _wait_for(run, json=json)
    with open_desk() as desk:
        answer, me = questions.record(desk, OneRecord(id=run)), desk.me
        own = (
            _unrevealed(event, me, participant_of(desk.log, me, event.time_ms))
            if event.kind == COMMITTED and me
            else None
        )
    if json:
        print_json(answer if own is None else _with(answer, own))
    else:
        _report(answer, event, own)
    if text_in(event, "verdict") != "pass":
        raise typer.Exit(1)


def _list_waiting(task: str, *, json: bool) -> None:
    """The runs that wait for verifiers, and what this node has to do with each."""
    answer = home.ask(questions.verifications, OfTask(task=home.task_meant(task)))
    if json:
        print_json(answer)
        return
    with paged():
        print_list(AWAITED_COLUMNS, answer.waiting, now_ms=home.now_ms())
    if not answer.waiting:
        say(f"no run of {answer.task} waits for a verifier")
    if answer.note:
        say(answer.note)
    if any(each.part != VerifierPart.OWN for each in answer.waiting):
        say("→ autoresearch verify ID, autoresearch work --only verify")


def _own_packages(desk: Desk, run: str) -> Task | None:
    """The task of a run, where it or its programs may have Python packages of their own."""
    view = questions.record(desk, OneRecord(id=run)).run
    row = desk.log.tasks.find(bytes.fromhex(view.run.task)) if view else None
    body = desk.log.records.get(row.id).body if row else None
    if row is None or not isinstance(body, TaskBody) or not {"python", "program"} & body.definition.keys():
        return None
    return load_task(cached_folder(desk, row.digest))


def _wait_for(run: str, *, json: bool) -> Event:
    """Have the daemon do it and wait for the end."""
    client = home.client()
    with client.events() as events, choose_display(quiet=json) as display:
        accepted = client.ask(Node.verify, VerifyRequest(run=run))
        if accepted.note:
            say(accepted.note)
        monitor = EventMonitor(display, only=accepted.assignment)
        for event in events:
            if event.kind in (COMMITTED, "verified") and text_in(event, "assignment") == accepted.assignment:
                return event
            if monitor.take(event):
                raise AutoresearchError(text_in(event, "reason") or event.text, hint="autoresearch node logs")
    raise DaemonNotRunning("the daemon ended meanwhile", hint="autoresearch up")


def _unrevealed(event: Event, me: bytes, whose: ParticipantView) -> Measured:
    """What was measured here and is not revealed yet."""
    measured = {name: event.data[name] for name in MEASURED if name in event.data}
    return msgspec.convert(
        measured
        | {
            "author": me.hex(),
            "participant": whose,
            "time_ms": event.time_ms,
            "counts": True,
            "device": "",
            "published": False,
        },
        Measured,
    )


def _with(answer: ShowAnswer, own: Measured) -> ShowAnswer:
    if answer.verification is None:
        return answer
    verification = msgspec.structs.replace(answer.verification, measured=[*answer.verification.measured, own])
    return msgspec.structs.replace(answer, verification=verification)


def _report(answer: ShowAnswer, event: Event, own: Measured | None) -> None:
    print_verifications(answer if own is None else _with(answer, own))
    if reason := text_in(event, "reason"):
        say(reason)
    say(f"the run is {text_in(event, 'state')} now")
    run = short(answer.record.id)
    say(
        f"→ autoresearch status, then autoresearch show {run}"
        if own
        else f"→ autoresearch show {run}, autoresearch top"
    )


# The evidence was checked, and it is not so; 0: it is so, or there is none. Every other one: it was not checked.
DOES_NOT_HOLD = 8
EVIDENCE = "evidence"


@app.command(
    "run evidence",
    ("autoresearch run evidence", "all evidence here, the newest first"),
    ("autoresearch run evidence g3xk", "check one record here, step by step"),
    ("autoresearch run evidence --participant 3fa9", "the evidence against one participant"),
    see="network credit, show, verify",
)
def evidence(
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="A record to check: one of a fork, a run, a verification. Left out: all evidence.",
            autocompletion=complete_reference,
        ),
    ] = None,
    *,
    participant: Annotated[
        str | None,
        typer.Option(
            "--participant", metavar="PARTICIPANT", help="Only against this one: me, the beginning of a key, or a name."
        ),
    ] = None,
    kind: Annotated[EvidenceKind | None, typer.Option("--kind", help="Only this kind of evidence.")] = None,
    json: Json = False,
) -> None:
    """Evidence: signed records that prove misbehaviour. With an ID it is checked here; exits with 8 if it fails."""
    if reference is not None and participant is not None:
        raise UsageError("an ID and --participant can't be combined", hint="ask for one record, or for one participant")
    # An empty one is a variable that a script did not set: nothing was checked, so it must not end as if it held.
    if reference is None:
        _list(participant, kind, json=json)
        return
    answer = home.ask(questions.evidence, OneEvidence(id=reference, kind=kind))
    if answer.holds is None:
        answer = _measured(answer, json=json)
    if json:
        print_json(answer)
    else:
        print_evidence(answer, now_ms=home.now_ms())
    if not (answer.holds or answer.nothing_found):
        raise typer.Exit(DOES_NOT_HOLD)


def _list(participant: str | None, kind: EvidenceKind | None, *, json: bool) -> None:
    answer = home.ask(questions.evidence_list, EvidenceOf(participant=participant, kind=kind))
    if json:
        print_json(answer)
        return
    print_list(EVIDENCE_COLUMNS, answer.evidence, now_ms=home.now_ms())
    say(
        "→ autoresearch run evidence ID checks one"
        if answer.evidence
        else "there is no evidence of misbehaviour in this log"
    )


def _measured(answer: EvidenceAnswer, *, json: bool) -> EvidenceAnswer:
    """Have the daemon repeat a verifier's measurement, and wait for the result."""
    say(f"{answer.reason}: this takes as long as it took the verifier")
    client = home.client()
    with client.events() as events, choose_display(quiet=json) as display:
        accepted = client.ask(Node.check_evidence, OneEvidence(id=answer.id, kind=EvidenceKind.VALUE))
        monitor = EventMonitor(display, only=accepted.assignment)
        for event in events:
            if event.kind == EVIDENCE and text_in(event, "assignment") == accepted.assignment:
                return msgspec.convert(event.data.get(EVIDENCE), EvidenceAnswer)
            if monitor.take(event):
                raise AutoresearchError(text_in(event, "reason") or event.text, hint="autoresearch node logs")
    raise DaemonNotRunning("the daemon ended meanwhile", hint="autoresearch up")
