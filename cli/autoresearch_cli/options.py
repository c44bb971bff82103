"""Options and arguments that several commands share, and the examples under each command's help."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch_cli.completing import complete_reference

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document (see docs/cli-json.md).")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON document a line (see docs/cli-json.md).")]
Task = Annotated[
    str, typer.Argument(metavar="[TASK]", help="A task's name or id. Left out: the one this node works on.")
]
Reference = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="An id or its beginning, @ for the best run, @mine for your best, @~1 for its parent.",
        autocompletion=complete_reference,
    ),
]
Folder = Annotated[str, typer.Argument(metavar="[DIR]", help="A task folder. Left out: the configured task.")]
For = Annotated[str | None, typer.Option("--for", metavar="TIME", help="How long: 90s, 30m, 2h, 1h30m, 3d.")]
Runs = Annotated[int | None, typer.Option("--runs", min=1, help="Stop after so many runs.")]
Workers = Annotated[
    int | None, typer.Option("--workers", min=0, max=64, help="Training processes at a time, instead of the setting.")
]


def examples(*lines: tuple[str, str], see: str) -> str:
    """The end of a command's help: example commands with what they do, and related commands."""
    width = max(len(command) for command, _ in lines)
    rows = [f"  {command.ljust(width)}  {meaning}" for command, meaning in lines]
    # A line with a lone backspace keeps click from re-wrapping the paragraph after it.
    return "\n".join(["\b", "Examples:", *rows, "", "\b", f"See also: {see}"])


def command_app(help_line: str = "", *, no_args_is_help: bool = True) -> typer.Typer:
    """An application for one command or group; they are built alike, so that help looks the same everywhere."""
    return typer.Typer(
        help=help_line or None,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=no_args_is_help,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
