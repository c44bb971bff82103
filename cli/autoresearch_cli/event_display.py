"""Runs in hand on a terminal (a bar each) or elsewhere (a line every ten seconds), and events as lines, one each.

Knows no connection.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from autoresearch.ask.node import Event
from autoresearch.face.columns.column import short
from autoresearch.text import brief, clock, duration, largest_unit, moment, one_line, percent, signed, value
from autoresearch_cli.rendering.layout import shortened
from autoresearch_cli.rendering.output import is_rich, print_json, print_line, print_rows, say, wants_color

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""

    def progress(self, key: str, title: str, fraction: float, note: str, *, left: str = "") -> None:
        """The run ``key`` is so far; ``left`` says how long it goes on."""

    def ended(self, key: str) -> None:
        """The run ``key`` is over."""

    def line(self, text: str, *, style: str = "") -> None:
        """Something to keep: one line."""


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
        title, note = shortened(one_line(title), self._title_characters), one_line(note)
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


OK = "ok"


@dataclass(slots=True)
class EventMonitor:
    """Shows events and counts what ended.

    ``only`` restricts it to one assignment; ``standing`` says, after a run, where things stand.
    """

    display: Display
    only: str | None = None
    standing: Callable[[], str] = str
    runs: int = 0
    failed: int = 0
    in_hand: dict[str, tuple[str, float]] = field(default_factory=dict)
    """The title of each run that goes on, and how far it is, 0..1."""

    def take(self, event: Event) -> bool:
        """Show one event. Whether it ended a run, or the attempt at one."""
        key = text_in(event, "assignment")
        if self.only is not None and key != self.only:
            return False
        match event.kind:
            case "run_started" | "check_started":
                self.in_hand[key] = (event.text, 0.0)
                self.display.progress(key, event.text, 0.0, "")
            case "progress":
                title = self.in_hand.get(key, ("", 0.0))[0] or text_in(event, "title") or "run"
                fraction, note = progress_in(event)
                self.in_hand[key] = (title, fraction)
                self.display.progress(key, title, fraction, note, left=time_left(event))
            case "run_finished" | "run_failed":
                self._ended(event, key)
                return True
            case "committed" | "verified" | "evidence":
                self.display.ended(key)
                self.in_hand.pop(key, None)
            case "confirmed" | "demoted" | "verdict" | "trust" | "condition" | "order_ended":
                self.display.line(event.text, style="bold")
            case "state" | "worker":
                self.display.line(text_in(event, "reason") or event.text, style="dim")
            case _:
                pass
        return False

    def _ended(self, event: Event, key: str) -> None:
        self.display.ended(key)
        self.in_hand.pop(key, None)
        self.runs += 1
        good = text_in(event, "status") == OK
        self.failed += not good
        parts = [finished_line(event), self.standing()]
        self.display.line(" · ".join(part for part in parts if part), style="" if good else "yellow")


def finished_line(event: Event) -> str:
    """One run that ended: its reported value and gain on its parent, or how it failed and why."""
    title = f"“{text_in(event, 'title') or event.text}”"
    status = text_in(event, "status")
    if status != OK:
        reason = text_in(event, "reason") or event.text
        return f"✗ {status or 'failed'}  {title}  {reason}".rstrip()
    gain = number_in(event, "gain_reported")
    sign = "★" if event.data.get("is_best") else "✓" if gain is None or gain > 0 else "·"
    against = "" if gain is None else f"gain {signed(gain)}" if gain > 0 else f"worse by {value(-gain)}"
    against = "as its parent" if gain == 0 else against
    parts = (f"{sign} {value(number_in(event, 'reported'))} reported", against, title, _circumstances(event))
    return "  ".join(part for part in parts if part)


def _circumstances(event: Event) -> str:
    """The task of a run that ended, how long it took, and its id."""
    took = number_in(event, "duration_ms")
    parts = (text_in(event, "task"), "" if took is None else duration(took), short(text_in(event, "id")))
    return " · ".join(filter(None, parts))


def progress_line(event: Event) -> str:
    """How far a run is: its title, task, share, step and loss, and how long it has taken and still takes."""
    fraction, note = progress_in(event)
    elapsed = number_in(event, "elapsed_ms")
    times = ("" if elapsed is None else duration(elapsed), time_left(event))
    parts = (
        percent(fraction),
        f"“{text_in(event, 'title')}”",
        text_in(event, "task"),
        note,
        ", ".join(filter(None, times)),
    )
    return "  ".join(filter(None, parts))


def progress_in(event: Event) -> tuple[float, str]:
    """How far a run is, 0..1, and its step and loss."""
    fraction, step, loss = (number_in(event, name) for name in ("fraction", "step", "loss"))
    note = "" if step is None else f"step {step:.0f}"
    return min(max(fraction or 0.0, 0.0), 1.0), f"{note}  loss {brief(loss)}" if loss is not None else note


def time_left(event: Event) -> str:
    """How long a run goes on, in its largest unit; empty while nobody can say."""
    left = number_in(event, "left_ms")
    return "" if left is None else f"{largest_unit(left)} left"


def text_in(event: Event, name: str) -> str:
    """A text among an event's data, or nothing."""
    datum = event.data.get(name)
    return datum if isinstance(datum, str) else ""


def number_in(event: Event, name: str) -> float | None:
    """A number among an event's data."""
    datum = event.data.get(name)
    return float(datum) if isinstance(datum, int | float) and not isinstance(datum, bool) else None


PROGRESS = "progress"
# A person needs no line a second; `--json` has all.
PROGRESS_EVERY_MS = 10_000


class EventLines:
    """Prints each event at once: a reader of the pipe waits for it."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._told_ms: dict[str, int] = {}

    def print(self, event: Event) -> None:
        """Print one event; of a run's progress one line in ten seconds, except as JSON."""
        if self._json:
            print_json(event)
        elif event.kind != PROGRESS or self._is_due(event):
            text = words(event)
            if is_rich():
                print_line("  ".join(filter(None, (clock(event.time_ms, seconds=True), event.kind, text))))
            else:
                print_rows([(event.id or "", moment(event.time_ms), event.kind, text)], flush=True)

    def _is_due(self, event: Event) -> bool:
        key = text_in(event, "assignment")
        if event.time_ms - self._told_ms.get(key, 0) < PROGRESS_EVERY_MS:
            return False
        self._told_ms[key] = event.time_ms
        return True


def words(event: Event) -> str:
    """What an event says."""
    match event.kind:
        case "progress":
            return progress_line(event)
        case "run_finished" | "run_failed":
            return finished_line(event)
        case "best":  # the line of the run that ended comes before it
            return f"{value(number_in(event, 'reported'))} reported is the best so far: {short(text_in(event, 'id'))}"
        case "record" if event.data.get("status"):
            return finished_line(event)
        case "run_started":
            return " · ".join(filter(None, (event.text, text_in(event, "task"))))
        case "worker" | "state":
            return text_in(event, "reason") or event.text
        case _:
            return event.text
