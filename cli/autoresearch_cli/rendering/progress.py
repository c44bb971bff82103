"""Runs in hand on a terminal (a bar each) or elsewhere (a line every ten seconds), and lines about what happened."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from autoresearch.figures import percent
from autoresearch.sanitise import one_line
from autoresearch_cli.rendering.output import print_line, say, wants_color

if TYPE_CHECKING:
    from rich.progress import TaskID

PLAIN_SECONDS = 10.0
# A bar is as wide as this where there is room; it is left out where the title would have less.
BAR_CHARACTERS = 24
LEAST_CHARACTERS = 24
# What a row has besides: the percentage, a note such as "step 1082  loss 1.226", “12 min left”, gaps.
BESIDE_CHARACTERS = 42
TITLE_CHARACTERS = 60


class Display(Protocol):
    """Where runs in hand are shown; a context manager."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        ...

    def progress(self, key: str, title: str, fraction: float, note: str, *, left: str = "") -> None:
        """The run ``key`` is so far; ``left`` says how long it goes on."""
        ...

    def ended(self, key: str) -> None:
        """The run ``key`` is over."""
        ...

    def line(self, text: str, *, style: str = "") -> None:
        """Something to keep: one line."""
        ...


def choose_display(*, quiet: bool = False) -> Display:
    """Bars when a person looks at the talk, plain lines else; ``quiet`` keeps lines off standard output."""
    return TerminalDisplay(quiet=quiet) if sys.stderr.isatty() else PlainDisplay(quiet=quiet)


class PlainDisplay:
    """Lines: what happened on standard output, progress every ten seconds on standard error."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._spoken: dict[str, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def progress(self, key: str, title: str, fraction: float, note: str, *, left: str = "") -> None:
        """Say how far the run is, unless that was said within ten seconds."""
        now = time.monotonic()
        if now - self._spoken.get(key, -PLAIN_SECONDS) >= PLAIN_SECONDS:
            self._spoken[key] = now
            say("  ".join(filter(None, (percent(fraction), title, note, left))))

    def ended(self, key: str) -> None:
        """Forget when the run was last spoken of."""
        self._spoken.pop(key, None)

    def line(self, text: str, *, style: str = "") -> None:
        """Print the line."""
        del style
        if not self._quiet:
            print_line(text)


class TerminalDisplay:
    """A bar for each run in hand, with finished lines above."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._quiet = quiet
        console = Console(stderr=True, highlight=False, markup=False, emoji=False, no_color=not wants_color())
        room = console.width - BESIDE_CHARACTERS
        bar = min(BAR_CHARACTERS, room // 3) if room >= LEAST_CHARACTERS * 3 // 2 else 0
        self._title_characters = max(1, min(TITLE_CHARACTERS, room - bar))
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            *([BarColumn(bar_width=bar)] if bar else []),
            TextColumn("{task.percentage:>3.0f}%", markup=False),
            TextColumn("{task.fields[note]}", markup=False),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def progress(self, key: str, title: str, fraction: float, note: str, *, left: str = "") -> None:
        """Move the run's bar."""
        title, note = one_line(title, self._title_characters), one_line(note)
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task(title, total=1.0, note=note, left=left)
        self._bars.update(self._tasks[key], description=title, completed=fraction, note=note, left=left)

    def ended(self, key: str) -> None:
        """Take the run's bar away."""
        if key in self._tasks:
            self._bars.remove_task(self._tasks.pop(key))

    def line(self, text: str, *, style: str = "") -> None:
        """Print above the bars; into the pipe when standard output is one."""
        if not self._quiet:
            print_line(text, style=style, above=self._bars.console)
