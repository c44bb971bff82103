"""Long answers in a pager: on a terminal only, and only what does not fit on one screen."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from autoresearch_cli.rendering.output import USUAL_SIZE, is_terminal

# What `less` does for whoever chose nothing: it ends by itself where all fits, shows colours, leaves the text there.
LESS = "FRX"
_wanted = [True]


def choose_paging(*, wanted: bool) -> None:
    """Keep what ``--no-pager`` said for the rest of this command."""
    _wanted[0] = wanted


@contextmanager
def paged() -> Iterator[None]:
    """Show what is printed within in the pager, where a person looks at it and it is longer than the screen."""
    command = pager()
    if command is None:
        yield
        return
    terminal, sys.stdout = sys.stdout, _Screen()
    try:
        yield
    finally:
        text, sys.stdout = sys.stdout.getvalue(), terminal
        _show(text, command)


def pager() -> list[str] | None:
    """The command of the pager, by PAGER, else `less` where there is one; None where there is none, or no person."""
    if not (_wanted[0] and is_terminal() and sys.stdin.isatty()) or os.environ.get("TERM") == "dumb":
        return None
    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # a quotation mark that is never closed
        return None
    return words if words and words[0] != "cat" and shutil.which(words[0]) else None


class _Screen(io.StringIO):
    """Takes the place of a terminal, so that what is printed looks as it does there."""

    def isatty(self) -> bool:
        """It stands for one."""
        return True


def _show(text: str, command: list[str]) -> None:
    if text.count("\n") < shutil.get_terminal_size(USUAL_SIZE).lines:
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    environment = {**os.environ, "LESS": os.environ.get("LESS", LESS), "LESSCHARSET": "utf-8"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as showing:
        showing.communicate(text.encode(errors="replace"))
