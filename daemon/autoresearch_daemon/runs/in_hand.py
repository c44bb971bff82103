"""Runs in hand, from the claim to the record: one that began is never lost, not to a crash, not to a full disk.

Also their folders, task folders as people name them, and proposed programs, kept across restarts until their run
begins.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import structlog

from autoresearch.ask.acts.notebook import Notebook, PublishedRun
from autoresearch.ask.node import QueuedRun, RunInHand
from autoresearch.errors import AutoresearchError
from autoresearch.log.connection import transaction
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import RunOutcome
from autoresearch.record.record import Record
from autoresearch.run.experiment import Plan, abandoned
from autoresearch.run.folder import checkpoint_of, has_outcome, log_of, read_outcome, run_folder
from autoresearch.run.runner import outcome_of
from autoresearch.run.sandbox.scratch import is_scratch, remove_tree, sweep
from autoresearch.text import duration
from autoresearch.words import WORK_RULES, WorkKind, WorkState
from autoresearch_daemon.events import Events, now_ms
from autoresearch_daemon.local_state import InHand, LocalState, StoredProposal
from autoresearch_daemon.log_thread import LogThread
from autoresearch_daemon.service.effects import ServiceStatus
from autoresearch_daemon.service.inputs import Assignment
from autoresearch_daemon.workers import protocol

logger = structlog.get_logger()


@dataclass(eq=False)
class RunRecorder:
    """Begins, finishes and closes runs. What could not be recorded waits here and in the daemon's own memory."""

    notebook: Notebook
    thread: LogThread
    local: LocalState
    events: Events
    spool: Path
    keep_checkpoints: bool

    def __post_init__(self) -> None:
        self._in_hand: dict[str, InHand] = {}
        self._claims: dict[str, Record] = {}
        self._waiting: dict[str, InHand] = {}
        self._turn = asyncio.Lock()

    def claim(self, proposal: protocol.Proposal, order: int) -> None:
        """Publish the claim and note the run as in hand, for the order with this number (0: none).

        Raises AutoresearchError when nothing can be recorded now.
        """
        plan = proposal.plan
        claim = self.notebook.publish_claim(plan, now_ms(), seconds=proposal.claim_seconds)
        folder = str(run_folder(self.spool, proposal.run))
        run = InHand(assignment=proposal.assignment, order=order, started_ms=now_ms(), plan=plan, folder=folder)
        self._claims[run.assignment] = claim
        self._in_hand[run.assignment] = run
        self.local.keep(run)

    def begin(self, worker: str, proposal: protocol.Proposal, order: int, view: RunInHand, folder: str) -> None:
        """Tell that a run begins, as people see it; claim it first, unless it is. Raises what ``claim`` raises.

        ``folder`` is the task folder that it was proposed from, empty where nobody proposed it.
        """
        plan, assignment = proposal.plan, proposal.assignment
        if assignment not in self._in_hand:
            self.claim(proposal, order)
        seen = msgspec.to_builtins(view) | ({"folder": folder} if folder else {})
        self.events.tell("run_started", plan.title, now_ms(), worker=worker, assignment=assignment, **seen)

    def withdraw_claim(self, assignment: str) -> AutoresearchError | None:
        """What is in hand does not begin here: nothing of it is recorded. An error means that its claim expires."""
        claim = self._claims.pop(assignment, None)
        if self._in_hand.pop(assignment, None) is None or claim is None:
            return None
        self.local.end(assignment)
        try:
            self.notebook.withdraw(claim, now_ms(), reason="not begun here")
        except AutoresearchError as error:
            return error
        return None

    def plan(self, assignment: str) -> Plan | None:
        """The plan of a run in hand; None: no run of that assignment is."""
        run = self._in_hand.get(assignment)
        return None if run is None else run.plan

    async def finish(self, assignment: str, outcome: RunOutcome) -> AutoresearchError | None:
        """Record how a run ended; an error means that the record waits, and why. Then it is to be counted."""
        return await self._record(msgspec.structs.replace(self._in_hand.pop(assignment), outcome=outcome))

    def count(self, assignment: str, take: Callable[[], None]) -> None:
        """Count a finished run for its order, by ``take``. A daemon that is killed meanwhile counts it at its start.

        Raises Refused where that can't be written; it is counted in memory all the same, so that its worker is free.
        """
        is_taken = False
        try:
            with transaction(self.local.connection, durable=False):
                is_taken = True
                take()
                if run := self._waiting.get(assignment):
                    run = self._waiting[assignment] = msgspec.structs.replace(run, order=0)
                    self.local.keep(run)
                else:
                    self.local.end(assignment)
        finally:
            if not is_taken:
                take()

    async def close_lost(self, assignment: str, reason: str) -> AutoresearchError | None:
        """Record that nobody saw a run's end."""
        run = self._in_hand.pop(assignment, None)
        if run is None:
            return None
        error = await self._record(with_end(run, reason))
        if error is None:
            self.local.end(assignment)
        return error

    def sweep(self) -> None:
        """Remove what dead workers left that no record waits for. To be called before there is a worker. Blocks.

        Folders of processes that live, such as a command that tries a program, are locked, and stay.
        """
        waiting = {run.folder for run in self.local.in_hand()}
        sweep(self.spool)
        for folder in self.spool.iterdir():
            if str(folder) not in waiting and not is_scratch(folder):
                remove_tree(folder)

    async def close_left_over(
        self, goes_on: Callable[[InHand], bool], count: Callable[[InHand], None]
    ) -> AutoresearchError | None:
        """Record what a dead daemon left: runs that ended as they ended, the others as abandoned.

        What ``goes_on`` elsewhere stays in hand. ``count`` gets each run that ended and was not counted yet.
        """
        for run in self.local.in_hand():
            is_recorded = self.notebook.has_run_since(run.plan, run.started_ms)
            if not is_recorded and not run.outcome and not has_outcome(Path(run.folder)) and goes_on(run):
                self._in_hand[run.assignment] = run
                continue
            ended = with_end(run, "the daemon ended while it was in hand")
            if is_recorded:
                await self._clear(run)
            else:
                await self._record(ended)
            self.count(run.assignment, partial(count, ended))
        return await self.record_waiting()

    async def record_waiting(self) -> AutoresearchError | None:
        """Try again to record what had to wait; the first error, if there is one."""
        first = None
        for assignment in list(self._waiting):
            if error := await self._publish(assignment):
                first = first or error
            else:
                self.local.end(assignment)
        return first

    async def _record(self, run: InHand) -> AutoresearchError | None:
        self._waiting[run.assignment] = run
        try:
            self.local.keep(run)
        except sqlite3.Error as error:
            logger.warning("the daemon's own memory cannot be written", reason=str(error))
        return await self._publish(run.assignment)

    async def _publish(self, assignment: str) -> AutoresearchError | None:
        """Record a run that waits, unless that happened meanwhile."""
        async with self._turn:
            run = self._waiting.get(assignment)
            if run is None:
                return None
            try:
                published = await self.thread.publish(self.notebook, partial(self._published, run))
            except AutoresearchError as error:
                logger.warning("a run waits to be recorded", assignment=assignment, reason=str(error))
                return error
            del self._waiting[assignment]
            await self._clear(run)
        self.events.tell("run_finished", published.text, now_ms(), assignment=assignment, **published.data)
        if published.is_best:
            self.events.tell("best", published.text, now_ms(), **published.data)
        return None

    async def _clear(self, run: InHand) -> None:
        """Remove what a recorded run left."""
        self._claims.pop(run.assignment, None)
        if run.folder:
            await asyncio.to_thread(remove_tree, Path(run.folder))

    def _published(self, run: InHand, notebook: Notebook) -> PublishedRun:
        """In the thread of the log: a checkpoint is copied and hashed, and leaders are computed."""
        assert run.outcome is not None
        folder = Path(run.folder)
        return notebook.publish_run(
            run.plan,
            run.outcome,
            now_ms(),
            log=log_of(folder),
            checkpoint=checkpoint_of(folder),
            keep_all=self.keep_checkpoints,
        )


def highest(assignments: Sequence[str]) -> int:
    """The highest number among the names of assignments, so that no new one has the name of one in hand."""
    return max((int(name.rpartition("-")[2]) for name in assignments), default=0)


def with_end(run: InHand, reason: str) -> InHand:
    """The run with an outcome: its own when it ended, or that it was abandoned."""
    if run.outcome:
        return run
    try:
        ended = read_outcome(Path(run.folder))
    except AutoresearchError as error:
        ended, reason = None, str(error)
    return msgspec.structs.replace(run, outcome=outcome_of(ended) if ended else abandoned(reason))


def run_in_hand(plan: Plan, task: str = "", headline: str = "") -> RunInHand:
    """A plan as people see it, with the name of its task and what it changes."""
    return RunInHand(
        task=task,
        title=plan.title,
        headline=headline,
        hypothesis=plan.hypothesis,
        kind=plan.kind,
        parent=None if plan.parent is None else short_id(plan.parent),
        replicate=plan.replicate,
    )


def waiting_reasons(now: ServiceStatus, now_ms: int) -> dict[str, str]:
    """Why each proposal waits, by name, the next first."""
    runs = [worker.run for worker in now.workers if worker.run]
    left_ms = runs[0].time_left_ms(now_ms) if runs else None
    left = "" if left_ms is None else f", {duration(left_ms)} left"
    reason = f"for the end of “{runs[0].title}”{left}" if runs else "for a worker to start"
    reason += f"; {WORK_RULES[WorkKind.PERSON].bound}"
    if now.state is not WorkState.WORKING and now.why not in {held.why for held in now.held.values()}:
        reason = f"while the node is {now.state.value}: {now.reason}"
    reasons: dict[str, str] = {}
    for each in now.queue:
        if held := now.held.get(each.name):
            reasons[each.name] = f"{held.sentence} · passed over, tried again within {duration(held.wait_ms)}"
        else:
            reasons[each.name], reason = reason, "after the one before it"
    return reasons


class Proposals:
    """The queue of proposals, by the name of their assignment."""

    def __init__(self, local: LocalState) -> None:
        self._local = local
        self._waiting = {proposal.name: proposal for proposal in local.proposals()}

    def add(self, task: str, plan: Plan, proposed_ms: int, *, shared: bool) -> Assignment:
        """Keep a plan for a task folder; returns the assignment that runs it."""
        proposal = self._local.add_proposal(
            StoredProposal(task=task, plan=plan, proposed_ms=proposed_ms, shared=shared)
        )
        self._waiting[proposal.name] = proposal
        return _assignment(proposal)

    def left_over(self) -> list[Assignment]:
        """What waited when the daemon last ended, the oldest first."""
        return [_assignment(proposal) for proposal in self._waiting.values()]

    def plans(self) -> list[tuple[str, Plan]]:
        """The name of each assignment whose run has not begun, with its plan."""
        return [(name, proposal.plan) for name, proposal in self._waiting.items()]

    def plan(self, name: str) -> Plan | None:
        """The plan of an assignment; None where it is no proposal."""
        waiting = self._waiting.get(name)
        return waiting.plan if waiting else None

    def folder(self, name: str) -> str:
        """The task folder that an assignment was proposed from; empty where it is no proposal."""
        waiting = self._waiting.get(name)
        return waiting.task if waiting else ""

    def is_shared(self, name: str) -> bool:
        """Whether an assignment is a proposal that is left to a node that was faster."""
        waiting = self._waiting.get(name)
        return waiting is not None and waiting.shared

    def end(self, name: str) -> bool:
        """Forget a proposal: its run began, or nobody wants it any more. Returns whether it was there."""
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            self._local.end_proposal(waiting.number)
        return waiting is not None

    def queued(self, now: ServiceStatus) -> list[QueuedRun]:
        """The proposals whose run has not begun, the next first, each with its reason."""
        waiting_for = waiting_reasons(now, now_ms())
        # What a worker was given and has not begun is neither in the queue nor claimed.
        taken = dict.fromkeys(self._waiting.keys() - waiting_for.keys(), "a worker takes it now")
        reasons = taken | waiting_for
        waiting = [self._waiting[name] for name in reasons if name in self._waiting]
        return [
            QueuedRun(
                name=each.name,
                title=each.plan.title,
                hypothesis=each.plan.hypothesis,
                task=each.plan.task.hex(),
                parent=None if each.plan.parent is None else short_id(each.plan.parent),
                replicate=each.plan.replicate,
                source_digest=each.plan.source_digest.hex(),
                proposed_ms=each.proposed_ms,
                reason=reasons[each.name],
                obstacle=now.held[each.name].sentence if each.name in now.held else "",
            )
            for each in waiting
        ]


def _assignment(proposal: StoredProposal) -> Assignment:
    view = msgspec.structs.replace(run_in_hand(proposal.plan), kind="proposal")
    return Assignment(proposal.name, proposal.task, WorkKind.PERSON, shared=proposal.shared, run=view)
