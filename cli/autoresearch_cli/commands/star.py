"""``star`` and ``unstar``: runs to find again. Nothing is published."""

from __future__ import annotations

from autoresearch.api import StarAnswer
from autoresearch.choices import Choice, choose
from autoresearch.records import format_id
from autoresearch_cli import here
from autoresearch_cli.options import Json, Reference, Task, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import print_json, say

star_app, unstar_app = command_app(), command_app()
apps = {"star": star_app, "unstar": unstar_app}


@star_app.command(
    epilog=examples(
        ("autoresearch star @", "the best run of today"),
        ("autoresearch star g3xk", "a run by the beginning of its id"),
        ("autoresearch log --starred", "all that you starred"),
        see="unstar, log, note",
    )
)
def star(reference: Reference, *, task: Task = "", json: Json = False) -> None:
    """Star a run or another record, to find it again. Only this machine knows; `log` and `show` say so."""
    _choose(reference, task, wanted=True, json=json)


@unstar_app.command(
    epilog=examples(
        ("autoresearch unstar g3xk", "a run by the beginning of its id"),
        ("autoresearch unstar @ --task grammar", "the best run of a task"),
        ("autoresearch log --starred", "what is left"),
        see="star, log",
    )
)
def unstar(reference: Reference, *, task: Task = "", json: Json = False) -> None:
    """Take the star of a record away."""
    _choose(reference, task, wanted=False, json=json)


def _choose(reference: str, task: str, *, wanted: bool, json: bool) -> None:
    with open_notebook(task) as notebook:
        record = notebook.log.records.get(notebook.resolve(reference))
    changed = choose(here.paths().choices, Choice.STARRED, record.id, wanted=wanted)
    answer = StarAnswer(id=format_id(record.id), starred=wanted, changed=changed)
    if json:
        print_json(answer)
        return
    state = "starred" if wanted else "not starred"
    say(f"{short(answer.id)} is {state}{' now' if changed else ' already'}")
    say("→ autoresearch log --starred")
