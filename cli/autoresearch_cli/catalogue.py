"""Options, arguments and examples that several commands share.

Also completion from the local log, which needs no daemon and never fails. What completion prints is evaluated by a
shell, and some shells (zsh through typer's script) evaluate the help text with it: nothing of what others wrote goes
there that a shell, or rich's markup, gives a meaning.
"""

from __future__ import annotations

import functools
import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from autoresearch.ask.commands import NOUNS

Command = Callable[..., Any]
# What a command gives that has `--json`: its answer, a msgspec.Struct, once.
Answered = Iterator[Any]
RECENT = 200
REFERENCES = [
    ("@", "the best run"),
    ("@mine", "your best run"),
    ("@baseline", "the baseline's run"),
    ("@~1", "the best run's parent"),
]


def complete_reference(incomplete: str) -> list[tuple[str, str]]:
    """References that begin so: the best run, or recent records with what they are."""
    if not incomplete or incomplete.startswith("@"):
        return [(name, about) for name, about in REFERENCES if name.startswith(incomplete)]
    try:
        return _recent(incomplete)
    except Exception:  # noqa: BLE001 - a completion that prints an error would garble the line being typed
        return []


def complete_run(incomplete: str) -> list[tuple[str, str]]:
    """What may follow ``run`` and begins so, beside the files that the shell completes."""
    commands = NOUNS["run"].commands
    return [(name, entry.summary) for name, entry in commands.items() if name.startswith(incomplete)]


def complete_task(incomplete: str) -> list[str]:
    """Names of tasks in the log that begin so, and are not archived."""
    return _tasks(incomplete)


def complete_archived(incomplete: str) -> list[str]:
    """Names of archived tasks that begin so."""
    return _tasks(incomplete, archived=True)


def _tasks(incomplete: str, *, archived: bool = False) -> list[str]:
    try:
        from autoresearch.ask.runs.boards import tasks_answer
        from autoresearch_cli.local_log import open_desk

        with open_desk() as desk:
            tasks = tasks_answer(desk.log, archived=desk.archived(), all_tasks=True).tasks
            names = {harmless(task.name) for task in tasks if task.archived == archived}
    except Exception:  # noqa: BLE001 - a completion that prints an error would garble the line being typed
        return []
    return sorted(name for name in names if name.startswith(incomplete))


def complete_network(incomplete: str) -> list[str]:
    """Names of this home's networks that begin so."""
    try:
        from autoresearch.ask.acts.networks import home_networks
        from autoresearch_cli import home

        names = [network.name for network in home_networks(home.paths())]
    except Exception:  # noqa: BLE001 - a completion that prints an error would garble the line being typed
        return []
    return [name for name in names if name.startswith(incomplete)]


def harmless(text: str) -> str:
    """Letters, digits and the little punctuation that means nothing to a shell."""
    return " ".join(re.sub(r"[^\w .,+=%“”–-]", " ", text).split())


def _recent(incomplete: str) -> list[tuple[str, str]]:
    from autoresearch.ask.show import log_answer
    from autoresearch.face.columns.column import short
    from autoresearch_cli.local_log import open_desk

    with open_desk() as desk:
        records = log_answer(desk.log, limit=RECENT).records
    return [(short(r.id), harmless(r.summary)) for r in records if short(r.id).startswith(incomplete)]


# Help is no wider, whatever the terminal is.
MOST_COLUMNS = 110
# By which click indents the end of a help.
HELP_INDENT = 2

Hidden = Annotated[bool, typer.Option("--hidden", help="Those too that you hide.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON document a line.")]
Task = Annotated[
    str,
    typer.Option(
        "--task",
        metavar="NAME",
        help="A task's name or digest. Left out: that of the folder here, or worked on last.",
        autocompletion=complete_task,
    ),
]
Reference = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="An id or its beginning, @ for the best, @mine for yours, @baseline, '#2' of the board, @~1 for a parent.",
        autocompletion=complete_reference,
    ),
]
PARENT_HELP = "The run whose program you edited, or @baseline. Left out: the one that the folder began with."
Folder = Annotated[str, typer.Argument(metavar="DIR", help="A task folder. Left out: the one here, or the configured.")]
NamedTask = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="A task folder, or the name of a task. Left out: the one here, or the configured.",
        autocompletion=complete_task,
    ),
]
Attacked = Annotated[
    bool, typer.Option("--attack/--no-attack", help="Try to cheat the task first, within a minute; or leave it out.")
]
For = Annotated[str | None, typer.Option("--for", metavar="TIME", help="How long: 90s, 30m, 2h, 1h30m, 3d.")]
AllowPackages = Annotated[
    bool, typer.Option("--allow-packages", help="Install the Python packages of another participant's work, unasked.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
Runs = Annotated[int | None, typer.Option("--runs", min=1, max=10**6, help="Stop after so many runs.")]
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


def first_example(epilog: str) -> str:
    """The first command in the end of a help, as :func:`examples` wrote it."""
    first = re.match(r"  (.*?)(?=  |\n|$)", epilog.partition("Examples:\n")[2].replace(" \\\n      ", " "))
    return first[1] if first else ""


def _two_lines(command: str, meaning: str, columns: int) -> list[str]:
    """A command, broken between its words as a shell takes it, and below it what it does."""
    rows = [" "]
    for word in re.findall(r"'[^']*'|\"[^\"]*\"|\S+", command):
        if len(f"{rows[-1]} {word} \\") > columns:
            rows[-1] += " \\"
            rows.append("     ")
        rows[-1] += f" {word}"
    return [*rows, *textwrap.wrap(meaning, columns, initial_indent="      # ", subsequent_indent="        ")]


class CommandApp(typer.Typer):
    """The commands of one module; they are built alike, so that help looks the same everywhere."""

    def __init__(self, help_line: str = "", *, no_args_is_help: bool = True) -> None:
        super().__init__(
            add_completion=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            no_args_is_help=no_args_is_help,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": MOST_COLUMNS},
        )
        if help_line:  # else what the callback's docstring says
            self.info.help = help_line

    def command(  # type: ignore[override]
        self,
        name: str,
        *lines: tuple[str, str],
        see: str,
        **others: Any,  # noqa: ANN401 - as typer has it
    ) -> Callable[[Command], Command]:
        """A command of that name, with example lines and related commands: see :func:`examples`.

        One that yields its answer has ``--json``, and what it does after that is for people.
        """
        register = super().command(name, epilog=examples(*lines, see=see), **others)
        return lambda function: register(_with_json(function) if inspect.isgeneratorfunction(function) else function)


def _with_json(function: Callable[..., Answered]) -> Callable[..., None]:
    """The command with ``--json``, which prints the answer that it yields and goes no further."""

    @functools.wraps(function)
    def command(*arguments: object, json: bool = False, **values: object) -> None:
        for answer in function(*arguments, **values):
            if json:
                from autoresearch_cli.rendering.output import print_json  # help does without

                print_json(answer)
                return

    signature = inspect.signature(function, eval_str=True)
    option = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    vars(command).update(__signature__=signature.replace(parameters=[*signature.parameters.values(), option]))
    return command
