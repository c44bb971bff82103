"""Events as lines: one each; of runs that ended with their value, of runs in hand with what is left."""

from __future__ import annotations

from autoresearch.api import Event
from autoresearch.figures import clock, moment, value
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import is_rich, print_json, print_line, print_rows
from autoresearch_cli.watching import finished_line, number_in, progress_line, text_in

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
            _print_line(event)

    def _is_due(self, event: Event) -> bool:
        key = text_in(event, "assignment")
        if event.time_ms - self._told_ms.get(key, 0) < PROGRESS_EVERY_MS:
            return False
        self._told_ms[key] = event.time_ms
        return True


def _print_line(event: Event) -> None:
    text = words(event)
    if is_rich():
        print_line("  ".join(filter(None, (clock(event.time_ms, seconds=True), event.kind, text))))
    else:
        print_rows([(event.id or "", moment(event.time_ms), event.kind, text)], flush=True)


def words(event: Event) -> str:
    """What an event says."""
    match event.kind:
        case "progress":
            return progress_line(event)
        case "run_finished" | "run_failed":
            return finished_line(event)
        case "best":  # the line of the run that ended comes before it
            return f"{value(number_in(event, 'value'))} is the best so far: {short(text_in(event, 'id'))}"
        case "record" if event.data.get("status"):
            return finished_line(event)
        case "run_started":
            return " · ".join(filter(None, (event.text, text_in(event, "task"))))
        case "worker" | "state":
            return text_in(event, "reason") or event.text
        case _:
            return event.text
