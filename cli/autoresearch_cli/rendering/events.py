"""Events as lines: one each, the same on a terminal and in a pipe."""

from __future__ import annotations

from autoresearch.answers import Event
from autoresearch_cli.rendering.figures import moment, one_line
from autoresearch_cli.rendering.output import print_json, print_rows


def print_event(event: Event, *, json: bool) -> None:
    """Print one event at once: a reader of the pipe waits for it."""
    if json:
        print_json(event)
        return
    print_rows([(event.id or "", moment(event.time_ms), event.kind, one_line(event.text))], flush=True)
