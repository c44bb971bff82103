"""``note`` and ``notes``: what runs show and suggest, for all to read; ``ask``: what the log says to a question.

``search``: whatever has some words.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Literal

import msgspec
import typer

from autoresearch.ask import publishing, questions
from autoresearch.ask.asking import ask_answer
from autoresearch.ask.discussion import AskAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.ask.notes import note_on
from autoresearch.ask.requests import MAXIMUM_ROWS, AskRequest, NoteRequest, NotesOf, SearchKind, SearchOf
from autoresearch.errors import DaemonNotRunning, NotFound, UsageError
from autoresearch.face.columns.column import short
from autoresearch.face.columns.node import SHIPPED_COLUMNS, SearchHits, search_lists
from autoresearch.face.columns.people import NOTE_COLUMNS
from autoresearch.project.components.finding import shipped_offers
from autoresearch.record.encoding import format_id
from autoresearch.task.release import TYPES
from autoresearch.text import one_line
from autoresearch_cli import home
from autoresearch_cli.catalogue import Answered, CommandApp, Hidden, Task, complete_reference
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.rendering.answers import print_found
from autoresearch_cli.rendering.output import is_rich, paged, print_line, print_list, say, say_hidden

app = CommandApp()


@app.command(
    "note add",
    ("autoresearch note add @ 'the cosine schedule makes it'", "what the best run shows"),
    ("autoresearch note add 'try twice the width' --topic hypothesis", "an idea, with no run behind it"),
    ("autoresearch note add 'width helps' --evidence g3xk --evidence 7fq2", "what several runs show"),
    see="note list, note ask, run claims, run withdraw",
)
def note(
    first: Annotated[
        str, typer.Argument(metavar="ID", help="The run that it is about.", autocompletion=complete_reference)
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
        Literal["insight", "hypothesis"] | None, typer.Option("--topic", help="Found out (left out), or supposed.")
    ] = None,
    instead_of: Annotated[
        str, typer.Option("--instead-of", metavar="ID", help="An own note that this one replaces; TEXT alone is given.")
    ] = "",
    task: Task = "",
) -> Answered:
    """Publish a note, with the runs that are its evidence. Everybody who works on the task reads it, and models do."""
    runs, text = ([], first) if second is None else ([first], second)
    if second is None and len(first.split()) == 1:
        raise UsageError(f"“{first}” alone says nothing", hint='autoresearch note add RUN "what the run shows"')
    about = task if instead_of else home.task_meant(task, *runs, *(evidence or []))
    with open_desk(about) as desk:
        ids = [format_id(desk.record(run)) for run in (*runs, *(evidence or []))]
        named = desk.task().digest.hex() if about else ""
        request = NoteRequest(text=text, evidence=ids, topic=topic or "", task=named, instead_of=instead_of)
        note_on(desk.log, request, author=desk.me, archived=desk.archived())
    answer = home.ask(publishing.note, request)
    yield answer
    if instead_of:
        say(f"{instead_of} is withdrawn: it stays in the log, and lists leave it out")
    about = (
        f" on {', '.join(map(short, answer.note.evidence))}"
        if answer.note.evidence
        else f" on the task {answer.note.task}"
    )
    say(f"{short(answer.note.id)} is published: {answer.note.topic}{about}")
    say("→ autoresearch note list")


@app.command(
    "note list",
    ("autoresearch note list", "the newest notes on the task of this folder, or worked on last"),
    ("autoresearch note list cosine schedule", "those that fit these words best"),
    ("autoresearch note list --task moons -n 50 --json", "of one task, for a program"),
    see="note add, note ask, run claims, node records --kind note",
)
def notes(
    query: Annotated[
        list[str] | None, typer.Argument(metavar="WORDS", help="Words to search for; the best fit first.")
    ] = None,
    *,
    task: Task = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=10_000, help="How many.")] = 20,
    hidden: Hidden = False,
) -> Answered:
    """The notes on a task, newest first, or those that fit your words best: insights, hypotheses, imported work."""
    words = " ".join(query or [])
    answer = home.ask(questions.notes, NotesOf(task=home.task_meant(task), query=words, limit=limit, hidden=hidden))
    yield answer
    with paged():
        print_list(NOTE_COLUMNS, answer.notes, now_ms=home.now_ms())
    say_hidden(answer.hidden, "note")
    if answer.notes:
        say(f"notes on {answer.task}")
        say("→ autoresearch show ID, autoresearch note add RUN 'what it shows'")
    elif words:
        say(f"no note on {answer.task} has these words → autoresearch note list")
    else:
        say(f"→ there is no note on {answer.task} yet: autoresearch note add RUN 'what it shows'")


@app.command(
    "note ask",
    ("autoresearch note ask 'which batch sizes were tried?'", "values tried, with the best run of each"),
    ("autoresearch note ask 'what helped with divergence?' --no-model", "records alone, no language model"),
    ("autoresearch note ask 'does momentum help' --task moons --json", "about one task, for a program"),
    see="note list, run claims, top, show",
)
def ask(
    words: Annotated[list[str], typer.Argument(metavar="QUESTION...", help="The question, in plain words.")],
    *,
    no_model: Annotated[bool, typer.Option("--no-model", help="Ask no language model, though one is set up.")] = False,
    task: Task = "",
) -> Answered:
    """What the log says to a question: values tried of the parameters that it names, notes, runs and failures.

    Where a language model is set up (llm.model), the running daemon has it put that into sentences that cite records.
    """
    question = " ".join(words)
    with open_desk(home.task_meant(task)) as desk:
        published = desk.task()
        answer = ask_answer(desk.log, desk.blobs, published, question, now_ms=home.now_ms(), me=desk.me)
    if not no_model and home.settings().llm.model:
        answer = _in_sentences(answer, published.digest)
    yield answer
    with paged():
        print_found(answer)
    if answer.reason:
        say(f"in no model's words: {answer.reason}")
    if not (answer.facts or answer.parameters or answer.notes or answer.runs or answer.failures):
        say(f"nothing on {answer.task} has words of the question → autoresearch note list, autoresearch top")
    else:
        say("→ autoresearch show ID, autoresearch note list WORDS")


def _in_sentences(plain: AskAnswer, task: bytes) -> AskAnswer:
    """The answer of the daemon, which alone asks models."""
    with suppress(DaemonNotRunning):
        return home.client().ask(Node.ask, AskRequest(question=plain.question, task=task.hex()))
    return msgspec.structs.replace(plain, reason="the daemon, which asks the model, is not running: autoresearch up")


@app.command(
    "search",
    ("autoresearch search cosine", "whatever has this word"),
    ("autoresearch search --kind run warm up", "runs with these words in title or hypothesis"),
    ("autoresearch search --type policy q table", "components of a type with these words, the best fit first"),
    see="show, run list, note ask, install",
)
def search(
    words: Annotated[list[str] | None, typer.Argument(metavar="WORDS", help="What has all of these words.")] = None,
    *,
    kind: Annotated[SearchKind | None, typer.Option("--kind", help="Only this kind of thing.")] = None,
    of_type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help=f"Only components of a type: {', '.join(TYPES)}, or your own.")
    ] = "",
    yanked: Annotated[bool, typer.Option("--yanked", help="Yanked releases of components too.")] = False,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=MAXIMUM_ROWS, help="How many of each kind.")] = 10,
    hidden: Hidden = False,
    task: Task = "",
) -> Answered:
    """Find runs, settings, participants, notes, components and commands. Works without a daemon.

    Without words it shows the newest of each kind.
    """
    query, about = " ".join(words or []), None
    with suppress(NotFound):  # of the folder's task is no run here, but others' components are
        about = home.task_meant(task)
    question = SearchOf(query=query, kind=kind, type=of_type, yanked=yanked, limit=limit, task=about, hidden=hidden)
    answer = home.ask(questions.search, question)
    yield answer
    ships = shipped_offers(query, of_type) if kind in (None, "component") else []
    lists = [hits for hits in search_lists(answer) if hits.rows]
    if ships:
        place = next((number for number, hits in enumerate(lists) if hits.kind in ("note", "run")), len(lists))
        lists.insert(place, SearchHits("shipped", "Components that come with this program", SHIPPED_COLUMNS, ships))
    with paged():
        for number, hits in enumerate(lists):
            if is_rich():
                print_line(one_line(hits.title), style="bold cyan", gap=number > 0)
            print_list(hits.columns, hits.rows, now_ms=home.now_ms())
    say_hidden(answer.hidden, "run")
    if not lists:
        say(f"nothing has the words “{query}”" if query else "nothing is here yet")
        say("→ autoresearch --help, autoresearch install TYPE NAME, autoresearch publish component DIR")
    else:
        say("→ autoresearch show ID, autoresearch run list --has SETTING, autoresearch install TYPE NAME")
