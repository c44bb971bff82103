"""``ask``: what the log says to a question."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import msgspec
import typer

from autoresearch.answers import ask_answer
from autoresearch.api import AskAnswer, AskRequest, operations
from autoresearch.errors import DaemonNotRunning
from autoresearch_cli import here
from autoresearch_cli.options import Json, Task, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.asking import print_found
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.paging import paged

app = command_app()
apps = {"ask": app}


@app.command(
    epilog=examples(
        ("autoresearch ask 'which batch sizes were tried?'", "values tried, with the best run of each"),
        ("autoresearch ask 'what helped with divergence?' --no-model", "records alone, no language model"),
        ("autoresearch ask 'does dropout help' --task grammar --json", "about one task, for a program"),
        see="notes, claims, top, show",
    )
)
def ask(
    words: Annotated[list[str], typer.Argument(metavar="QUESTION...", help="The question, in plain words.")],
    *,
    no_model: Annotated[bool, typer.Option("--no-model", help="Ask no language model, though one is set up.")] = False,
    task: Task = "",
    json: Json = False,
) -> None:
    """What the log says to a question: values tried of the parameters that it names, notes, runs and failures.

    Where a language model is set up (llm.model), the running daemon has it put that into sentences that cite records.
    """
    question = " ".join(words)
    with open_notebook(task) as notebook:
        found = notebook.task()
        answer = ask_answer(notebook.log, notebook.blobs, found, question, me=notebook.me)
    if not no_model and here.settings().llm.model:
        answer = _in_sentences(answer, found.digest)
    if json:
        print_json(answer)
        return
    with paged():
        print_found(answer)
    if answer.reason:
        say(f"in no model's words: {answer.reason}")
    if not (answer.parameters or answer.notes or answer.runs or answer.failures):
        say(f"nothing on {answer.task} has words of the question → autoresearch notes, autoresearch top")
    else:
        say("→ autoresearch show ID, autoresearch notes WORDS")


def _in_sentences(plain: AskAnswer, task: bytes) -> AskAnswer:
    """The answer of the daemon, which alone asks models."""
    with suppress(DaemonNotRunning):
        return here.client().ask(operations.ASK, AskRequest(question=plain.question, task=task.hex()))
    return msgspec.structs.replace(plain, reason="the daemon, which asks the model, is not running: autoresearch up")
