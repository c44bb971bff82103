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


def passphrase(what: str, *, confirm: bool = False, instead: str = "") -> str:
    """The passphrase for ``what``. Raises UsageError when nobody can be asked and none is given.

    ``instead`` is what else a person may do then.
    """
    given = _given()
    if given:
        return given
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
