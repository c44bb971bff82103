"""A demo cluster on a terminal: a row a daemon that is redrawn, with finished lines above; or plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from autoresearch.sanitise import one_line
from autoresearch_cli.demo_cluster.state import DemoState, Line, holding, row, standing
from autoresearch_cli.rendering.output import print_line, say, wants_color

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

PLAIN_SECONDS = 10.0
TITLE_CHARACTERS = 44
BAR_CHARACTERS = 16
NOTE_CHARACTERS = 22
# What a row always has besides: the daemon's name, how many records it holds, gaps.
BESIDE_CHARACTERS = 50
# A bar and a note are left out where less than this would be left for what a daemon does.
LEAST_CHARACTERS = 20


class DemoDisplay:
    """Shows the state of a demo cluster; ``live`` is the context in which the rows are redrawn."""

    def __init__(self, state: DemoState, *, quiet: bool) -> None:
        self._state = state
        self._quiet = quiet
        self._spoken = time.monotonic()
        self._live: Live | None = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, highlight=False, markup=False, emoji=False, no_color=not wants_color())
            self._live = Live(
                get_renderable=lambda: picture(state, console.width),
                console=console,
                transient=True,
                refresh_per_second=4,
            )

    def live(self) -> AbstractContextManager[object]:
        """While this is entered the rows are on the screen."""
        return self._live or nullcontext()

    def line(self, line: Line) -> None:
        """Keep a line: above the rows, and in the pipe when standard output is one."""
        if not self._quiet:
            print_line(line.text, style=line.style, above=self._live.console if self._live else None)

    def look(self) -> None:
        """Without a terminal: say every ten seconds where everybody stands."""
        now = time.monotonic()
        if self._live or now - self._spoken < PLAIN_SECONDS:
            return
        self._spoken = now
        say(standing(self._state))
        for member in self._state.members.values():
            say(f"  {row(member)}")


def picture(state: DemoState, width: int) -> Table:
    """A row for each daemon and one for where they stand; without the bars and the notes where it is narrow."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    rows = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), show_footer=False)
    room = width - BESIDE_CHARACTERS
    has_bars = room >= LEAST_CHARACTERS + BAR_CHARACTERS
    room -= BAR_CHARACTERS * has_bars
    has_notes = room >= LEAST_CHARACTERS + NOTE_CHARACTERS
    room -= NOTE_CHARACTERS * has_notes
    for member in state.members.values():
        gone = "red" if member.ended else ""
        bar = ProgressBar(total=1.0, completed=member.fraction, width=BAR_CHARACTERS) if member.in_hand else Text("")
        rows.add_row(
            Text(member.name, style=gone or "bold cyan"),
            Text(one_line(member.doing, max(1, min(TITLE_CHARACTERS, room))), style=gone),
            *([bar] if has_bars else []),
            *([Text(one_line(member.note))] if has_notes else []),
            Text(holding(member), style="yellow" if member.behind else "green"),
        )
    for column in rows.columns:
        column.no_wrap = True
    whole = Table.grid()
    whole.add_row(rows)
    whole.add_row(Text(standing(state), style="bold"))
    return whole
