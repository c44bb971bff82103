"""``effects``: what each setting did to the metric."""

from __future__ import annotations

from autoresearch.answers import effects_answer
from autoresearch_cli.options import Json, Task, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.effects import print_effects
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.paging import paged

app = command_app(no_args_is_help=False)
apps = {"effects": app}


@app.command(
    epilog=examples(
        ("autoresearch effects", "on the task worked on last"),
        ("autoresearch effects --task grammar", "on one task"),
        ("autoresearch effects --json", "the same for a program"),
        see="top, lineage, ask",
    )
)
def effects(*, task: Task = "", json: Json = False) -> None:
    """What each setting of a task did to the metric, in pairs of a run and its parent."""
    with open_notebook(task) as notebook:
        found = notebook.task()
        answer = effects_answer(notebook.log, found, me=notebook.me)
    if json:
        print_json(answer)
        return
    if not answer.effects:
        say(f"no run on {found.name} differs from its parent in few settings yet → autoresearch work")
        return
    with paged():
        print_effects(answer, found.metric)
    say(f"what adding a part (+) or raising a setting did on {found.name}, the surest improvement first")
    say("→ autoresearch diff ID shows what a run changed")
