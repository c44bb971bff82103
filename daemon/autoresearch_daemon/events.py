"""What happens here, told to everybody who listens: the API's streams, the daemon's own log. Also the clock.

Slow listeners are let go. What others wrote is made harmless. Runs say at most once a second how far they are. When
different programs end for one reason, that is taken as this machine's fault.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging.handlers import RotatingFileHandler
from pathlib import Path

import msgspec
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from autoresearch.ask.node import Event, RunInHand
from autoresearch.record.kinds import RunOutcome, RunPlan
from autoresearch.text import sanitised
from autoresearch.words import MACHINE_SUSPECTED, RunStatus
from autoresearch_daemon.failures import KEEPING, Failures
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.workers import protocol


def now_ms() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000


logger = structlog.get_logger()

# A listener that is this many events behind is disconnected with a "stale" event; it may come back with its last id.
LISTENER_QUEUE = 256


class Events:
    """Keeps events and hands them to listeners."""

    def __init__(self, local: LocalState, failures: Failures | None = None) -> None:
        self._local = local
        self._failures = failures or Failures()
        self._listeners: set[asyncio.Queue[Event]] = set()

    def tell(self, kind: str, text: str, time_ms: int, /, **data: object) -> Event:
        """Something happened: keep it and tell everybody; where it can't be kept, it is told without an id."""
        reason = {"reason": data["reason"]} if data.get("reason") else {}
        logger.info(kind, text=text, **reason)
        event = Event(id=0, kind=kind, time_ms=time_ms, text=text, data=data)
        with self._failures.watched(KEEPING):
            event = self._local.add_event(kind, time_ms, text, data)
        self._send(event)
        return event

    def pass_on(self, kind: str, text: str, time_ms: int, /, **data: object) -> None:
        """Tell everybody who listens now, and keep nothing: progress."""
        if self._listeners:
            self._send(Event(id=0, kind=kind, time_ms=time_ms, text=text, data=data))

    def since(self, number: int) -> list[Event] | None:
        """Kept events after that id; ``None`` when some of them are gone."""
        return self._local.events_since(number)

    @contextmanager
    def subscribe(self) -> Iterator[asyncio.Queue[Event]]:
        """A queue of all events from now on."""
        queue: asyncio.Queue[Event] = asyncio.Queue(LISTENER_QUEUE)
        self._listeners.add(queue)
        try:
            yield queue
        finally:
            self._listeners.discard(queue)

    def _send(self, event: Event) -> None:
        for queue in list(self._listeners):
            if queue.full():
                # Emptied: what is dropped must not be skipped by the cursor of what comes after it.
                self._listeners.discard(queue)
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(Event(id=event.id, kind="stale", time_ms=event.time_ms, text="too slow to follow"))
            else:
                queue.put_nowait(event)


LOG_FILE_BYTES = 5 * 1024 * 1024
LOG_FILES_KEPT = 3


def set_up_logging(path: Path, level: str, *, to_terminal: bool) -> None:
    """JSON lines in a rotating file; readable lines on the terminal when asked for."""
    handler = RotatingFileHandler(path, maxBytes=LOG_FILE_BYTES, backupCount=LOG_FILES_KEPT)
    handler.setFormatter(_formatter(structlog.processors.JSONRenderer()))
    handlers: list[logging.Handler] = [handler]
    if to_terminal:
        terminal = logging.StreamHandler()
        terminal.setFormatter(_formatter(structlog.dev.ConsoleRenderer()))
        handlers.append(terminal)
    logging.basicConfig(level=level.upper(), handlers=handlers, force=True)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _formatter(renderer: Processor) -> logging.Formatter:
    """Lines of this program and of the libraries alike: what others wrote is made harmless, then rendered."""
    meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return structlog.stdlib.ProcessorFormatter(
        processors=[meta, structlog.processors.format_exc_info, _sanitised, renderer]
    )


def _sanitised(_: WrappedLogger, __: str, entry: EventDict) -> EventDict:
    # A traceback has lines; everything else is one, so that nobody can write a line of his own into the log.
    texts = {name: str(value) for name, value in entry.items() if not isinstance(value, int | float | None)}
    return {**entry, **{name: sanitised(text, lines=name == "exception") for name, text in texts.items()}}


EVERY_MS = 1000


# A curve has so many points; of a long run every second one goes, again and again.
POINTS = 128


@dataclass(slots=True)
class Trace:
    """What a run in hand has shown of itself: its loss over the time that it took, and the last lines it printed."""

    assignment: str = ""
    curve: list[tuple[int, float]] = field(default_factory=list)
    lines: tuple[str, ...] = ()
    step_ms: int = 0

    def take(self, message: protocol.Progress, at_ms: int) -> None:
        """The run went on."""
        self.lines = message.lines or self.lines
        if message.loss is None or (self.curve and at_ms < self.curve[-1][0] + self.step_ms):
            return
        self.curve.append((at_ms, message.loss))
        if len(self.curve) > POINTS:
            del self.curve[1::2]
            self.step_ms = 2 * at_ms // POINTS


class ProgressEvents:
    """Passes progress on to everybody who listens, and keeps the traces of the runs in hand, nothing else."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._told_ms: dict[str, int] = {}
        self._traces: dict[str, Trace] = {}

    def trace(self, worker: str, assignment: str) -> Trace:
        """What a worker's run has shown of itself."""
        trace = self._traces.get(worker)
        return trace if trace and trace.assignment == assignment else Trace()

    def forget(self, worker: str) -> None:
        """A worker's run has ended."""
        self._traces.pop(worker, None)
        self._told_ms.pop(worker, None)

    def tell(self, worker: str, message: protocol.Progress, run: RunInHand | None, now_ms: int) -> None:
        """Tell how far a worker's run is, unless that was told within a second."""
        run = run or RunInHand(title="")
        if self._traces.setdefault(worker, Trace()).assignment != message.assignment:
            self._traces[worker] = Trace(message.assignment)
        self._traces[worker].take(message, run.elapsed_ms(now_ms))
        if now_ms - self._told_ms.get(worker, 0) < EVERY_MS:
            return
        self._told_ms[worker] = now_ms
        about = {"task": run.task, "title": run.title, "elapsed_ms": run.elapsed_ms(now_ms)}
        data = {**msgspec.structs.asdict(message), **about, "left_ms": run.time_left_ms(now_ms)}
        del data["lines"]
        self._events.pass_on("progress", run.title, now_ms, worker=worker, **data)


# So many different programs in a row that end for one reason are no coincidence.
SAME_CAUSE = 3


class MachineFaults:
    """The last cause, and the programs that ended for it. ``suspected``: until the baseline has run here again."""

    def __init__(self) -> None:
        self._cause = ""
        self._programs: set[bytes] = set()

    @property
    def suspected(self) -> bool:
        """Whether the baseline has to run before the next program."""
        return len(self._programs) >= SAME_CAUSE

    def ended(self, plan: RunPlan, outcome: RunOutcome) -> RunOutcome:
        """How a run ended: as it was measured, or as a run that this machine could not do."""
        if outcome.status not in MACHINE_SUSPECTED:
            self.clear()
            return outcome
        cause = f"{outcome.status} {re.sub(r'[0-9]+', '#', outcome.reason)}"
        if cause != self._cause:
            self.clear()
        self._cause = cause
        self._programs.add(plan.source_digest)
        if not self.suspected:
            return outcome
        reason = f"{len(self._programs)} different programs in a row ended so on this machine: {outcome.reason}"
        return msgspec.structs.replace(outcome, status=RunStatus.COULD_NOT_RUN, reason=reason)

    def clear(self) -> None:
        """The machine works: a run ended well, or the baseline took its first step."""
        self._cause = ""
        self._programs.clear()
