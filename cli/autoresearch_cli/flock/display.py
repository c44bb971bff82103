"""A flock on a terminal: a row a daemon that is redrawn, with finished lines above; or plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from autoresearch_cli.flock.state import FlockState, Line, holding, row, standing
from autoresearch_cli.rendering.output import say, wants_color

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

PLAIN_SECONDS = 10.0
TITLE_CHARACTERS = 44
BAR_CHARACTERS = 16


class FlockDisplay:
    """Shows the state of a flock; ``live`` is the context in which the rows are redrawn."""

    def __init__(self, state: FlockState, *, quiet: bool) -> None:
        self._state = state
        self._quiet = quiet
        self._spoken = time.monotonic()
        self._live: Live | None = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, highlight=False, markup=False, emoji=False, no_color=not wants_color())
            self._live = Live(
                get_renderable=lambda: picture(state), console=console, transient=True, refresh_per_second=4
            )

    def live(self) -> AbstractContextManager[object]:
        """While this is entered the rows are on the screen."""
        return self._live or nullcontext()

    def line(self, line: Line) -> None:
        """Keep a line: above the rows, and in the pipe when standard output is one."""
        if self._live and sys.stdout.isatty() and not self._quiet:
            from rich.text import Text

            self._live.console.print(Text(line.text, style=line.style), soft_wrap=True)
        elif not self._quiet:
            sys.stdout.write(line.text + "\n")
            sys.stdout.flush()

    def look(self) -> None:
        """Without a terminal: say every ten seconds where everybody stands."""
        now = time.monotonic()
        if self._live or now - self._spoken < PLAIN_SECONDS:
            return
        self._spoken = now
        say(standing(self._state))
        for member in self._state.members.values():
            say(f"  {row(member)}")


def picture(state: FlockState) -> Table:
    """A row for each daemon and one for where they stand."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    rows = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), show_footer=False)
    for _ in range(5):
        rows.add_column(no_wrap=True)
    for member in state.members.values():
        gone = "red" if member.ended else ""
        rows.add_row(
            Text(member.name, style=gone or "bold cyan"),
            Text(member.doing[:TITLE_CHARACTERS], style=gone),
            ProgressBar(total=1.0, completed=member.fraction, width=BAR_CHARACTERS) if member.in_hand else Text(""),
            Text(member.note),
            Text(holding(member), style="yellow" if member.behind else "green"),
        )
    whole = Table.grid()
    whole.add_row(rows)
    whole.add_row(Text(standing(state), style="bold"))
    return whole
