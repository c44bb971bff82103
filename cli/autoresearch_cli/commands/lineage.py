"""``lineage``: the steps from the baseline to a run."""

from __future__ import annotations

from autoresearch.answers import lineage_answer, with_headlines
from autoresearch_cli.options import Json, Reference, Task, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.boards import print_lineage
from autoresearch_cli.rendering.output import print_json, say

app = command_app()
apps = {"lineage": app}


@app.command(
    epilog=examples(
        ("autoresearch lineage @", "how the best run came about"),
        ("autoresearch lineage @mine", "how your best came about"),
        ("autoresearch lineage @ --json", "the same for a program"),
        see="diff, show, top",
    )
)
def lineage(reference: Reference, *, task: Task = "", json: Json = False) -> None:
    """The steps from the baseline to a run, each with what it gained."""
    with open_notebook(task) as notebook:
        answer = lineage_answer(notebook.log, notebook.resolve(reference))
        answer = with_headlines(notebook.log, notebook.blobs, answer, me=notebook.me)
    if json:
        print_json(answer)
        return
    print_lineage(answer)
    say("→ autoresearch diff ID shows one step")
