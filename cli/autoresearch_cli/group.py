"""The root of the command line: loads a command when asked for; turns errors into sentences and exit codes."""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperGroup

from autoresearch_cli.catalogue import COMMANDS, SECTIONS
from autoresearch_cli.failing import Mishap, mishap

if TYPE_CHECKING:  # typer carries its own click; only the type checker needs its names
    from typer._click import Command, Context, HelpFormatter


def global_options_first(arguments: Sequence[str]) -> list[str]:
    """Move the options of all commands (``--debug``, ``--color WHEN`` …) to the front: they may stand before ``--``."""
    front: list[str] = []
    rest: list[str] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            rest += [word, *waiting]
            break
        if word in ("--debug", "--no-pager") or word.startswith("--color="):
            front.append(word)
        elif word == "--color" and waiting:
            front += [word, waiting.pop(0)]
        else:
            rest.append(word)
    return front + rest


class _AsItIs:
    """Takes the place of typer's conversion of a parameter."""

    @staticmethod
    def coerce(value: object, **_: object) -> object:
        """The value."""
        return value


def convert_no_text() -> None:
    """Have typer take text and flags as they are: to convert them it loads pydantic, 100 ms, a third of most commands.

    A typer that names this differently converts as usual.
    """
    name = "build_runtime_param"
    if convert := getattr(typer.core, name, None):
        setattr(typer.core, name, lambda kind: _AsItIs if kind.annotation in (str, bool) else convert(kind))


class CommandGroup(TyperGroup):
    """The group of all commands in the catalogue."""

    def list_commands(self, ctx: Context) -> list[str]:
        """Every command's name, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Import the module of one command and build it."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"autoresearch_cli.commands.{COMMANDS[cmd_name].module}")
        command = typer.main.get_command(module.apps[cmd_name])
        command.name = cmd_name
        command.short_help = COMMANDS[cmd_name].summary
        return command

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, 2)
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"There is no command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Context) -> Any:  # noqa: ANN401 - as the base class has it
        """Run the command; without one, show the help."""
        asked_for_more = ctx._protected_args or ctx.params.get("version")  # noqa: SLF001 - click has no public name
        if not asked_for_more:
            typer.echo(ctx.get_help())
            return None
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would end with 1
            _leave_the_reader_alone()
            return 0

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """List the commands by section, without importing them."""
        del ctx
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(8), entry.summary) for name, entry in entries.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,  # noqa: ANN401
    ) -> NoReturn:
        """Run, print what went wrong as a sentence with a hint, and leave with the exit status."""
        del standalone_mode
        arguments = global_options_first(sys.argv[1:] if args is None else args)
        for stream in (sys.stdout, sys.stderr):
            # A locale without these characters gets question marks instead of an error.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        try:
            code = super().main(
                arguments,
                prog_name or self.name,
                complete_var,
                False,
                windows_expand_args,
                **extra,
            )
            sys.stdout.flush()
        except BrokenPipeError:
            _leave_the_reader_alone()
            sys.exit(0)
        except KeyboardInterrupt:
            sys.exit(130)
        except Exception as error:
            if "--debug" in arguments:
                raise
            sys.exit(tell(mishap(error), json="--json" in arguments))
        sys.exit(code if isinstance(code, int) else 0)


def _leave_the_reader_alone() -> None:
    """The reader has what it wanted (`autoresearch log | head`): keep the interpreter's own flush quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(found: Mishap, *, json: bool) -> int:
    """Print a mishap for people, and with ``--json`` for programs too. Returns the exit status."""
    from autoresearch_cli.rendering.output import print_json, say, say_lines

    if found.usage:
        say_lines(found.usage)
    for text in (found.error, found.hint and f"→ {found.hint}"):
        if text:
            say(text)
    if json:
        print_json(found.failure())
    return found.exit_status
