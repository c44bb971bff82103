"""``evidence``: evidence against authors of records, and whether it holds."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from autoresearch.answers import evidence_answer, evidence_list_answer
from autoresearch.api import Event, EvidenceAnswer, OneEvidence, operations
from autoresearch.errors import AutoresearchError, DaemonNotRunning, UsageError
from autoresearch.words import EvidenceKind
from autoresearch_cli import here
from autoresearch_cli.completing import complete_reference
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.evidence import print_evidence, print_evidence_list
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.progress import choose_display
from autoresearch_cli.watching import Watch, text_in

# The evidence was checked, and it is not so; 0: it is so, or there is none. Every other one: it was not checked.
DOES_NOT_HOLD = 8
EVIDENCE = "evidence"

app = command_app()
apps = {"evidence": app}


@app.command(
    epilog=examples(
        ("autoresearch evidence", "all evidence here, the newest first"),
        ("autoresearch evidence g3xk", "check one record here, step by step"),
        ("autoresearch evidence --participant 3fa9", "the evidence against one participant"),
        see="credit, show, verify",
    )
)
def evidence(
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
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
    with open_notebook() as notebook:
        answer = evidence_answer(notebook.log, notebook.blobs, notebook.resolve(reference), kind)
    if answer.holds is None:
        answer = _measured(answer, json=json)
    if json:
        print_json(answer)
    else:
        print_evidence(answer, now_ms=here.now_ms())
    if not (answer.holds or answer.nothing_found):
        raise typer.Exit(DOES_NOT_HOLD)


def _list(participant: str | None, kind: EvidenceKind | None, *, json: bool) -> None:
    with open_notebook() as notebook:
        answer = evidence_list_answer(notebook.log, participant, kind=kind, author=notebook.me)
    if json:
        print_json(answer)
        return
    print_evidence_list(answer, now_ms=here.now_ms())
    say(
        "→ autoresearch evidence ID checks one"
        if answer.evidence
        else "there is no evidence of misbehaviour in this log"
    )


def _measured(answer: EvidenceAnswer, *, json: bool) -> EvidenceAnswer:
    """Have the daemon repeat a verifier's measurement, and wait for the result."""
    say(f"{answer.reason}: this takes as long as it took the verifier")
    client = here.client()
    with client.events() as events, choose_display(quiet=json) as display:
        accepted = client.ask(operations.CHECK_EVIDENCE, OneEvidence(id=answer.id, kind=EvidenceKind.VALUE))
        watch = Watch(display, only=accepted.assignment)
        for event in events:
            if event.kind == EVIDENCE and text_in(event, "assignment") == accepted.assignment:
                return _answer_in(event)
            if watch.take(event):
                raise AutoresearchError(text_in(event, "reason") or event.text, hint="autoresearch logs")
    raise DaemonNotRunning("the daemon ended meanwhile", hint="autoresearch up")


def _answer_in(event: Event) -> EvidenceAnswer:
    return msgspec.convert(event.data.get(EVIDENCE), EvidenceAnswer)
