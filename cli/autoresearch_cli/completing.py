"""Completion in the shell from the local log; it needs no daemon and never fails.

What is printed here is evaluated by a shell, and some shells (zsh through typer's script) evaluate the help text with
it: nothing of what others wrote goes there that a shell, or rich's markup, gives a meaning.
"""

from __future__ import annotations

import re

RECENT = 200
REFERENCES = [("@", "the best run"), ("@mine", "your best run"), ("@~1", "the best run's parent")]


def complete_reference(incomplete: str) -> list[tuple[str, str]]:
    """References that begin so: the best run, or recent records with what they are."""
    if not incomplete or incomplete.startswith("@"):
        return [(name, about) for name, about in REFERENCES if name.startswith(incomplete)]
    try:
        return _recent(incomplete)
    except Exception:  # noqa: BLE001 - a completion that prints an error would garble the line being typed
        return []


def complete_task(incomplete: str) -> list[str]:
    """Names of tasks in the log that begin so, and are not archived."""
    return _tasks(incomplete)


def complete_archived(incomplete: str) -> list[str]:
    """Names of archived tasks that begin so."""
    return _tasks(incomplete, archived=True)


def _tasks(incomplete: str, *, archived: bool = False) -> list[str]:
    try:
        from autoresearch.answers import tasks_answer
        from autoresearch_cli.reading import open_notebook

        with open_notebook() as notebook:
            tasks = tasks_answer(notebook.log, archived=notebook.archived, all_tasks=True).tasks
            names = {harmless(task.name) for task in tasks if task.archived == archived}
    except Exception:  # noqa: BLE001 - a completion that prints an error would garble the line being typed
        return []
    return sorted(name for name in names if name.startswith(incomplete))


def complete_network(incomplete: str) -> list[str]:
    """Names of this home's networks that begin so."""
    try:
        from autoresearch.home_networks import home_networks
        from autoresearch_cli import here

        names = [one.name for one in home_networks(here.paths())]
    except Exception:  # noqa: BLE001 - a completion that prints an error would garble the line being typed
        return []
    return [name for name in names if name.startswith(incomplete)]


def harmless(text: str) -> str:
    """Letters, digits and the little punctuation that means nothing to a shell."""
    return " ".join(re.sub(r"[^\w .,+=%“”–-]", " ", text).split())


def _recent(incomplete: str) -> list[tuple[str, str]]:
    from autoresearch.answers import log_answer
    from autoresearch_cli.reading import open_notebook
    from autoresearch_cli.rendering.ids import short

    with open_notebook() as notebook:
        found = log_answer(notebook.log, limit=RECENT).records
    return [(short(r.id), harmless(r.summary)) for r in found if short(r.id).startswith(incomplete)]
