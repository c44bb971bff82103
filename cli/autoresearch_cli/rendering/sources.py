"""Sources, training logs and diffs: exact in a pipe, harmless and coloured on a terminal."""

from __future__ import annotations

import sys

from autoresearch.answers import DiffAnswer
from autoresearch_cli.rendering.figures import change, safe, value
from autoresearch_cli.rendering.output import console, is_rich, is_terminal, print_text, say

STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_source(text: str) -> None:
    """Print text of others: as it is into a pipe, without control characters on a terminal."""
    if is_terminal():
        print_text(safe(text))
    else:
        print_exactly(text)


def print_exactly(text: str) -> None:
    """Write text to standard output as UTF-8, whatever the locale is, with its own ends of lines."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def print_diff(answer: DiffAnswer) -> None:
    """The unified diff, and beside it the values and the constants that changed."""
    if answer.old_value is not None or answer.new_value is not None:
        difference = change(answer.new_value, answer.old_value)
        say(f"{value(answer.old_value)} → {value(answer.new_value)}  {difference}".rstrip())
    for name, (old, new) in answer.change.items():
        say(f"{safe(name)}: {safe(str(old))} → {safe(str(new))}")
    if not is_rich():
        print_exactly(answer.diff)
        return
    from rich.text import Text

    for line in answer.diff.split("\n"):
        console().print(Text(safe(line), style=STYLES.get(line[:1], "")))
