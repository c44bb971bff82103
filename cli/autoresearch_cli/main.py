"""The ``autoresearch`` command: its options, and the way to the command asked for, which is loaded only then.

An exception becomes what a person reads: a sentence, a hint, an exit status.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, get_args, get_origin

import typer
from typer import Abort, TyperException

from autoresearch.errors import PIP_INSTALL, AutoresearchError
from autoresearch_cli.catalogue import first_example
from autoresearch_cli.groups import CommandGroup
from autoresearch_cli.synonyms import argument_of, extra_of, line_of, option_of, setting_of

if TYPE_CHECKING:
    from typer._click import Context

    from autoresearch_cli.models import Problem


@dataclass(frozen=True, slots=True)
class Mishap:
    """What went wrong, ready to be printed."""

    error: str
    hint: str = ""
    exit_status: int = 1
    usage: str = ""

    def failure(self) -> Problem:
        """The same for programs."""
        from autoresearch.text import sanitised
        from autoresearch_cli.models import Problem

        return Problem(error=sanitised(self.error), hint=sanitised(self.hint), exit_status=self.exit_status)


def mishap(error: Exception) -> Mishap:
    """Describe any exception that reached the command line."""
    if isinstance(error, AutoresearchError):
        return Mishap(f"{error}", hint=error.hint, exit_status=error.exit_status)
    if isinstance(error, TyperException):
        return _wrong_usage(error)
    if isinstance(error, Abort):
        return Mishap("stopped", exit_status=130)
    if isinstance(error, OSError):
        return _of_the_system(error)
    if isinstance(error, UnicodeEncodeError):  # bytes in an argument or a path, as Python keeps them
        from autoresearch.text import one_line

        hint = "give another name; where the shell's language is not UTF-8: export LC_ALL=C.UTF-8"
        return Mishap(f"“{one_line(error.object, 500)}” is not UTF-8", hint=hint, exit_status=2)
    sqlite = sys.modules.get("sqlite3")
    if sqlite is not None and isinstance(error, sqlite.Error):
        return Mishap(f"the log can't be read: {error}", hint="autoresearch node doctor")
    return Mishap(
        f"this is a bug in autoresearch: {type(error).__name__}: {error}",
        hint="the same command with --debug shows where; please report it",
    )


def _of_the_system(error: OSError) -> Mishap:
    place = f": {error.filename}" if error.filename else ""
    hint = "autoresearch node doctor checks disk space and permissions"
    if error.errno in (errno.ENOTDIR, errno.EEXIST) and error.filename:
        for path in (Path(error.filename), *Path(error.filename).parents):
            if path.is_file():
                return Mishap(f"{path} is not a folder", hint="name a folder", exit_status=2)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) and error.filename:
        folder = next(path for path in Path(error.filename).absolute().parents if os.path.isdir(path))  # noqa: PTH112 - it raises nothing
        if not os.access(folder, os.W_OK | os.X_OK):
            return Mishap(f"{folder} is closed to you or read only", hint="let it be written, or name another")
        hint = "check its permissions"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "make room; autoresearch node doctor shows on which disk"
    if error.errno == errno.EXDEV:  # a link that leads out of its folder
        hint = "copy the file there"
    return Mishap(f"{error.strerror or error}{place}", hint=hint)


def _wrong_usage(error: TyperException) -> Mishap:
    context = getattr(error, "ctx", None)
    if context is None:
        return Mishap(error.format_message(), hint="the same line with --help", exit_status=error.exit_code)
    if type(error).__name__ == "NoArgsIsHelpError":
        return Mishap("", usage=error.format_message(), exit_status=error.exit_code)
    # Pydantic writes that before each; choices stand in lines of their own.
    message = " ".join(error.format_message().replace("Value error, ", "").split())
    sentence, line, option = _meant(error, message, context)
    if line:
        return Mishap(sentence, hint=line, exit_status=error.exit_code)
    near = [option] if option else sorted(getattr(error, "possibilities", None) or ())
    return Mishap(
        f"{sentence} Did you mean {' or '.join(near)}?" if near else message,
        hint=f"{context.command_path} --help",
        exit_status=error.exit_code,
        usage=context.get_usage(),
    )


def _meant(error: TyperException, message: str, context: Context) -> tuple[str, str, str]:
    """What is wrong with a line, and what is meant, where it is known: another line, or an option of this one."""
    path, command = context.command_path, context.command
    own = frozenset(option for parameter in command.params for option in parameter.opts)
    arguments = [parameter.metavar or "" for parameter in command.params if parameter.param_type_name == "argument"]
    if word := re.search(r"unexpected extra argument\(s\) \((\S+)\)", message):
        if path == "autoresearch up":
            return message, "autoresearch work TASK starts the daemon too", ""
        return f"There is no place for {word[1]} alone.", "", extra_of(word[1], own - {"--since"})  # may be an id
    if word := re.match(r"No such command '(\S+)'", message):  # of a group below a noun
        noun = path.removeprefix("autoresearch ")
        if noun == "node config" and "." in word[1]:  # as `git config NAME` has it
            return f"{message} A setting is read by get.", f"{path} get {word[1]}, {path} set {word[1]} VALUE", ""
        line = line_of(word[1], noun, frozenset(f"{noun} {name}" for name in getattr(command, "commands", ())))
        return f"There is no command '{noun} {word[1]}'.", line and f"autoresearch {line}", ""
    if message == "Missing argument 'ID'.":
        return message, f"{path} @, for the best run; others: autoresearch run list", ""
    if message.startswith("Missing ") and (example := first_example(command.epilog or "")):
        return message, f"such as: {example}", ""
    name = getattr(error, "option_name", "")
    sentence = f"There is no option {name}."
    if option := option_of(name, own):
        return sentence, "", option
    if line := setting_of(name):
        return sentence, f"autoresearch {line}", ""
    if argument := argument_of(name, arguments):
        return sentence, f"{path} {argument}", ""
    return sentence, "", ""


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
        if word in ("--debug", "--no-pager", "--header") or word.startswith("--color="):
            front.append(word)
        elif word == "--color" and waiting:
            front += [word, waiting.pop(0)]
        else:
            rest.append(word)
    return front + rest


class _AsItIs:
    """Takes the place of typer's conversion of a parameter: of texts, flags, choices, and plain numbers in bounds."""

    def __init__(self, kind: Any, convert: Callable[[Any], Any]) -> None:  # noqa: ANN401 - typer's own
        self._kind, self._convert = kind, convert

    def coerce(self, value: object, **context: object) -> object:
        """The value; any other number is converted, or refused, by typer."""
        kind, about = self._kind.annotation, self._kind.parameter_info
        if kind in (str, bool) or (get_origin(kind) is Literal and value in get_args(kind)):
            return value
        if kind == list[str] and isinstance(value, list | tuple | None):
            return list(value or ())
        if value is None:
            return None
        pattern = _PLAIN_NUMBER.get(kind)
        is_plain = pattern and (type(value) in _PLAIN_NUMBER or (isinstance(value, str) and pattern.fullmatch(value)))
        if is_plain and about.parser is None and not about.clamp:
            number = kind(value)
            if (about.min is None or about.min <= number) and (about.max is None or number <= about.max):
                return number
        try:
            return self._convert(self._kind).coerce(value, **context)
        except typer.BadParameter as error:
            if kind not in _PLAIN_NUMBER or about.parser is not None:
                raise
            from autoresearch.text import number_form

            form = number_form(kind, about.min, about.max)
            raise typer.BadParameter(f"“{value}” is no {form}", error.ctx, error.param) from error


_PLAIN_NUMBER = {int: re.compile(r"-?[0-9]{1,15}"), float: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")}


def convert_as_little() -> None:
    """Have typer take most values as they are: to convert them it loads pydantic, a third of most commands.

    A typer that names this differently converts as usual.
    """
    name = "build_runtime_param"
    if convert := getattr(typer.core, name, None):
        setattr(typer.core, name, lambda kind: _AsItIs(kind, convert))


WELCOME = """\
autoresearch: improve a program together with other machines

Three ways in:
  watch a demo               autoresearch demo
  join friends               autoresearch join INVITE
  research your own program  autoresearch task new DIR, then autoresearch work DIR

All commands: autoresearch --help"""


class RootGroup(CommandGroup):
    """The group of all commands, and where their errors become sentences."""

    def invoke(self, ctx: Context) -> Any:  # noqa: ANN401 - as the base class has it
        """Run the command; without one, show the ways in to somebody new here, and to others what the node does."""
        asked_for_more = ctx._protected_args or ctx.params.get("version")  # noqa: SLF001 - click has no public name
        if not asked_for_more:
            from autoresearch_cli import home

            if home.is_new():
                typer.echo(WELCOME)
                return None
            ctx._protected_args = ["status"]  # noqa: SLF001
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would end with 1
            _leave_the_reader_alone()
            return 0

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
            problem = mishap(error)
            status = tell(problem, json="--json" in arguments)
            sys.exit(status if "--json" in arguments else offer(problem.hint, status))
        sys.exit(code if isinstance(code, int) else 0)


def _leave_the_reader_alone() -> None:
    """The reader has what it wanted (`autoresearch node records | head`): keep the interpreter's own flush quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(problem: Mishap, *, json: bool) -> int:
    """Print a mishap for people, and with ``--json`` for programs too. Returns the exit status."""
    from autoresearch_cli.rendering.output import print_json, say, say_lines

    if problem.usage:
        say_lines(problem.usage)
    for text in (problem.error, problem.hint and f"→ {problem.hint}"):
        if text:
            say(text)
    if json:
        try:
            print_json(problem.failure())
        except OSError:  # where the answer went has no room, which the sentence says
            _leave_the_reader_alone()
    return problem.exit_status


def offer(hint: str, status: int) -> int:
    """Install what a command lacks, if a person at the terminal says so; returns the exit status."""
    from autoresearch_cli.rendering.output import is_attended, say

    if not hint.startswith(PIP_INSTALL) or not is_attended():
        return status
    if typer.confirm("Install it now?", err=True):
        import subprocess

        # This Python's own: the one on the PATH may be another's.
        done = subprocess.run([sys.executable, "-m", *shlex.split(hint)], stdout=sys.stderr, check=False)
        say("installed → the same command again" if done.returncode == 0 else "it could not be installed: see above")
    return status


HELP = """Improve a program together with other machines: one signed log, many participants.

\b
First steps:
  autoresearch demo          watch a demo
  autoresearch task new DIR  describe your own program
  autoresearch work DIR      have it improved
  autoresearch status        what the daemon does, and why
  autoresearch best --code   the best program so far
"""

EPILOG = """\
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
    header: Annotated[bool, typer.Option("--header", help="In a pipe, begin a list with its columns' names.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Take the options that all commands share; ``--debug`` is read by CommandGroup, which handles the errors."""
    from autoresearch_cli.rendering import output

    if color not in COLORS:
        raise typer.BadParameter(f"{color!r} is not one of {', '.join(map(repr, COLORS))}.", param_hint="'--color'")
    output.choose_color(color)
    output.choose_paging(enabled=not no_pager)
    output.choose_header(enabled=header)
    if version:
        from autoresearch.version import __version__

        typer.echo(__version__)
        raise typer.Exit
    del debug


convert_as_little()
app = typer.Typer(
    name="autoresearch",
    help=HELP,
    epilog=EPILOG,
    cls=RootGroup,
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
