"""``note`` and ``notes``: what runs show and suggest, for all to read."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Literal

import typer

from autoresearch.answers import note_on, note_view, notes_answer
from autoresearch.api import NoteAnswer, NoteRequest, operations
from autoresearch.errors import DaemonNotRunning, UsageError
from autoresearch.notebook import Notebook
from autoresearch.records import format_id
from autoresearch_cli import here
from autoresearch_cli.completing import complete_reference
from autoresearch_cli.options import Json, Task, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.notes import print_notes
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.paging import paged

note_app, notes_app = command_app(), command_app(no_args_is_help=False)
apps = {"note": note_app, "notes": notes_app}


@note_app.command(
    epilog=examples(
        ("autoresearch note @ 'the cosine schedule makes it'", "what the best run shows"),
        ("autoresearch note 'try twice the width' --topic hypothesis", "an idea, with no run behind it"),
        ("autoresearch note 'width helps' --evidence g3xk --evidence 7fq2", "what several runs show"),
        see="notes, ask, claims, withdraw",
    )
)
def note(
    first: Annotated[
        str, typer.Argument(metavar="[ID]", help="The run that it is about.", autocompletion=complete_reference)
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What you found out or suppose; all can read it.")
    ] = None,
    *,
    evidence: Annotated[
        list[str] | None,
        typer.Option("--evidence", metavar="ID", help="A further run that shows it; may be given again."),
    ] = None,
    topic: Annotated[
        Literal["insight", "hypothesis"], typer.Option("--topic", help="Found out, or supposed.")
    ] = "insight",
    task: Task = "",
    json: Json = False,
) -> None:
    """Publish a note, with the runs that are its evidence. Everybody who works on the task reads it, and models do."""
    runs, text = ([], first) if second is None else ([first], second)
    if second is None and len(first.split()) == 1:
        raise UsageError(f"“{first}” alone says nothing", hint='autoresearch note RUN "what the run shows"')
    with open_notebook(task) as notebook:
        known = [format_id(notebook.resolve(run)) for run in (*runs, *(evidence or []))]
        named = notebook.task().digest.hex() if task else ""
        request = NoteRequest(text=text, evidence=known, topic=topic, task=named)
        note_on(notebook.log, request, author=notebook.me, archived=notebook.archived)
    answer = _publish(request)
    if json:
        print_json(answer)
        return
    about = f" on {', '.join(map(short, known))}" if known else f" on the task {answer.note.task}"
    say(f"{short(answer.note.id)} is published: {topic}{about}")
    say("→ autoresearch notes")


def _publish(request: NoteRequest) -> NoteAnswer:
    """Through the daemon where one runs."""
    with suppress(DaemonNotRunning):
        return here.client().ask(operations.NOTE, request)
    with Notebook(here.paths()) as notebook:
        notebook.publish_identity(here.now_ms())
        body, evidence = note_on(notebook.log, request, author=notebook.author)
        record = notebook.publish_note(body, here.now_ms(), links=evidence)
        return NoteAnswer(note=note_view(notebook.log, record))


@notes_app.command(
    epilog=examples(
        ("autoresearch notes", "the newest notes on the task worked on last"),
        ("autoresearch notes cosine schedule", "those that fit these words best"),
        ("autoresearch notes --task grammar -n 50 --json", "of one task, for a program"),
        see="note, ask, claims, log --kind note",
    )
)
def notes(
    query: Annotated[
        list[str] | None, typer.Argument(metavar="[WORDS]...", help="Words to search for; the best fit first.")
    ] = None,
    *,
    task: Task = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="How many.")] = 20,
    json: Json = False,
) -> None:
    """The notes on a task, newest first, or those that fit your words best: insights, hypotheses, imported work."""
    words = " ".join(query or [])
    with open_notebook(task) as notebook:
        answer = notes_answer(notebook.log, notebook.task(), query=words, limit=limit, me=notebook.me)
    if json:
        print_json(answer)
        return
    with paged():
        print_notes(answer, now_ms=here.now_ms())
    if answer.notes:
        say(f"notes on {answer.task}")
        say("→ autoresearch show ID, autoresearch note RUN 'what it shows'")
    elif words:
        say(f"no note on {answer.task} has these words → autoresearch notes")
    else:
        say(f"→ there is no note on {answer.task} yet: autoresearch note RUN 'what it shows'")
