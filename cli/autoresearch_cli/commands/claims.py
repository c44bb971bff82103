"""``claims``: what is being tried now."""

from __future__ import annotations

from autoresearch.answers import claims_answer
from autoresearch_cli import here
from autoresearch_cli.options import Json, Task, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.notes import print_claims
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.paging import paged

app = command_app(no_args_is_help=False)
apps = {"claims": app}


@app.command(
    epilog=examples(
        ("autoresearch claims", "on the task worked on last"),
        ("autoresearch claims --task grammar", "on one task"),
        ("autoresearch claims --json", "the same for a program"),
        see="notes, ask, propose, log --claims",
    )
)
def claims(*, task: Task = "", json: Json = False) -> None:
    """What is being tried on a task now, by whom, and until when. Others do not try the same meanwhile."""
    with open_notebook(task) as notebook:
        answer = claims_answer(notebook.log, notebook.task(), now_ms=here.now_ms(), me=notebook.me)
    if json:
        print_json(answer)
        return
    if not answer.claims:
        say(f"nothing is being tried on {answer.task} now → autoresearch work")
        return
    with paged():
        print_claims(answer, now_ms=here.now_ms())
    say(f"claims on {answer.task}")
    say("→ autoresearch show ID, autoresearch propose DIR")
