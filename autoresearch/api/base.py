"""What all answers have in common, and the answer that is an error."""

from __future__ import annotations

import msgspec


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all answers."""


class Failure(Answer, frozen=True, kw_only=True):
    """An error: the sentence, what to do next, and the exit status that the command line would have."""

    error: str
    hint: str = ""
    exit_status: int = 1
