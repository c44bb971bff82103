"""``note`` and ``notes``: what runs show and suggest, for all to read."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Literal

import typer

from autoresearch.answers import note_on, note_view, notes_answer
from autoresearch.api import NoteAnswer, NoteRequest, operations
from autoresearch.errors import DaemonNotRunning
from autoresearch.notebook import Notebook
from autoresearch.records import format_id
from autoresearch_cli import here
from autoresearch_cli.options import Json, Reference, Task, command_app, examples
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
        ("autoresearch note g3xk 'try twice the width' --topic hypothesis", "what a run suggests"),
        ("autoresearch withdraw NOTE", "withdraw a note by its id"),
        see="notes, star, log --kind note",
    )
)
def note(
    reference: Reference,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the run shows or suggests; all can read it.")],
    *,
    topic: Annotated[
        Literal["insight", "hypothesis"], typer.Option("--topic", help="Found out, or supposed.")
    ] = "insight",
    task: Task = "",
    json: Json = False,
) -> None:
    """Publish a note with a run as its evidence. Everybody who works on the task can read it, and models do."""
    with open_notebook(task) as notebook:
        run = format_id(notebook.resolve(reference))
        request = NoteRequest(run=run, text=text, topic=topic)
        note_on(notebook.log, request, author=notebook.me)
    answer = _publish(request)
    if json:
        print_json(answer)
        return
    say(f"{short(answer.note.id)} is published: {topic} on {short(run)}")
    say("→ autoresearch notes")


def _publish(request: NoteRequest) -> NoteAnswer:
    """Through the daemon where one runs."""
    with suppress(DaemonNotRunning):
        return here.client().ask(operations.NOTE, request)
    with Notebook(here.paths()) as notebook:
        notebook.publish_identity(here.now_ms())
        body, run = note_on(notebook.log, request, author=notebook.author)
        record = notebook.publish_note(body, here.now_ms(), links=(run,))
        return NoteAnswer(note=note_view(notebook.log, record))


@notes_app.command(
    epilog=examples(
        ("autoresearch notes", "the newest notes on the task worked on last"),
        ("autoresearch notes cosine schedule", "those with both words"),
        ("autoresearch notes --task grammar -n 50 --json", "of one task, for a program"),
        see="note, log --kind note, show",
    )
)
def notes(
    query: Annotated[
        list[str] | None, typer.Argument(metavar="[WORDS]...", help="Only notes with all of these words.")
    ] = None,
    *,
    task: Task = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="How many.")] = 20,
    json: Json = False,
) -> None:
    """The notes on a task, newest first: insights, hypotheses, and past work that was imported."""
    words = " ".join(query or [])
    with open_notebook(task) as notebook:
        answer = notes_answer(notebook.log, notebook.task(), query=words, limit=limit)
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
