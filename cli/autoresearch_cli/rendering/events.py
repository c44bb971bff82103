"""Events as lines: one each; of runs that ended with their value."""

from __future__ import annotations

from autoresearch.api import Event
from autoresearch_cli.rendering.figures import clock, moment
from autoresearch_cli.rendering.output import is_rich, print_json, print_line, print_rows
from autoresearch_cli.watching import finished_line

ENDED = ("run_finished", "run_failed")
# Comes twice a second and says no more than the bars of `work --follow`.
PROGRESS = "progress"


def print_event(event: Event, *, json: bool) -> None:
    """Print one event at once: a reader of the pipe waits for it. A person is spared the progress of runs."""
    if json:
        print_json(event)
        return
    text = finished_line(event) if event.kind in ENDED else event.text
    if not is_rich():
        print_rows([(event.id or "", moment(event.time_ms), event.kind, text)], flush=True)
    elif event.kind != PROGRESS:
        print_line("  ".join(filter(None, (clock(event.time_ms, seconds=True), event.kind, text))))
