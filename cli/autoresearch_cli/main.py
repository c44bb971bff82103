"""The ``autoresearch`` command: its options, and the way to the command asked for. Knows no command's work."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from autoresearch_cli.group import CommandGroup, convert_no_text

HELP = "Improve a program together with other machines: one signed log, many participants."

EPILOG = """\b
First steps:
  autoresearch up --work     start the daemon and work
  autoresearch status        what it does, and why
  autoresearch best --code   the best program so far

Exit codes: 0 done, 1 failed, 2 usage, 3 daemon not running, 4 no such thing, 5 ambiguous id,
6 refused, 7 timed out, 8 evidence does not hold, 9 name of several components, 130 interrupted.
"""

COLORS = ("auto", "always", "never")


def root(
    *,
    color: Annotated[
        str,
        typer.Option(
            metavar="<auto|always|never>",
            help="Colour the output: on a terminal, always, or never. NO_COLOR and FORCE_COLOR count too.",
        ),
    ] = "auto",
    no_pager: Annotated[
        bool, typer.Option("--no-pager", help="Print long answers at once, not in PAGER or less.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Take the options that all commands share; ``--debug`` is read by CommandGroup, which handles the errors."""
    from autoresearch_cli.rendering.output import choose_color

    if color not in COLORS:
        raise typer.BadParameter(f"{color!r} is not one of {', '.join(map(repr, COLORS))}.", param_hint="'--color'")
    choose_color(color)
    if no_pager:
        from autoresearch_cli.rendering.paging import choose_paging

        choose_paging(wanted=False)
    if version:
        from autoresearch import __version__

        typer.echo(__version__)
        raise typer.Exit
    del debug


convert_no_text()
app = typer.Typer(
    name="autoresearch",
    help=HELP,
    epilog=EPILOG,
    cls=CommandGroup,
    callback=root,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def main() -> None:
    """Run the command line and leave with its exit status."""
    open_closed_streams()
    app()


def open_closed_streams() -> None:
    """Let standard streams that the caller closed (``>&-``) lead nowhere.

    Else the next file that is opened, here or in a daemon that is started, would have the number of standard output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))
