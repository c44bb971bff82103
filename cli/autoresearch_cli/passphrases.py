"""Where passphrases come from: a variable, a file descriptor, or a person at a terminal; never an argument."""

from __future__ import annotations

import os
import sys

import typer

from autoresearch.errors import UsageError
from autoresearch_cli import here

VARIABLE = "AUTORESEARCH_PASSPHRASE"
DESCRIPTOR = "AUTORESEARCH_PASSPHRASE_FD"
_BYTES_MAX = 1024
# A new one with fewer is guessed in seconds.
LEAST_CHARACTERS = 8


def passphrase(what: str, *, confirm: bool = False, instead: str = "") -> str:
    """The passphrase for ``what``. ``confirm``: it is a new one. ``instead`` is what else a person may do.

    Raises:
        UsageError: nobody can be asked and none is given, or a new one is too short.
    """
    found = _given() or _asked(what, confirm=confirm, instead=instead)
    if confirm and len(found) < LEAST_CHARACTERS:
        raise UsageError(
            f"the passphrase has less than {LEAST_CHARACTERS} characters", hint="several words are easy to remember"
        )
    return found


def _asked(what: str, *, confirm: bool, instead: str) -> str:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"the passphrase {what} is needed, and there is no terminal to ask at",
            hint="; ".join(filter(None, (f"set {VARIABLE}, or {DESCRIPTOR} to an open file descriptor", instead))),
        )
    return str(typer.prompt(f"Passphrase {what}", hide_input=True, confirmation_prompt=confirm, err=True))


def _given() -> str:
    number = here.environment().get(DESCRIPTOR)
    if not number:
        return here.environment().get(VARIABLE, "")
    try:
        with os.fdopen(int(number), "rb", closefd=False) as file:
            return file.readline(_BYTES_MAX).decode().rstrip("\r\n")
    except (ValueError, OSError) as error:
        raise UsageError(f"{DESCRIPTOR} names no file that can be read: {error}") from error
