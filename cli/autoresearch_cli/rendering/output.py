"""The two streams: answers on standard output, talk on standard error.

Also JSON, plain lines, colour, diffs, and long answers in a pager on a terminal. All text leaves through here and is
sanitised here.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import typer

from autoresearch.ask.runs.answers import DiffAnswer
from autoresearch.errors import UsageError
from autoresearch.face.columns.column import Column, Face, Row, lines
from autoresearch.face.columns.runs import gain_words
from autoresearch.text import change, counted, interval, json_text, one_line, sanitised, value
from autoresearch_cli.rendering.layout import GAP, TableLine, cells, table, wrapped

if TYPE_CHECKING:
    import msgspec
    from rich.console import Console
    from rich.text import Text

_color = ["auto"]
# A value that verifiers found or that is better; one that does not count.
LOOKS = {"good": "bright_blue", "bad": "red"}
# Of a terminal that does not say how wide it is, and of a pipe.
USUAL_SIZE = (80, 24)


def choose_color(when: str) -> None:
    """Keep what ``--color`` said for the rest of this command."""
    _color[0] = when
    console.cache_clear()


_header = [False]


def choose_header(*, enabled: bool) -> None:
    """Keep what ``--header`` said for the rest of this command."""
    _header[0] = enabled


def is_terminal() -> bool:
    """Whether a person looks at standard output."""
    return sys.stdout.isatty()


def width() -> int:
    """How many columns the terminal has."""
    return shutil.get_terminal_size(USUAL_SIZE).columns


def wants_color() -> bool:
    """Whether to colour: ``--color`` first, then NO_COLOR, FORCE_COLOR, TERM=dumb, then whether it is a terminal."""
    if _color[0] != "auto":
        return _color[0] == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal() and os.environ.get("TERM") != "dumb"


def is_rich() -> bool:
    """Whether to lay out for a person: on a terminal, or when colour is asked for outright."""
    return is_terminal() or wants_color()


@cache
def console() -> Console:
    """The terminal on standard output. Text is never read as markup."""
    from rich.console import Console

    return Console(
        color_system="auto" if is_terminal() and wants_color() else "standard" if wants_color() else None,
        force_terminal=True if wants_color() else None,
        no_color=not wants_color(),
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
        width=width(),
    )


def print_json(answer: msgspec.Struct) -> None:
    """Print one document in one line."""
    sys.stdout.write(json_text(answer) + "\n")
    sys.stdout.flush()


def print_text(text: str, *, style: str = "") -> None:
    """Print lines of text as they are, ending with a newline; coloured where there is colour."""
    cleaned = sanitised(text, lines=True)
    if style and is_rich():
        from rich.text import Text

        console().print(Text(cleaned.removesuffix("\n"), style=style))
    else:
        sys.stdout.write(cleaned if cleaned.endswith("\n") or not cleaned else cleaned + "\n")


def print_line(text: str, *, style: str = "", above: Console | None = None, gap: bool = False) -> None:
    """Print one line at once: to standard output, or ``above`` what is redrawn on a terminal; below a ``gap``."""
    if above is not None and is_terminal():
        from rich.text import Text

        for line in wrapped(sanitised(text), width(), indent=GAP):
            above.print(Text(line, style=style), soft_wrap=True)
    else:
        cleaned = sanitised(text)
        fitted = "\n".join(wrapped(cleaned, width(), indent=GAP)) if is_terminal() else cleaned
        print_text("\n" * gap + fitted + "\n", style=style)
        sys.stdout.flush()


def print_exactly(text: str) -> None:
    """Write data, such as a source, as UTF-8 with its own ends of lines; a terminal gets it sanitised."""
    if is_terminal():
        print_text(text)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def print_rows(rows: Iterable[Sequence[object]], *, flush: bool = False) -> None:
    """Print rows as tab-separated lines: no borders, nothing cut off."""
    for row in rows:
        sys.stdout.write("\t".join(_cells(row)) + "\n")
    if flush:
        sys.stdout.flush()


def print_labelled(labelled: Iterable[tuple[str, str]]) -> None:
    """Print label and text: aligned and broken between words for a person, tab-separated for a program."""
    rows = [(one_line(label), one_line(text)) for label, text in labelled]
    if not is_rich():
        print_rows(rows)
        return
    from rich.text import Text

    label_width = max((cells(label) for label, _ in rows), default=0)
    indent = " " * label_width + GAP
    for label, text in rows:
        begin = label + " " * (label_width - cells(label))
        style = "bold yellow" if label == "!" else "bold cyan"
        first, *others = wrapped(text, width(), first=begin + GAP, indent=indent)
        console().print(Text.assemble((first[: len(begin)], style), first[len(begin) :]))
        for line in others:
            console().print(Text(line))


def print_list(columns: Sequence[Column[Row]], rows: Sequence[Row], *, now_ms: int = 0) -> None:
    """Print the rows of an answer: a table with a header for a person, tab-separated lines for a program.

    The lines have a header with ``--header``. ``now_ms`` is the time from which a person reads how long ago something
    was.
    """
    if not is_rich():
        names = [[column.name for column in columns if Face.PIPE in column.faces]] if _header[0] else []
        print_rows(names + lines(columns, rows))
        return
    for line in table(columns, rows, width(), now_ms):
        console().print(styled(line))


def styled(line: TableLine) -> Text:
    """A line of a table with its colours."""
    from rich.text import Text

    text = Text(line.text, "bold" if line.header else "dim" if line.below else "")
    for start, end, look in line.looks:
        text.stylize(LOOKS[look], start, end)
    return text


def say(text: str) -> None:
    """Talk to the person, beside the data: one line, broken between words where the terminal is narrower."""
    cleaned = sanitised(text)
    typer.echo("\n".join(wrapped(cleaned, width(), indent=GAP)) if sys.stderr.isatty() else cleaned, err=True)


def say_hidden(number: int, thing: str) -> None:
    """Say how many things a list leaves out because a person hides them."""
    if number:
        say(f"{counted(number, thing)} hidden here (--hidden shows them; autoresearch network hidden)")


def say_lines(text: str) -> None:
    """The same in several lines."""
    typer.echo(sanitised(text, lines=True), err=True)


def confirm(question: str) -> None:
    """Ask a person at the terminal before what can't be undone.

    Raises:
        Abort: the answer is no.
        UsageError: nobody can be asked.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"{question} It can't be undone.", hint="say --yes where no person can be asked")
    typer.confirm(sanitised(question), abort=True, err=True)


def _cells(row: Sequence[object]) -> list[str]:
    return ["" if cell is None else one_line(str(cell)) for cell in row]


# What `less` does for whoever chose nothing: it ends by itself where all fits, shows colours, leaves the text there.
LESS = "FRX"
_paging = [True]


def choose_paging(*, enabled: bool) -> None:
    """Keep what ``--no-pager`` said for the rest of this command."""
    _paging[0] = enabled


@contextmanager
def paged() -> Iterator[None]:
    """Show what is printed within in the pager, where a person looks at it and it is longer than the screen."""
    command = pager()
    if command is None:
        yield
        return
    terminal, sys.stdout = sys.stdout, _Screen()
    try:
        yield
    finally:
        text, sys.stdout = sys.stdout.getvalue(), terminal
        _show(text, command)


def is_attended() -> bool:
    """Whether a person looks at the output and types, and wants more than plain text: a pager, a screen with keys."""
    return _paging[0] and is_terminal() and sys.stdin.isatty() and os.environ.get("TERM") != "dumb"


def pager() -> list[str] | None:
    """The command of the pager, by PAGER, else `less` where there is one; None where there is none, or no person."""
    if not is_attended():
        return None
    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # a quotation mark that is never closed
        return None
    return words if words and words[0] != "cat" and shutil.which(words[0]) else None


class _Screen(io.StringIO):
    """Takes the place of a terminal, so that what is printed looks as it does there."""

    def isatty(self) -> bool:
        """It stands for one."""
        return True


def _show(text: str, command: list[str]) -> None:
    if text.count("\n") < shutil.get_terminal_size(USUAL_SIZE).lines:
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    environment = {**os.environ, "LESS": os.environ.get("LESS", LESS), "LESSCHARSET": "utf-8"}
    import subprocess

    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as showing:
        showing.communicate(text.encode(errors="replace"))


STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_diff(answer: DiffAnswer) -> None:
    """The unified diff, and beside it the values, the patches and the constants that changed."""
    old, new = answer.old_numbers, answer.new_numbers
    if old.reported is not None or new.reported is not None:
        say(f"reported {value(old.reported)} → {value(new.reported)}  {change(new.reported, old.reported)}".rstrip())
    if old.verified is not None or new.verified is not None:
        after = interval(new.verified, new.verified_margin)
        say(f"verified {interval(old.verified, old.verified_margin)} → {after}")
    if answer.is_parent and new.gain is not None:
        say(f"gain {gain_words(new)}, in pairs")
    patches = [name if new else f"-{name[1:]}" for name, (_, new) in answer.change.items() if name.startswith("+")]
    constants = [f"{name} {old} → {new}" for name, (old, new) in answer.change.items() if not name.startswith("+")]
    for label, changes in (("patches", patches), ("constants", constants)):
        if changes:
            say(f"{label}: {', '.join(changes)}")
    if not is_rich():
        print_exactly(answer.diff)
        return
    for line in answer.diff.split("\n"):
        print_text(line + "\n", style=STYLES.get(line[:1], ""))
