"""One node: a loop over effects. What happens goes to the service; what it and the parts want is done here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from errno import EMFILE, ENFILE
from typing import Any

import msgspec
import structlog

from autoresearch.ask.health import open_files
from autoresearch.ask.node import Check, Setting
from autoresearch.errors import AutoresearchError
from autoresearch.paths import Paths
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.obstacle import find_obstacle
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.run.sandbox.scratch import sweep
from autoresearch.settings import Settings
from autoresearch.trust.identity import standing
from autoresearch.version import __version__
from autoresearch.words import WHY_SENTENCES, Part, Result, Why
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.failures import ACCEPTING, DECIDING, GAUGING, KEEPING, LOOKING
from autoresearch_daemon.health import condition_changes, machine_signs
from autoresearch_daemon.parts import NodeParts
from autoresearch_daemon.service import effects, inputs
from autoresearch_daemon.service.effects import Effect, Happening

logger = structlog.get_logger()

# How often the node looks at what no event tells: free disk space, ends of pauses and orders.
TICK_SECONDS = 5.0
# How often the node looks whether its delegation is due for renewal.
RENEW_SECONDS = 3600
# How long a start waits for a peer to tell what this device signed last; a node whose peers are all away goes on then.
ASK_PEERS_SECONDS = 10.0
LOST = "the worker process ended while it was in hand"


class Node:
    """A running node. ``start``, then ``wait``, then ``stop``; ``take`` what happens in between."""

    def __init__(self, paths: Paths, settings: Settings, devices: list[str]) -> None:
        self.parts = NodeParts(paths, settings, devices, self.take)
        self.again = False
        self._ended = asyncio.Event()
        self._conditions: list[Check] = []  # at the last look
        self._machine_signs: tuple[object, ...] = ()
        self._renew_ms = 0
        self._keepers: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        # The API answers before the sandbox is tested.
        self.take(inputs.Blocked(Why.TESTING_SANDBOX, WHY_SENTENCES[Why.TESTING_SANDBOX]))

    # --- life ---

    async def start(self) -> None:
        """Close what a dead daemon left open, test the sandbox, open the workers' link, go on with what was asked."""
        parts, work, assignments = self.parts, self.parts.settings.work, self.parts.assignments
        logger.info("started", version=__version__, process=os.getpid(), workers=work.workers)
        for folder in (None, parts.paths.task_data):
            await asyncio.to_thread(sweep, folder)
        await asyncio.to_thread(assignments.runs.sweep)
        self._spawn(parts.leading.look(now_ms()))
        if parts.sync:
            self.take(inputs.Blocked(Why.ASKING_PEERS, WHY_SENTENCES[Why.ASKING_PEERS]))
            await parts.owner.look_at_network()
            await parts.sync.start()
        parts.level = parts.verifying.level = await self._test_sandbox()
        if parts.sync:
            # An old copy of the whole data folder knows nothing of what this device signed since: peers do.
            await parts.sync.first(ASK_PEERS_SECONDS)
        try:
            await self._renew()
            await assignments.close_left_over()
        except AutoresearchError as error:
            parts.block(error)
        self._leave_archived()
        self.take(inputs.Blocked(Why.ASKING_PEERS, None))
        self.take(inputs.Blocked(Why.TESTING_SANDBOX, None))
        for assignment in parts.proposals.left_over():
            self.take(inputs.RunAsked(assignment))
        await parts.owner.look()
        watches = (parts.owner, parts.notices, parts.judging, parts.keeper, parts.verifying, assignments.executor_runs)
        keepers = (self._tick(), parts.attesting.keep(), *(watch.keep() for watch in watches))
        self._keepers = [asyncio.create_task(keeper) for keeper in keepers]

    async def _test_sandbox(self) -> Level:
        level, probes = await asyncio.to_thread(detect_level, self.parts.secrets())
        if level < Level.LANDLOCK:
            cause, remedy = await asyncio.to_thread(find_obstacle)
            detail = f"there is none, so only your own programs run: {cause}"
            self.parts.no_sandbox = [Check(name=Part.SANDBOX, result=Result.WARNING, detail=detail, fix=remedy)]
        logger.info("sandbox", level=level.label, leaks=[probe.name for probe in probes if not probe.blocked])
        if level < self.parts.settings.work.minimum_sandbox:
            self.take(inputs.Blocked(Why.SANDBOX_TOO_LOW, WHY_SENTENCES[Why.SANDBOX_TOO_LOW]))
        return level

    async def wait(self) -> None:
        """Until somebody asks the node to stop: what it has in hand is stopped then, and whoever listens is told."""
        await self._ended.wait()
        self.take(inputs.StopAsked())

    @property
    def is_ending(self) -> bool:
        """Whether it was asked to stop."""
        return self._ended.is_set()

    def end(self, *, again: bool = False) -> None:
        """Have ``wait`` return; ``again``: the daemon then begins anew."""
        self.again = again
        self._ended.set()

    async def stop(self) -> None:
        """Stop what is in hand, publish how it ended, close everything."""
        if not self.parts.service.stopping:
            self.take(inputs.StopAsked())
        for keeper in self._keepers:
            keeper.cancel()
        await self.parts.assignments.pool.stop()
        if self.parts.sync:
            with self.parts.failures.watched("leaving the network"):
                await self.parts.sync.stop()
        await asyncio.gather(*self._tasks)
        await asyncio.to_thread(self.parts.thread.close)
        self.parts.attesting.close()
        self.parts.local.close()
        self.parts.paths.remove_sockets()
        self.parts.notebook.close()
        logger.info("stopped")

    # --- what happens, and what is done ---

    def take(self, happening: Happening) -> None:
        """Something happened: decide, then act; or something is wanted: act."""
        if isinstance(happening, Effect):
            self._act(happening)
            return
        for effect in self.parts.service.handle(happening, now_ms()):
            self._act(effect)

    def _act(self, effect: Effect) -> None:
        parts = self.parts
        match effect:
            case effects.WantWorkers(count):
                parts.assignments.pool.want(count)
            case effects.Assign():
                parts.assignments.assign(effect)
            case effects.Announce() | effects.Approve() | effects.WithdrawClaim() | effects.LeaveToOther():
                parts.assignments.act_on_claim(effect)
            case effects.Decline() | effects.Cancel() | effects.Overtake():
                parts.assignments.stop(effect)
            case effects.CloseAbandoned(assignment):
                self._spawn(parts.assignments.close_lost(assignment, LOST))
            case effects.Verify():
                parts.verifying.want(effect)
            case effects.RecordWaiting():
                self._spawn(self._record_waiting())
            case effects.Save():
                with parts.failures.watched(KEEPING):
                    parts.local.save_agenda(parts.service.queue.agenda)
            case effects.Tell(kind, text, order):
                now = parts.service.status()
                state = {"state": now.state.value, "why": now.why.value, "reason": now.reason}
                parts.events.tell(kind, text, now_ms(), **state, order=order or None)
            case _:
                self._act_for_parts(effect)

    def _act_for_parts(self, effect: Effect) -> None:
        parts = self.parts
        match effect:
            case effects.TellPeople(kind, text, fields):
                parts.events.tell(kind, text, now_ms(), **fields)
            case effects.TrustChanged():
                if parts.sync:
                    parts.sync.offer(parts.notebook.manifest)
                parts.judging.begin()
                self.take(inputs.VerificationsChanged())
            case effects.SeekAdmissions():
                self._spawn(parts.admitting.look())
            case effects.SeekLeaders():
                self._spawn(parts.leading.look(now_ms(), again=True))
            case effects.RestNetwork(rest):
                if parts.sync:
                    parts.sync.rest(rest)
            case effects.GreetPerson(way):
                parts.notices.greet(way)

    async def _record_waiting(self) -> None:
        self.parts.block(await self.parts.assignments.runs.record_waiting() or self.parts.verifying.reveal())

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        async def watched() -> None:
            with self.parts.failures.watched(LOOKING):
                await work

        task = asyncio.create_task(watched())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def note_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error that nobody waits for. That no descriptor is left comes a thousand times a second: it is noted."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (EMFILE, ENFILE):
            self.parts.failures.note(ACCEPTING, error)
        else:
            loop.default_exception_handler(context)

    def go_by(self, setting: Setting) -> None:
        """Go by another value of a live setting from now on."""
        section, _, key = setting.name.partition(".")
        changed = msgspec.structs.replace(getattr(self.parts.settings, section), **{key: setting.value})
        self.parts.settings = msgspec.structs.replace(self.parts.settings, **{section: changed})
        work = self.parts.settings.work
        self.take(inputs.ShareChanged(work.workers, work.verify_share if key == "verify_share" else None))
        if section == "notify":
            self.take(effects.GreetPerson(key))
        self._spawn(self.parts.owner.look())

    # --- again and again ---

    async def _tick(self) -> None:
        failures = self.parts.failures
        while True:
            with failures.watched(LOOKING):
                await self._look()
            if open_files().result != Result.FAILED:
                failures.worked(ACCEPTING)
            with failures.watched(DECIDING):
                self.take(inputs.Tick())
            with failures.watched(GAUGING):
                is_running = any(worker.run for worker in self.parts.service.status().workers)
                await asyncio.to_thread(self.parts.gauges.look, cards=self.parts.owner.is_hot or is_running)
            await asyncio.sleep(TICK_SECONDS)

    async def _look(self) -> None:
        parts, before = self.parts, self._conditions
        self._conditions = parts.conditions()
        for happening in condition_changes(before, self._conditions):
            self.take(happening)
        self._look_at_machine()
        parts.trusting.look()
        self._leave_archived()
        await parts.admitting.look()
        await parts.leading.look(now_ms())
        if parts.sync:
            await parts.sync.look()
            parts.own_services.look()
        if now_ms() >= self._renew_ms:
            try:
                await self._renew()
            except AutoresearchError as error:
                parts.block(error)

    def _look_at_machine(self) -> None:
        """What could not be begun for lack of something is tried again when more may be there than before."""
        if not self.parts.service.queue.held:
            return
        files = (self.parts.paths.allowed, self.parts.paths.settings)
        stamps = [file.stat().st_mtime_ns if file.exists() else 0 for file in files]
        signs = machine_signs(self.parts.gauges.status, stamps)
        if signs != self._machine_signs:
            self._machine_signs = signs
            self.take(inputs.MachineChanged())

    def _leave_archived(self) -> None:
        for cancelled in self.parts.folders.archived_orders(self.parts.service.queue.agenda.orders):
            self.take(cancelled)

    async def _renew(self) -> None:
        """Publish who this device speaks for, and again in time; say so where only a person can."""
        self._renew_ms = now_ms() + RENEW_SECONDS * 1000
        notebook = self.parts.notebook
        await self.parts.thread.publish(notebook, lambda notebook: notebook.publish_identity(now_ms()))
        self.parts.standing = standing(notebook.device(now_ms()), now_ms())
        if self.parts.standing:
            logger.warning("identity", reason=self.parts.standing)
