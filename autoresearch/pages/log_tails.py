"""The end of what a run printed, as lines for a page. Pure; what is shown is cleaned and clipped here."""

from __future__ import annotations

from typing import NamedTuple

from autoresearch.sanitise import sanitised

MOST_LINES = 200
MOST_CHARACTERS = 400


class LogTail(NamedTuple):
    """The last lines of a log that has ``total`` lines."""

    lines: list[str]
    total: int

    @property
    def left_out(self) -> int:
        """How many lines stand before them."""
        return self.total - len(self.lines)


def log_tail(text: str) -> LogTail:
    """The last lines of a log. Of a line that is written over by carriage returns it has what was written last."""
    ended = text.removesuffix("\n")
    if not ended:
        return LogTail([], 0)
    last = ended.rsplit("\n", MOST_LINES)[-MOST_LINES:]
    return LogTail([_shown(line) for line in last], ended.count("\n") + 1)


def _shown(line: str) -> str:
    last = line.rstrip("\r").rpartition("\r")[2]
    clean = sanitised(last[: MOST_CHARACTERS + 1].expandtabs(4))
    return clean if len(clean) <= MOST_CHARACTERS else f"{clean[:MOST_CHARACTERS]}…"
