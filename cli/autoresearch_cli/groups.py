"""Groups of commands: those at the top, and those of a noun. A command is imported when it is asked for."""

from __future__ import annotations

import difflib
import importlib
import re
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from autoresearch.ask.commands import COMMANDS, NOUNS, SECTIONS
from autoresearch.errors import NotFound, UsageError
from autoresearch_cli.catalogue import complete_task, examples
from autoresearch_cli.synonyms import extra_of, line_of

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

# How much a word must be like a command to be taken for it mistyped.
NEAR = 0.7


class CommandGroup(TyperGroup):
    """Commands of the catalogue, each imported when it is asked for: all of a noun, or those at the top."""

    def __init__(self, noun: str = "", **attributes: Any) -> None:  # noqa: ANN401 - as the base class has it
        group = NOUNS.get(noun)
        if group and group.examples:
            attributes |= {"help": group.sentence, "epilog": examples(*group.examples, see=group.see)}
        defaults = {"name": noun, "rich_markup_mode": None, "no_args_is_help": not (group and group.alone)}
        super().__init__(**(defaults | attributes))
        self.noun = noun

    @property
    def sections(self) -> dict[str, dict[str, str]]:
        """The line of each command by its name, by section of the help."""
        if self.noun:
            return {"Commands": {name: entry.summary for name, entry in NOUNS[self.noun].commands.items()}}
        verbs = {title: {name: entry.summary for name, entry in part.items()} for title, part in SECTIONS.items()}
        return verbs | {"Nouns, each with commands of its own": {name: noun.summary for name, noun in NOUNS.items()}}

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """The help of a noun begins with what it is asked for most."""
        if self.noun:
            _format_usual(self.noun, formatter)
        super().format_help(ctx, formatter)

    def list_commands(self, ctx: Context) -> list[str]:
        """Every command's name once, in the order of the help."""
        del ctx
        return list(dict.fromkeys(name for part in self.sections.values() for name in part))

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Import the module of one command and build it; a noun alone is built without an import."""
        path = f"{self.noun} {cmd_name}".lstrip()
        if path not in COMMANDS:
            return CommandGroup(path) if path in NOUNS else None
        del ctx
        return _command(path)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Find the command, or say which one may have been meant. ``run list`` is no folder: that is ``./list``."""
        name = args[0]
        if not self.noun and name in NOUNS and args[1:] and args[1] in NOUNS[name].commands:
            return name, CommandGroup(name), args[1:]
        if name not in self.list_commands(ctx) and not name.startswith("-"):
            lead_on(name, self.noun)
            sentence = f"There is no command {f'{self.noun} {name}'.lstrip()!r}."
            if near := meant(name, self.noun):
                lines = (f"autoresearch {path}: {(COMMANDS.get(path) or NOUNS[path]).summary}" for path in near)
                raise UsageError(f"{sentence} Did you mean {' or '.join(near)}?", hint=" ".join(lines))
            ctx.fail(sentence)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Take ``help`` for the option, as git has it, and the command that a noun alone means."""
        group = NOUNS.get(self.noun)
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        if group and group.alone and not args:
            ctx.call_on_close(partial(_name_help, ctx.command_path))
            args = [group.alone]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """List the commands by section, without importing them."""
        del ctx
        for section, lines in self.sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(8), summary) for name, summary in lines.items()])


@cache
def _command(path: str) -> Command:
    """A command of the catalogue by its words, such as ``task new``."""
    group = typer.main.get_group(importlib.import_module(f"autoresearch_cli.{COMMANDS[path].module}").app)
    command: Command = group.commands.get(path, group)  # a module with one group has no other command
    command.name = path.rpartition(" ")[2]
    command.short_help = COMMANDS[path].summary
    _take_task(path, command)
    _name_values(command)
    return command


def _take_task(path: str, command: Command) -> None:
    """Let a command that has ``--task`` and no argument take the task as one: ``best moons``."""
    kinds = {option for parameter in command.params for option in (*parameter.opts, parameter.param_type_name)}
    answer = command.callback
    if answer is None or "--task" not in kinds or "argument" in kinds:
        return

    def take(named_task: str | None, **values: Any) -> Any:  # noqa: ANN401 - whatever the command takes and gives
        if named_task == "":  # a variable that a script did not set
            raise UsageError("“” names no task", hint="a name of autoresearch task list")
        if named_task and values["task"] not in ("", named_task):
            raise UsageError(f"two tasks are named: {named_task} and {values['task']}", hint="name one of them")
        try:
            return answer(**values | {"task": named_task or values["task"]})
        except NotFound:
            if named_task and (typed := extra_of(named_task, frozenset(kinds))):
                sentence = f"There is no task {named_task} here. Did you mean {typed}?"
                raise UsageError(sentence, hint=f"autoresearch {path} {typed}") from None
            raise

    command.callback = take
    command.params.insert(0, typer.main.get_command(_taking).params[0])


_taking = typer.Typer(add_completion=False)


@_taking.command()
def _task(
    named_task: Annotated[
        str | None, typer.Argument(metavar="TASK", help="The same as --task.", autocompletion=complete_task)
    ] = None,
) -> None:
    """The argument of a command that has none of its own."""


# What the help calls a value that has no name of its own, by its type.
_VALUES = {"int": "N", "float": "X", "str": "TEXT", "list": "TEXT", "path": "FILE", "file": "FILE"}


def _name_values(command: Command) -> None:
    """Name values in the help by one word, as in ``--limit N`` and ``show ID``, where typer writes types of Python."""
    for parameter in command.params:
        name = parameter.metavar or (parameter.name or "").upper()
        if parameter.param_type_name == "argument":
            usage = [name if parameter.required else f"[{name}]" + ("..." if parameter.nargs != 1 else "")]
            vars(parameter).update(
                metavar=name, display_type_rich=lambda **_: "", get_usage_pieces=lambda *_, usage=usage: usage
            )
        elif parameter.metavar is None and hasattr(parameter, "display_type"):
            kind = re.match(r"<(\w+)( range|\[|>)", parameter.display_type(ctx=None))
            parameter.metavar = _VALUES.get(kind[1]) if kind else None
    for inner in getattr(command, "commands", {}).values():
        _name_values(inner)


def _format_usual(noun: str, formatter: HelpFormatter) -> None:
    """Write a noun's first example."""
    example, meaning = NOUNS[noun].examples[0]
    formatter.write(f"{meaning[0].upper()}{meaning[1:]}:\n  {example}\n\n")


def _name_help(path: str) -> None:
    from autoresearch_cli.rendering.output import say

    say(f"→ {path} --help")


def lead_on(word: str, noun: str) -> None:
    """Raise UsageError with the line that is meant, where the word is another tool's, or follows one noun alone."""
    ends = [] if noun else [path for path in COMMANDS if path.endswith(f" {word}")]
    if line := line_of(word, noun, frozenset(COMMANDS)) or (ends[0] if len(ends) == 1 else ""):
        raise UsageError(f"There is no command {f'{noun} {word}'.lstrip()!r}.", hint=f"autoresearch {line}")


def meant(word: str, noun: str = "") -> list[str]:
    """The commands that a word may mean: of the noun before it, else those that end with it or are spelt like it."""
    if noun and (own := difflib.get_close_matches(word, NOUNS[noun].commands, 2, NEAR)):
        return [f"{noun} {name}" for name in own]
    ends = [path for path in COMMANDS if path.endswith(f" {word}")]
    names = {path.rpartition(" ")[2]: path for path in reversed([*COMMANDS, *NOUNS])}
    return ends or [names[name] for name in difflib.get_close_matches(word, names, 2, NEAR)]


class VerbAndNoun(TyperCommand):
    """``run`` and ``mcp``, each a verb and a noun: their help names the commands that may follow too."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Take no word of another tool, such as ``run ls``, for a folder that is not there."""
        from autoresearch.paths import typed_path  # what it imports no help needs

        if args and "/" not in args[0] and not typed_path(args[0]).exists():
            lead_on(args[0], self.name or "")
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """The usual case first."""
        _format_usual(self.name or "", formatter)
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Options, then the commands of the noun."""
        super().format_options(ctx, formatter)
        CommandGroup(self.name or "").format_commands(ctx, formatter)
