"""From events to a display: runs in hand, runs that ended, what the node does. Knows no connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from autoresearch.api import Event
from autoresearch.figures import duration, largest_unit, percent, value
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.progress import Display

OK = "ok"


@dataclass(slots=True)
class Watch:
    """Shows events and counts what ended.

    ``only`` restricts it to one assignment; ``standing`` says, after a run, where things stand.
    """

    display: Display
    only: str | None = None
    standing: Callable[[], str] = str
    runs: int = 0
    failed: int = 0
    _titles: dict[str, str] = field(default_factory=dict)

    def take(self, event: Event) -> bool:
        """Show one event. Whether it ended a run, or the attempt at one."""
        key = text_in(event, "assignment")
        if self.only is not None and key != self.only:
            return False
        match event.kind:
            case "run_started" | "check_started":
                self._titles[key] = event.text
                self.display.progress(key, event.text, 0.0, "")
            case "progress":
                title = self._titles.get(key) or text_in(event, "title") or "run"
                self.display.progress(key, title, *progress_in(event), left=time_left(event))
            case "run_finished" | "run_failed":
                self._ended(event, key)
                return True
            case "committed" | "verified" | "evidence":
                self.display.ended(key)
                self._titles.pop(key, None)
            case "confirmed" | "demoted" | "trust":
                self.display.line(event.text, style="bold")
            case "state" | "worker":
                self.display.line(text_in(event, "reason") or event.text, style="dim")
            case _:
                pass
        return False

    def _ended(self, event: Event, key: str) -> None:
        self.display.ended(key)
        self._titles.pop(key, None)
        self.runs += 1
        good = text_in(event, "status") == OK
        self.failed += not good
        parts = [finished_line(event), self.standing()]
        self.display.line(" · ".join(part for part in parts if part), style="" if good else "yellow")


def finished_line(event: Event) -> str:
    """One run that ended: its value and the change against its parent, or how it failed and why."""
    title = f"“{text_in(event, 'title') or event.text}”"
    status = text_in(event, "status")
    if status != OK:
        reason = text_in(event, "reason") or event.text
        return f"✗ {status or 'failed'}  {title}  {reason}".rstrip()
    delta, parent = number_in(event, "delta"), number_in(event, "parent_value")
    sign = "★" if event.data.get("is_best") else "✓"
    better = "" if delta is None else f"{delta:+.4f}"
    against = "" if parent is None else f"parent {value(parent)}"
    parts = (f"{sign} {value(number_in(event, 'value'))}", better, against, title, _circumstances(event))
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
    return min(max(fraction or 0.0, 0.0), 1.0), f"{note}  loss {loss:.3f}" if loss is not None else note


def time_left(event: Event) -> str:
    """How long a run goes on, in its largest unit; empty while nobody can say."""
    left = number_in(event, "left_ms")
    return "" if left is None else f"{largest_unit(left)} left"


def text_in(event: Event, name: str) -> str:
    """A text among an event's data, or nothing."""
    found = event.data.get(name)
    return found if isinstance(found, str) else ""


def number_in(event: Event, name: str) -> float | None:
    """A number among an event's data."""
    found = event.data.get(name)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None
