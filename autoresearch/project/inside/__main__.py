"""Starts the word that stands first on the command line. A wrong file or component is a sentence and an exit status."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.project import acr
from autoresearch.project.inside import evaluation, training

_WORDS: dict[str, Callable[[], None]] = {
    "train": training.train,
    "order": training.carry_out,
    "answer": evaluation.answer,
    "examine": evaluation.examine,
}


def main(words: list[str]) -> int:
    """Do what the word says. Returns the exit status."""
    folder = str(Path.cwd())
    # A component's file takes the place of no module, but is found where no module has its name.
    sys.path[:] = [*(path for path in sys.path if path not in ("", folder)), folder]
    sys.modules["acr"] = acr
    try:
        if len(words) != 1 or words[0] not in _WORDS:
            raise UsageError(f"give one of the words {', '.join(_WORDS)}", hint=f"not {' '.join(words) or 'nothing'}")
        _WORDS[words[0]]()
    except AutoresearchError as error:
        if error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        hint = f" → {error.hint}" if error.hint else ""
        sys.stderr.write(f"{error}{hint}\n")  # the log's last line
        return error.exit_status
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a component's own threads must not hold it
