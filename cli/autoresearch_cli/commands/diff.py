"""``diff``: what a run changed."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.answers import diff_answer
from autoresearch.errors import NotFound, UsageError
from autoresearch.records import Run
from autoresearch.words import RUN_MODES, with_article
from autoresearch_cli.completing import complete_reference
from autoresearch_cli.options import Json, Reference, Task, command_app, examples
from autoresearch_cli.reading import NotebookReader, open_notebook, with_blobs
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.paging import paged
from autoresearch_cli.rendering.sources import print_diff

app = command_app()
apps = {"diff": app}


@app.command(
    epilog=examples(
        ("autoresearch diff @", "what the best run changed against its parent"),
        ("autoresearch diff @~3 @", "the last three steps together"),
        ("autoresearch diff @ > change.patch", "as a patch"),
        see="show, lineage, best",
    )
)
def diff(
    reference: Reference,
    other: Annotated[
        str,
        typer.Argument(
            metavar="[ID]",
            help="The newer run. Left out: the first one against its parent.",
            autocompletion=complete_reference,
        ),
    ] = "",
    *,
    task: Task = "",
    json: Json = False,
) -> None:
    """The change of the program between two runs, with their values and the constants that differ."""
    with open_notebook(task) as notebook:
        if other:
            old, new = notebook.resolve(reference), notebook.resolve(other)
        else:
            new = notebook.resolve(reference)
            shown = notebook.show(reference)
            if shown.run is None:
                raise UsageError(
                    f"{reference} is {with_article(shown.record.kind)}, not a run",
                    hint="autoresearch show " + reference,
                )
            if shown.run.parent is None:
                raise NotFound(
                    f"{reference} has no parent: it is a baseline", hint=f"autoresearch show {reference} --code"
                )
            old = notebook.resolve(shown.run.parent)
        answer = with_blobs(lambda: diff_answer(notebook.log, notebook.blobs, old, new))
        trained = _trained(notebook, old, new)
    if json:
        print_json(answer)
        return
    with paged():
        print_diff(answer)
    if not answer.diff:
        say("the sources are the same")
    if trained:
        say(trained)


def _trained(notebook: NotebookReader, old: bytes, new: bytes) -> str:
    """How much longer an agent was trained than another one; empty where the newer run is no agent."""
    before, after = (notebook.log.records.get(run).body for run in (old, new))
    if not isinstance(before, Run) or not isinstance(after, Run) or after.mode not in RUN_MODES:
        return ""
    return f"training episodes: {before.budget:.10g} → {after.budget:.10g}"
