"""The two streams: answers on standard output, talk on standard error; JSON, plain lines or colour. Knows no answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

import typer

from autoresearch_cli.rendering.figures import one_line

if TYPE_CHECKING:
    import msgspec
    from rich.console import Console

_color = ["auto"]
# Between the columns of a table.
GAP = "  "
# What a last column needs to be read beside the others.
ROOM_CHARACTERS = 28


def choose_color(when: str) -> None:
    """Keep what ``--color`` said for the rest of this command."""
    _color[0] = when
    console.cache_clear()


def is_terminal() -> bool:
    """Whether a person looks at standard output."""
    return sys.stdout.isatty()


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
    )


def print_json(answer: msgspec.Struct) -> None:
    """Print one document in one line, as it is."""
    import msgspec

    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
    sys.stdout.flush()


def print_text(text: str) -> None:
    """Print text as it is, ending with a newline."""
    sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")


def print_rows(rows: Iterable[Sequence[object]], *, flush: bool = False) -> None:
    """Print rows as tab-separated lines: no borders, nothing cut off."""
    for row in rows:
        sys.stdout.write("\t".join("" if cell is None else one_line(str(cell)) for cell in row) + "\n")
    if flush:
        sys.stdout.flush()


def print_labelled(lines: Iterable[tuple[str, str]]) -> None:
    """Print label and text: aligned for a person, tab-separated for a program."""
    rows = list(lines)
    if not is_rich():
        print_rows(rows)
        return
    from rich.text import Text

    width = max((len(label) for label, _ in rows), default=0)
    for label, text in rows:
        style = "bold yellow" if label == "!" else "bold cyan"
        console().print(Text.assemble((label.ljust(width), style), "  ", text))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """Print a table: with a header and columns for a person, as tab-separated lines for a program.

    Only the last column is broken into lines where the terminal is narrow, or stands below its row where it has no
    room: ids and keys stay whole, to be copied.
    """
    if not is_rich():
        print_rows(rows)
        return
    from rich.cells import cell_len

    cells = [["" if cell is None else one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    room = console().width - sum(widths[:-1]) - len(GAP) * (len(columns) - 1)
    if widths[-1] > room and room < ROOM_CHARACTERS:
        _print_below(columns, cells, widths, right)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, len(GAP), 0, 0))
    for column in columns:
        justify: Literal["right", "left"] = "right" if column in right else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=column is not columns[-1])
    for row in cells:
        table.add_row(*map(Text, row))
    console().print(table, soft_wrap=False)


def _print_below(
    columns: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[str]
) -> None:
    """Each row with what the last column holds on a line of its own."""
    from rich.cells import cell_len
    from rich.text import Text

    def line(row: Sequence[str]) -> str:
        pads = [" " * (width - cell_len(cell)) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
        kept = zip(columns, row[:-1], pads, strict=False)
        return GAP.join(pad + cell if name in right else cell + pad for name, cell, pad in kept).rstrip()

    console().print(Text(line(columns), "bold"))
    for row in cells:
        console().print(Text(line(row)))
        if row[-1]:
            console().print(Text(GAP + row[-1], "dim"))


def say(text: str) -> None:
    """Talk to the person, beside the data."""
    typer.echo(text, err=True)
