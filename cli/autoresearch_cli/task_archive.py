"""``task archive`` and ``task restore``: tasks that a person put away on this machine. The log keeps everything."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.choices import Choice, choose
from autoresearch_cli import here
from autoresearch_cli.completing import complete_archived, complete_task
from autoresearch_cli.models import ArchivedAnswer
from autoresearch_cli.options import Json
from autoresearch_cli.rendering.output import print_json, say

_NAMED = "A task's name or the beginning of its digest."
Present = Annotated[str, typer.Argument(metavar="TASK", help=_NAMED, autocompletion=complete_task)]
PutAway = Annotated[str, typer.Argument(metavar="TASK", help=_NAMED, autocompletion=complete_archived)]


def archive(name: Present, *, json: Json = False) -> None:
    """Put a task away on this machine: lists and completion leave it out, and the daemon stops work on it."""
    answer = _chosen(name, wanted=True)
    if json:
        print_json(answer)
        return
    say(f"{answer.name} ({answer.digest[:12]}) is archived{'' if answer.changed else ' already'}; its records stay")
    say(f"→ autoresearch task restore {answer.name} has it back")


def restore(name: PutAway, *, json: Json = False) -> None:
    """Take a task out of the archive of this machine."""
    answer = _chosen(name, wanted=False)
    if json:
        print_json(answer)
        return
    say(f"{answer.name} ({answer.digest[:12]}) is {'restored' if answer.changed else 'not archived'}")
    say(f"→ autoresearch work {answer.name}")


def _chosen(name: str, *, wanted: bool) -> ArchivedAnswer:
    """Archive the task that a name means, or restore it: of several with one name that one which is the other way."""
    from autoresearch.answers import find_task
    from autoresearch_cli.reading import open_notebook

    with open_notebook() as notebook:
        everything = {row.digest for row in notebook.log.tasks.all()}
        put_away = notebook.archived if wanted else frozenset(everything - notebook.archived)
        task = find_task(notebook.log, name, author=notebook.me, archived=put_away)
    changed = choose(here.paths().choices, Choice.ARCHIVED, task.digest, wanted=wanted)
    return ArchivedAnswer(name=task.name, digest=task.digest.hex(), archived=wanted, changed=changed)
