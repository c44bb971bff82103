"""An answer as frames: a value, or an error by its name, sentence and hint. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autoresearch import errors
from autoresearch.errors import AutoresearchError, BadMessage
from autoresearch.messages import decode, encode
from autoresearch.sanitise import one_line

_VALUE, _ERROR = b"\x00", b"\x01"
_SENTENCE = 500
# Errors that keep their class over the wire; another one arrives as ServiceFailed.
_NAMED = {kind.__name__: kind for kind in (errors.NoAnswer, errors.ServiceRefused, errors.BadMessage)}


def value_frames(value: object) -> list[bytes | memoryview]:
    """The frames of an answer. Raises BadMessage where it cannot be sent."""
    frames = encode(value)
    frames[0] = _VALUE + frames[0]
    return frames


def failure_frames(error: AutoresearchError) -> list[bytes | memoryview]:
    """The frames that raise this error at the client."""
    return [_ERROR + encode([type(error).__name__, str(error)[:_SENTENCE], error.hint[:_SENTENCE]])[0]]


def read_answer(frames: Sequence[bytes | memoryview]) -> Any:  # noqa: ANN401 - a message may hold anything
    """The value of an answer.

    Raises:
        ServiceError: the server answered with an error, or with something that is no answer.
    """
    head = frames[0]
    if head[:1] == _VALUE:
        return decode([memoryview(head)[1:], *frames[1:]])
    match decode([head[1:]]) if head[:1] == _ERROR else None:
        case [str() as name, str() as sentence, str() as hint]:
            kind = _NAMED.get(name, errors.ServiceFailed)
            raise kind(one_line(sentence, _SENTENCE), hint=one_line(hint, _SENTENCE))
    raise BadMessage("what the server answered is no answer", hint="is it another program's port?")
