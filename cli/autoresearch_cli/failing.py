"""From an exception to what a person reads: a sentence, a hint, an exit status."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typer import Abort, TyperException

from autoresearch.errors import AutoresearchError

if TYPE_CHECKING:
    from autoresearch_cli.models import Problem


@dataclass(frozen=True, slots=True)
class Mishap:
    """What went wrong, ready to be printed."""

    error: str
    hint: str = ""
    exit_status: int = 1
    usage: str = ""

    def failure(self) -> Problem:
        """The same for programs."""
        from autoresearch_cli.models import Problem

        return Problem(error=self.error, hint=self.hint, exit_status=self.exit_status)


def mishap(error: Exception) -> Mishap:
    """Describe any exception that reached the command line."""
    if isinstance(error, AutoresearchError):
        return Mishap(f"{error}", hint=error.hint, exit_status=error.exit_status)
    if isinstance(error, TyperException):
        return _wrong_usage(error)
    if isinstance(error, Abort):
        return Mishap("stopped", exit_status=130)
    if isinstance(error, OSError):
        place = f": {error.filename}" if error.filename else ""
        return Mishap(f"{error.strerror or error}{place}", hint="autoresearch doctor checks disk space and permissions")
    sqlite = sys.modules.get("sqlite3")
    if sqlite is not None and isinstance(error, sqlite.Error):
        return Mishap(f"the log can't be read: {error}", hint="autoresearch doctor")
    return Mishap(
        f"this is a bug in autoresearch: {type(error).__name__}: {error}",
        hint="the same command with --debug shows where; please report it",
    )


def _wrong_usage(error: TyperException) -> Mishap:
    context = getattr(error, "ctx", None)
    if context is None:
        return Mishap(error.format_message(), exit_status=error.exit_code)
    if type(error).__name__ == "NoArgsIsHelpError":
        return Mishap("", usage=error.format_message(), exit_status=error.exit_code)
    return Mishap(
        error.format_message(),
        hint=f"{context.command_path} --help",
        exit_status=error.exit_code,
        usage=context.get_usage(),
    )
