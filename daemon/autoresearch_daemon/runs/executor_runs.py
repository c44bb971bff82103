"""Runs that an executor carries out elsewhere: started, watched, stopped, brought home."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from autoresearch.errors import AutoresearchError, Refused, TimedOut
from autoresearch.record.kinds import RunOutcome
from autoresearch.run.executors import Executor, Seen, executor_name
from autoresearch.run.experiment import abandoned
from autoresearch.run.folder import RunReply, fault_of, read_outcome, write_outcome
from autoresearch.settings import ExecutorSection
from autoresearch.words import RunStatus, Why
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.inputs import Located
from autoresearch_daemon.workers import protocol

# How often an executor is asked about all its runs.
LOOK_SECONDS = 5.0
# While no run is there, what could not be removed is tried again after so long.
LEFT_SECONDS = 60.0
# A run that was stopped has so long to show its outcome; a job that waited has none.
STOPPED_SECONDS = 15.0

logger = structlog.get_logger()


@dataclass(slots=True)
class ExecutorRun:
    """A run with an executor, by its name. ``is_started``: it was taken there. ``stop``: it is to end.

    ``asked_s`` is when its end was asked for there, by the loop's clock.
    """

    folder: Path
    executor: str
    is_started: bool
    stop: bool = False
    asked_s: float | None = None


@dataclass(eq=False)
class ExecutorRuns:
    """Between the node and executors. A run's place has the name of its assignment.

    ``make`` makes the executor of a name. ``take`` hears where a run is and how far, ``ended(place, folder)`` is
    awaited when an outcome is in the folder. ``levels`` are the sandbox levels that the last runs found there, by
    executor. What is at a place is noted in ``local`` before it is taken there, until it is removed there.
    """

    local: LocalState
    make: Callable[[str], Executor]
    take: Callable[[Located | protocol.Progress], None]
    ended: Callable[[str, Path], Awaitable[None]]
    look_seconds: float = LOOK_SECONDS

    def __post_init__(self) -> None:
        self.levels: dict[str, int] = {}
        self._executors: dict[str, Executor] = {}
        self._carried: dict[str, ExecutorRun] = {}
        self._noted = {Path(folder): executor for folder, executor in self.local.carried().items()}
        self._may_go_on: set[Path] = set()  # said once
        self._news = asyncio.Event()

    def __contains__(self, place: str) -> bool:
        return place in self._carried

    def executor(self, name: str) -> Executor:
        """The executor of a name. Raises UsageError where the settings for it are wrong, as ``executor_of`` else."""
        if name not in self._executors:
            self._executors[name] = self.make(name)
        return self._executors[name]

    def carry(self, place: str, folder: Path, executor: str, *, is_started: bool = False) -> None:
        """Have the run of a folder carried out; ``is_started``: an earlier daemon has done that."""
        self._carried[place] = ExecutorRun(folder, executor, is_started)
        if folder not in self._noted:
            self._noted[folder] = executor
            self._note()
        self._news.set()

    def cancel(self, place: str) -> None:
        """Have a run stopped."""
        self._carried[place].stop = True
        self._news.set()

    async def keep(self) -> None:
        """Look after the runs until cancelled."""
        self._news.set()  # what an earlier daemon left
        try:
            while True:
                await self._keep_once()
        finally:
            for executor in self._executors.values():
                with suppress(AutoresearchError):
                    executor.close()

    async def _keep_once(self) -> None:
        if self._noted:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), self.look_seconds if self._carried else LEFT_SECONDS)
        else:
            await self._news.wait()
        self._news.clear()
        try:
            await self.look()
        except Exception:  # one bad answer must not end this loop for good
            logger.exception("looking after runs elsewhere failed")

    async def look(self) -> None:
        """Start what waits, stop what is to stop, bring home what has ended, remove what is left of earlier ones."""
        for executor in {carried.executor for carried in self._carried.values()}:
            await self._look(executor)
        carried = {run.folder for run in self._carried.values()}
        unreachable: set[str] = set()  # each try takes its time to find that out
        for folder, executor in list(self._noted.items()):
            # A run that is recorded, and one that nobody waits for, has no folder here any more.
            is_left = folder not in carried and not folder.exists()
            if is_left and executor not in unreachable and not await self._forget(folder):
                unreachable.add(executor)

    async def _forget(self, folder: Path) -> bool:
        """End and remove what there still is of a run; whether the place answers. One that is away is asked later."""
        executor = self._noted[folder]
        try:
            await asyncio.to_thread(self.executor(executor).forget, folder)
        except AutoresearchError as error:
            if folder not in self._may_go_on:
                self._may_go_on.add(folder)
                logger.warning("a run may go on", run=folder.name, executor=executor, reason=str(error))
            if isinstance(error, TimedOut):
                return False
        del self._noted[folder]
        self._may_go_on.discard(folder)
        self._note()
        return True

    def _note(self) -> None:
        try:
            self.local.save_carried({str(folder): executor for folder, executor in self._noted.items()})
        except sqlite3.Error as error:
            logger.warning("the daemon's own memory cannot be written", reason=str(error))

    async def _look(self, executor: str) -> None:
        for place, carried in list(self._carried.items()):
            if carried.executor == executor and not await self._push(place, carried):
                break  # each command takes its time to find out that the place is away
        folders = {
            carried.folder: place
            for place, carried in self._carried.items()
            if carried.is_started and carried.executor == executor
        }
        if not folders:
            return
        try:
            seen = await asyncio.to_thread(self.executor(executor).look, list(folders))
        except AutoresearchError as error:
            logger.warning("an executor can't be asked", executor=executor, reason=str(error))
            return
        for folder, state in seen.items():
            await self._act(folders[folder], folder, state)

    async def _push(self, place: str, carried: ExecutorRun) -> bool:
        """Start or stop one run; whether the place answers. When it says no, that is the run's end."""
        now = asyncio.get_running_loop().time()
        try:
            if carried.stop and not carried.is_started:
                await self._close(place, carried.folder, stopped("it was stopped before it began"))
            elif not carried.is_started:
                await asyncio.to_thread(self.executor(carried.executor).start, carried.folder)
                carried.is_started = True
            elif carried.stop and carried.asked_s is None:
                await asyncio.to_thread(self.executor(carried.executor).cancel, carried.folder)
                carried.asked_s = now
        except TimedOut as error:
            self.take(Located(place, f"{carried.executor}: {error}", Why.QUEUED))
            return False
        except AutoresearchError as error:
            fault = RunReply(run=carried.folder.name, fault=fault_of(error))
            await asyncio.to_thread(write_outcome, carried.folder, fault)
            await self._bring(place, carried.folder)
        return True

    async def _act(self, place: str, folder: Path, seen: Seen) -> None:
        carried = self._carried[place]
        if seen.progress is not None:
            self.take(protocol.Progress.of(place, seen.progress))
        if seen.state == "ended":
            await self._bring(place, folder)
        elif seen.state == "lost":
            await self._close(place, folder, abandoned(seen.sentence))
        elif seen.state != "unknown":
            why = Why.RUNNING if seen.state == "running" else Why.QUEUED
            self.take(Located(place, f"{self.executor(carried.executor).noun} {seen.native}", why))
        elif carried.asked_s is not None and asyncio.get_running_loop().time() - carried.asked_s > STOPPED_SECONDS:
            await self._close(place, folder, stopped("it was stopped"))

    async def _close(self, place: str, folder: Path, outcome: RunOutcome) -> None:
        """End a run that leaves no outcome of its own. One that comes at this moment all the same is the one."""
        ended = RunReply(run=folder.name, outcome=outcome, cancelled=outcome.status == RunStatus.CANCELLED)
        await asyncio.to_thread(write_outcome, folder, ended)
        await self._bring(place, folder)

    async def _bring(self, place: str, folder: Path) -> None:
        executor = self._carried[place].executor
        with suppress(Refused):  # whoever records it says so
            ended = await asyncio.to_thread(read_outcome, folder)
            if ended is not None and ended.level is not None:
                self.levels[executor] = ended.level
        await self._forget(folder)
        del self._carried[place]
        await self.ended(place, folder)


def order_of(settings: ExecutorSection, executor: str = "", host: str = "", at_most: int | None = None) -> Order:
    """Where runs are carried out by the settings, or as a person asks with the others. Raises UsageError."""
    name = executor_name(settings, executor, host)
    return Order(executor=name, at_most=settings.at_most if at_most is None else at_most)


def stopped(reason: str) -> RunOutcome:
    """The outcome of a run that was stopped and says nothing itself."""
    return RunOutcome(status=RunStatus.CANCELLED, reason=reason)
