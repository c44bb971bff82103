"""Runs that an executor carries out elsewhere: started, watched, stopped, brought home."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog

from autoresearch.errors import AutoresearchError, Refused, TimedOut, UsageError
from autoresearch.record.kinds import RunOutcome
from autoresearch.run.executors import Executor, Seen
from autoresearch.run.experiment import abandoned
from autoresearch.run.folder import Ended, fault_of, write_outcome
from autoresearch.run.slurm import Slurm
from autoresearch.settings import ExecutorSection
from autoresearch.words import RunStatus, Why
from autoresearch_daemon.service.inputs import Located, Order
from autoresearch_daemon.workers import protocol

# How often the engine is asked about all runs.
LOOK_SECONDS = 5.0
# A run that was stopped has so long to show its outcome; a job that waited has none.
STOPPED_SECONDS = 15.0
HERE = "here"

logger = structlog.get_logger()


@dataclass(slots=True)
class Carried:
    """A run with an executor. ``is_started``: the engine took it. ``stop``: it is to end.

    ``asked_s`` is when the engine was asked to end it, by the loop's clock.
    """

    folder: Path
    is_started: bool
    stop: bool = False
    asked_s: float | None = None


class Elsewhere:
    """Between the node and an executor. A run's place has the name of its assignment.

    ``take`` hears where a run is and how far, ``ended(place, folder)`` is awaited when an outcome is in the folder.
    ``level`` is the sandbox level that the last run found there; None until one has.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        take: Callable[[Located | protocol.Progress], None],
        ended: Callable[[str, Path], Awaitable[None]],
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self.executor = executor
        self._take = take
        self._ended = ended
        self._look_seconds = look_seconds
        self.level: int | None = None
        self._carried: dict[str, Carried] = {}
        self._news = asyncio.Event()

    def __contains__(self, place: str) -> bool:
        return place in self._carried

    def carry(self, place: str, folder: Path, *, is_started: bool = False) -> None:
        """Have the run of a folder carried out; ``is_started``: an earlier daemon has done that."""
        self._carried[place] = Carried(folder, is_started)
        self._news.set()

    def cancel(self, place: str) -> None:
        """Have a run stopped."""
        self._carried[place].stop = True
        self._news.set()

    def forget(self, folder: Path) -> None:
        """End what the engine has of a run that nobody here waits for. Blocks; an engine that is away is left alone."""
        try:
            self.executor.forget(folder)
        except AutoresearchError as error:
            logger.warning("a job may go on", run=folder.name, reason=str(error))

    async def keep(self) -> None:
        """Look after the runs until cancelled."""
        while True:
            if self._carried:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), self._look_seconds)
            else:
                await self._news.wait()
            self._news.clear()
            try:
                await self.look()
            except Exception:  # one bad answer of an engine must not end this loop for good
                logger.exception("looking after runs elsewhere failed", executor=self.executor.name)

    async def look(self) -> None:
        """Start what waits, stop what is to stop, bring home what has ended."""
        for place, carried in list(self._carried.items()):
            if not await self._push(place, carried):
                break  # each command takes its time to find out that the engine is away
        folders = {carried.folder: place for place, carried in self._carried.items() if carried.is_started}
        if not folders:
            return
        try:
            seen = await asyncio.to_thread(self.executor.look, list(folders))
        except AutoresearchError as error:
            logger.warning("the engine can't be asked", executor=self.executor.name, reason=str(error))
            return
        for folder, state in seen.items():
            await self._act(folders[folder], folder, state)

    async def _push(self, place: str, carried: Carried) -> bool:
        """Start or stop one run; whether the engine answers. When it says no, that is the run's end."""
        now = asyncio.get_running_loop().time()
        try:
            if carried.stop and not carried.is_started:
                await self._close(place, carried.folder, stopped("it was stopped before it began"))
            elif not carried.is_started:
                await asyncio.to_thread(self.executor.start, carried.folder)
                carried.is_started = True
            elif carried.stop and carried.asked_s is None:
                await asyncio.to_thread(self.executor.cancel, carried.folder)
                carried.asked_s = now
        except TimedOut as error:
            self._take(Located(place, f"{self.executor.name}: {error}", Why.QUEUED))
            return False
        except AutoresearchError as error:
            fault = Ended(run=carried.folder.name, fault=fault_of(error))
            await asyncio.to_thread(write_outcome, carried.folder, fault)
            await self._bring(place, carried.folder)
        return True

    async def _act(self, place: str, folder: Path, seen: Seen) -> None:
        carried = self._carried[place]
        if seen.progress is not None:
            fraction, step, loss, _ = msgspec.structs.astuple(seen.progress)
            self._take(protocol.Progress(assignment=place, fraction=fraction, step=step, loss=loss))
        if seen.state == "ended":
            await self._bring(place, folder)
        elif seen.state == "lost":
            await self._close(place, folder, abandoned(seen.sentence))
        elif seen.state != "unknown":
            why = Why.RUNNING if seen.state == "running" else Why.QUEUED
            self._take(Located(place, f"{self.executor.name} job {seen.native}", why))
        elif carried.asked_s is not None and asyncio.get_running_loop().time() - carried.asked_s > STOPPED_SECONDS:
            await self._close(place, folder, stopped("it was stopped"))

    async def _close(self, place: str, folder: Path, outcome: RunOutcome) -> None:
        """End a run that leaves no outcome of its own. One that comes at this moment all the same is the one."""
        ended = Ended(run=folder.name, outcome=outcome, cancelled=outcome.status == RunStatus.CANCELLED)
        await asyncio.to_thread(write_outcome, folder, ended)
        await self._bring(place, folder)

    async def _bring(self, place: str, folder: Path) -> None:
        del self._carried[place]
        with suppress(Refused):  # whoever records it says so
            ended = await asyncio.to_thread(self.executor.collect, folder)
            self.level = self.level if ended is None or ended.level is None else ended.level
        await asyncio.to_thread(self.forget, folder)
        await self._ended(place, folder)


def executor_of(settings: ExecutorSection) -> Executor:
    """The executor for runs that are carried out elsewhere. Raises UsageError."""
    try:
        return Slurm(settings.at_most, tuple(shlex.split(settings.options)))
    except ValueError as error:
        raise UsageError(f"executor.options can't be read: {error}", hint="close its quotes") from error


def order_of(settings: ExecutorSection, name: str = "", at_most: int | None = None) -> Order:
    """Where runs are carried out by the settings, or as a person asks with ``name`` and ``at_most``."""
    wanted = name or settings.name
    return Order(executor="" if wanted == HERE else wanted, at_most=settings.at_most if at_most is None else at_most)


def stopped(reason: str) -> RunOutcome:
    """The outcome of a run that was stopped and says nothing itself."""
    return RunOutcome(status=RunStatus.CANCELLED, reason=reason)
