"""Diffs: exact in a pipe, coloured on a terminal."""

from __future__ import annotations

from autoresearch.api import DiffAnswer
from autoresearch.figures import change, value
from autoresearch_cli.rendering.output import is_rich, print_exactly, print_text, say

STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_diff(answer: DiffAnswer) -> None:
    """The unified diff, and beside it the values, the patches and the constants that changed."""
    if answer.old_value is not None or answer.new_value is not None:
        difference = change(answer.new_value, answer.old_value)
        say(f"{value(answer.old_value)} → {value(answer.new_value)}  {difference}".rstrip())
    patches = [name if new else f"-{name[1:]}" for name, (_, new) in answer.change.items() if name.startswith("+")]
    constants = [f"{name} {old} → {new}" for name, (old, new) in answer.change.items() if not name.startswith("+")]
    for label, changes in (("patches", patches), ("constants", constants)):
        if changes:
            say(f"{label}: {', '.join(changes)}")
    if not is_rich():
        print_exactly(answer.diff)
        return
    for line in answer.diff.split("\n"):
        print_text(line + "\n", style=STYLES.get(line[:1], ""))
