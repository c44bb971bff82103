"""What a run says and leaves: the capped log, the capped checkpoint file, the result channel, the training curve.

The channel has JSON lines from a program that nobody trusts. Nothing it writes raises.
"""

from __future__ import annotations

import itertools
import os
import re
import statistics
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from autoresearch.record.kinds import NUMBER_MAX
from autoresearch.task.printed import plain_text

LINE_BYTES = 64 * 1024
TOTAL_BYTES = 8 * 1024 * 1024
CURVE_POINTS = 64

_Name = Annotated[str, Meta(min_length=1, max_length=64)]


LINES_SHOWN, LINE_CHARACTERS = 8, 160


class RunProgress(msgspec.Struct, frozen=True, tag_field="event", tag="progress"):
    """How far a run is: ``fraction`` of its budget, steps done, training loss in bits, mean reward of late episodes.

    ``lines``: the last that it printed, where they are new.
    """

    fraction: Annotated[float, Meta(ge=0, le=1)]
    step: Annotated[int, Meta(ge=0)] = 0
    loss: float | None = None
    reward: float | None = None
    lines: Annotated[tuple[Annotated[str, Meta(max_length=LINE_CHARACTERS)], ...], Meta(max_length=LINES_SHOWN)] = ()


class HarnessResult(msgspec.Struct, frozen=True, tag_field="event", tag="result"):
    """What the harness measured. Only a status of ok has a ``value``, unless the referee is to measure it."""

    status: Literal["ok", "diverged", "invalid"]
    value: float | None = None
    reason: Annotated[str, Meta(max_length=1000)] = ""
    metrics: Annotated[dict[_Name, float], Meta(max_length=64)] = msgspec.field(default_factory=dict)
    curve: Annotated[tuple[float, ...], Meta(max_length=CURVE_POINTS)] = ()


def _is_number(number: float) -> bool:
    """Whether it can stand in a record: not-a-number, infinity and what is beyond all metrics can't."""
    return abs(number) <= NUMBER_MAX


_decoder = msgspec.json.Decoder(RunProgress | HarnessResult)


def parse_line(line: bytes) -> RunProgress | HarnessResult | str:
    """One line's event, or a sentence saying why it is none."""
    try:
        event = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, OverflowError, RecursionError) as error:
        return f"the result channel carried a line that is no event: {str(error)[:200]}"
    if isinstance(event, RunProgress):
        if not all(map(_is_number, (event.loss or 0.0, event.reward or 0.0))):
            return "the result channel carried a loss or reward that is not finite"
        return event
    if event.status != "ok" and event.value is not None:
        return "a result has a value only when its status is ok"
    numbers = (event.value or 0.0, *event.metrics.values(), *event.curve)
    return event if all(map(_is_number, numbers)) else "the result holds a number that is not finite"


class ResultChannel:
    """Collects events from raw bytes: the latest progress, the one result, what was wrong with the last bad line."""

    def __init__(self) -> None:
        self.progress: RunProgress | None = None
        self.result: HarnessResult | None = None
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

    def take_progress(self) -> RunProgress | None:
        """The newest progress since the last call, if any."""
        progress, self.progress = self.progress, None
        return progress

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        event = parse_line(line) if len(line) <= LINE_BYTES else "the result channel carried an overlong line"
        if isinstance(event, str):
            self.complaint = event
        elif isinstance(event, RunProgress):
            self.progress = msgspec.structs.replace(event, lines=())  # what it printed is read where it printed it
        else:
            self.results += 1
            self.result = self.result or event


# A number behind the word loss, or another name, and what a line says of its progress.
_NUMBERED = (
    r"(?<![a-z0-9])(?P<name>(?:[a-z]+[_/ -])?(?:{}))[\"']?\s{{0,8}}[:= ]\s{{0,8}}"
    r"(?P<value>[-+]?\d{{1,40}}(?:\.\d{{0,40}})?(?:e[-+]?\d{{1,3}})?)"
)
_LOSS = re.compile(_NUMBERED.format("loss"))
_PROGRESS = re.compile(
    r"(?<![a-z])(?:step|iter|iteration|epoch|round|batch|episode|generation)s?[\"']?\s{0,8}[:=# ]?\s{0,8}\d"
)
_NOT_TRAINING = ("val", "valid", "validation", "test", "eval", "best", "min", "final", "dev")
# Longer lines are no lines of a training, and larger numbers no losses.
_LINE_CHARACTERS, _LARGEST = 1000, 1e15


def printed_curve(text: str, metric: str = "") -> list[float]:
    """The training curve in what a program printed; empty without one.

    These are the numbers behind ``loss`` in lines such as ``step 10 loss 2.31`` or ``{"epoch": 3, "train_loss": 0.4}``.
    Where there are none, those behind the name of the task's metric, in lines that name a step.
    """
    lines = [line.lower() for line in re.split(r"[\r\n]+", plain_text(text)) if len(line) <= _LINE_CHARACTERS]
    losses = _numbers(lines, _LOSS, _NOT_TRAINING)
    if len(losses) < 2 and metric:
        named = re.compile(_NUMBERED.format(re.escape(metric.lower())))
        losses = _numbers((line for line in lines if _PROGRESS.search(line)), named, ("best", "final"))
    return [float(f"{point:.6g}") for point in curve_of(losses)] if len(losses) > 1 else []


def _numbers(lines: Iterable[str], pattern: re.Pattern[str], without: Collection[str]) -> list[float]:
    """The first number of each line that follows a name, unless a word ``without`` stands before that."""
    numbers: list[float] = []
    for line in lines:
        for match in pattern.finditer(line):
            if re.split(r"[_/ -]", match["name"])[0] not in without:
                number = float(match["value"])
                numbers += [number] if abs(number) < _LARGEST else []
                break
    return numbers


def last_lines(text: str) -> tuple[str, ...]:
    """The last lines of a text, each cut; a progress bar that draws over itself is its last state."""
    lines = [line for line in re.split(r"[\r\n]+", plain_text(text)) if line.strip()]
    return tuple(line[:LINE_CHARACTERS] for line in lines[-LINES_SHOWN:])


def curve_of(numbers: Sequence[float]) -> list[float]:
    """The means of ``CURVE_POINTS`` equal parts at most."""
    count = len(numbers)
    points = min(count, CURVE_POINTS)
    cuts = [count * point // points for point in range(points + 1)] if points else []
    return [statistics.fmean(numbers[a:b]) for a, b in itertools.pairwise(cuts)]


_LINE_END = re.compile(rb"[\r\n]+")
CHECKPOINT_NAME = "checkpoint.safetensors"


# Where a log is cut, it is cut at the end of a line no longer than this: half a number would be another number.
_CUT_BYTES = 4096


class BoundedLog:
    """Keeps the head and the tail of a stream within ``limit_bytes``; counts all of it.

    Of what is between, the last line that has ``name`` is kept, such as ``val_loss: 0.3``: it may be the run's value.
    """

    def __init__(self, limit_bytes: int, name: str = "") -> None:
        self.received = 0
        self._names = {name.encode(), name.replace("_", " ").encode()} - {b""}
        self._named = b""
        self.limit_bytes = limit_bytes
        self._head_bytes = limit_bytes // 4
        self._tail_bytes = limit_bytes - self._head_bytes
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        """Takes the next bytes."""
        self.received += len(data)
        room = max(0, self._head_bytes - len(self._head))
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._tail_bytes + 65536:
            count = len(self._tail) - self._tail_bytes
            self._named = self._last_named(count)
            del self._tail[:count]

    def _last_named(self, count: int) -> bytes:
        """The last line with the name in what was let go of and the first ``count`` bytes of the tail."""
        last = max((self._tail.rfind(name, 0, count) for name in self._names), default=-1)
        if last < 0:
            return self._named
        start = max(self._tail.rfind(end, 0, last) for end in (b"\n", b"\r")) + 1
        return bytes(self._tail[max(start, last - _CUT_BYTES) : last + _CUT_BYTES]).splitlines()[0]

    def tail(self, size: int = 4096) -> bytes:
        """The last ``size`` bytes."""
        tail = self._tail[-size:]
        return bytes(self._head[max(0, len(self._head) - size + len(tail)) :] + tail)

    def contents(self) -> bytes:
        """Everything when it fits, otherwise head, a marker line and tail, both of whole lines."""
        if self.received <= self.limit_bytes:
            return bytes(self._head + self._tail)
        head, count = bytes(self._head), max(0, len(self._tail) - self._tail_bytes)
        if ends := [match.end() for match in _LINE_END.finditer(head, max(0, len(head) - _CUT_BYTES))]:
            head = head[: ends[-1]]
        if first := _LINE_END.search(self._tail, count, count + _CUT_BYTES):
            count = first.end()
        line, tail = self._last_named(count), bytes(self._tail[count:])
        named = line + b"\n" if line else b""
        left_out = max(0, self.received - len(head) - len(named) - len(tail))
        return head.rstrip(b"\r\n") + b"\n[... %d bytes left out ...]\n" % left_out + named + tail


_LEFT_OUT = re.compile(r"^\[\.\.\. (\d{1,18}) bytes left out \.\.\.\]$", re.MULTILINE)


def bytes_left_out(log: str) -> int:
    """How many bytes a log says that it lacks between its head and its tail; 0: it is whole."""
    mark = _LEFT_OUT.search(log)
    return int(mark[1]) if mark else 0


class CheckpointFile:
    """Writes the checkpoint channel to a partial file that gets its name only when the run went well."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.received = 0
        self.limit_bytes = limit_bytes
        self.over_limit = False
        self._target = folder / CHECKPOINT_NAME
        self._partial = folder / f".{CHECKPOINT_NAME}.{os.getpid()}.partial"
        folder.mkdir(parents=True, exist_ok=True)
        self._file = self._partial.open("wb")

    def feed(self, data: bytes) -> None:
        """Takes the next bytes; past the limit they are dropped."""
        self.received += len(data)
        if self.received > self.limit_bytes:
            self.over_limit = True
        else:
            self._file.write(data)

    def finish(self, *, keep: bool) -> Path | None:
        """Gives the file its name, or removes it. Returns where it is."""
        self._file.close()
        if keep and self.received and not self.over_limit:
            self._partial.replace(self._target)
            return self._target
        self._partial.unlink(missing_ok=True)
        return None
