"""The result channel: JSON lines from a program that nobody trusts. Nothing it writes raises."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

LINE_BYTES = 64 * 1024
TOTAL_BYTES = 8 * 1024 * 1024
CURVE_POINTS = 64

_Name = Annotated[str, Meta(min_length=1, max_length=64)]


class Progress(msgspec.Struct, frozen=True, tag_field="event", tag="progress"):
    """How far a run is: ``fraction`` of its budget, steps done, training loss in bits, mean reward of late episodes."""

    fraction: Annotated[float, Meta(ge=0, le=1)]
    step: Annotated[int, Meta(ge=0)] = 0
    loss: float | None = None
    reward: float | None = None


class Result(msgspec.Struct, frozen=True, tag_field="event", tag="result"):
    """What the harness measured. Only a status of ok has a ``value``, unless the referee is to measure it."""

    status: Literal["ok", "diverged", "invalid"]
    value: float | None = None
    reason: Annotated[str, Meta(max_length=1000)] = ""
    metrics: Annotated[dict[_Name, float], Meta(max_length=64)] = msgspec.field(default_factory=dict)
    curve: Annotated[tuple[float, ...], Meta(max_length=CURVE_POINTS)] = ()


_decoder = msgspec.json.Decoder(Progress | Result)


def parse_line(line: bytes) -> Progress | Result | str:
    """One line's event, or a sentence saying why it is none."""
    try:
        event = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, OverflowError, RecursionError) as error:
        return f"the result channel carried a line that is no event: {str(error)[:200]}"
    if isinstance(event, Progress):
        if not all(map(math.isfinite, (event.loss or 0.0, event.reward or 0.0))):
            return "the result channel carried a loss or reward that is not finite"
        return event
    if event.status != "ok" and event.value is not None:
        return "a result has a value only when its status is ok"
    numbers = (event.value or 0.0, *event.metrics.values(), *event.curve)
    return event if all(map(math.isfinite, numbers)) else "the result holds a number that is not finite"


class ResultChannel:
    """Collects events from raw bytes: the latest progress, the one result, what was wrong with the last bad line."""

    def __init__(self) -> None:
        self.progress: Progress | None = None
        self.result: Result | None = None
        self.complaint = ""
        self.results = 0
        self.over_limit = False
        self._rest = b""
        self._received = 0

    def feed(self, data: bytes) -> None:
        """Takes the next bytes; never raises. Once over the limit everything more is dropped."""
        self._received += len(data)
        if self._received > TOTAL_BYTES:
            self.over_limit = True
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        if len(self._rest) > LINE_BYTES:
            self.over_limit = True
            self._rest = b""

    def close(self) -> None:
        """The channel ended: a last line without its newline counts."""
        self._take(self._rest)
        self._rest = b""

    def take_progress(self) -> Progress | None:
        """The newest progress since the last call, if any."""
        progress, self.progress = self.progress, None
        return progress

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        event = parse_line(line) if len(line) <= LINE_BYTES else "the result channel carried an overlong line"
        if isinstance(event, str):
            self.complaint = event
        elif isinstance(event, Progress):
            self.progress = event
        else:
            self.results += 1
            self.result = self.result or event
