"""Whoever makes a task at a terminal: what they are asked, and the folders that they name."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from autoresearch.ask.acts.trial_runs import NewTaskContext
from autoresearch.errors import NotFound, UsageError
from autoresearch.paths import typed_path
from autoresearch_cli import home
from autoresearch_cli.rendering.output import say


class Terminal:
    """A person at a terminal."""

    def line(self, question: str, default: str) -> str:
        """A line of text; empty: the default."""
        return str(typer.prompt(question, default=default or None, err=True)).strip()

    def number(self, question: str, default: float) -> float:
        """A number."""
        return float(typer.prompt(question, default=default, type=float, err=True))

    def agrees(self, question: str) -> bool:
        """Yes or no."""
        return typer.confirm(question, default=True, err=True)


def new_task_context(*, json: bool) -> NewTaskContext:
    """A task is made by a command: a person is asked where there is one."""
    asks = not json and sys.stdin.isatty() and sys.stderr.isatty()
    return NewTaskContext(home.paths(), home.settings().work, say, Terminal() if asks else None)


def mount_of(text: str) -> str:
    """A folder or a file that was typed, as task.toml names it: ``~/data``.

    Raises NotFound where it does not exist, UsageError where it holds the whole home.
    """
    path, user_home = typed_path(text).absolute(), Path.home()
    if not path.exists():
        raise NotFound(f"there is no {path}", hint="--mount names a folder or a file that runs may read")
    folder = path if path.is_file() else home.existing_folder(text).absolute()
    if user_home.is_relative_to(folder):
        raise UsageError(f"{folder} would show runs your whole home folder", hint="name a folder in it, with the data")
    return f"~/{folder.relative_to(user_home)}" if folder.is_relative_to(user_home) else str(folder)
