"""Options and arguments that several commands share, and the examples under each command's help."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import Annotated

import typer

from autoresearch_cli.completing import complete_reference, complete_task

# Help is no wider, whatever the terminal is.
MOST_COLUMNS = 110
# By which click indents the end of a help.
HELP_INDENT = 2

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON document a line.")]
Task = Annotated[
    str,
    typer.Option(
        "--task",
        metavar="NAME",
        help="A task's name or digest. Left out: the one worked on last.",
        autocompletion=complete_task,
    ),
]
Reference = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="An id or its beginning, @ for the best run, @mine for your best, @~1 for its parent.",
        autocompletion=complete_reference,
    ),
]
PARENT_HELP = "The run whose program you edited. Left out: the one that the folder remembers, else the nearest one."
Folder = Annotated[str, typer.Argument(metavar="[DIR]", help="A task folder. Left out: the configured task.")]
For = Annotated[str | None, typer.Option("--for", metavar="TIME", help="How long: 90s, 30m, 2h, 1h30m, 3d.")]
Runs = Annotated[int | None, typer.Option("--runs", min=1, help="Stop after so many runs.")]
Workers = Annotated[
    int | None, typer.Option("--workers", min=0, max=64, help="Training processes at a time, instead of the setting.")
]


def examples(*lines: tuple[str, str], see: str) -> str:
    """The end of a command's help: example commands with what they do, and related commands.

    What a command does stands below it where the terminal is too narrow for both.
    """
    columns = min(shutil.get_terminal_size().columns, MOST_COLUMNS) - HELP_INDENT
    width = max(len(command) for command, _ in lines)
    rows = [f"  {command.ljust(width)}  {meaning}" for command, meaning in lines]
    if max(map(len, rows)) > columns:
        rows = [row for command, meaning in lines for row in _two_lines(command, meaning, columns)]
    # A line with a lone backspace keeps click from re-wrapping the paragraph after it.
    return "\n".join(["\b", "Examples:", *rows, "", f"See also: {see}"])


def _two_lines(command: str, meaning: str, columns: int) -> list[str]:
    """A command, broken between its words as a shell takes it, and below it what it does."""
    rows = [" "]
    for word in re.findall(r"'[^']*'|\"[^\"]*\"|\S+", command):
        if len(f"{rows[-1]} {word} \\") > columns:
            rows[-1] += " \\"
            rows.append("     ")
        rows[-1] += f" {word}"
    return [*rows, *textwrap.wrap(meaning, columns, initial_indent="      # ", subsequent_indent="        ")]


def command_app(help_line: str = "", *, no_args_is_help: bool = True) -> typer.Typer:
    """An application for one command or group; they are built alike, so that help looks the same everywhere."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=no_args_is_help,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": MOST_COLUMNS},
    )
    if help_line:  # else what the callback's docstring says
        app.info.help = help_line
    return app
