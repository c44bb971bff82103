"""Assignments in the hands of workers and executors: given, planned, announced, begun, ended, counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import structlog

from autoresearch.ask.node import QueuedRun, RunInHand
from autoresearch.ask.runs.headlines import headline_of
from autoresearch.errors import AutoresearchError, NotFound, UsageError
from autoresearch.propose.mind.recall import run_before
from autoresearch.record.kinds import RunOutcome
from autoresearch.run.executors import executor_of
from autoresearch.run.experiment import Plan
from autoresearch.run.folder import Fault, RunReply, fault_of, new_run, read_outcome, read_request
from autoresearch.run.runner import outcome_of
from autoresearch.run.sandbox.scratch import remove_tree
from autoresearch.words import UNFINISHED, RunStatus, Why
from autoresearch_daemon.core import Core
from autoresearch_daemon.events import MachineFaults, ProgressEvents, now_ms
from autoresearch_daemon.failures import KEEPING
from autoresearch_daemon.local_state import InHand
from autoresearch_daemon.runs.executor_runs import ExecutorRuns
from autoresearch_daemon.runs.in_hand import RunRecorder, run_in_hand
from autoresearch_daemon.service import effects, inputs
from autoresearch_daemon.verification.controller import VerificationController
from autoresearch_daemon.workers import protocol
from autoresearch_daemon.workers.pool import Pool

logger = structlog.get_logger()


class Assignments:
    """Sends the service's assignments to workers, and gives the service what workers and executors say.

    ``has_peers`` tells whether others hear of a claim. What can't be recorded now waits in ``runs``.
    """

    def __init__(
        self, core: Core, verifying: VerificationController, devices: list[str], has_peers: Callable[[], bool]
    ) -> None:
        self._core, self._take, self._proposals = core, core.take, core.proposals
        self._verifying, self._has_peers = verifying, has_peers
        self.runs = RunRecorder(
            core.notebook,
            core.thread,
            core.local,
            core.events,
            core.paths.spool,
            keep_checkpoints=core.settings.storage.keep_checkpoints,
        )
        self.progress = ProgressEvents(core.events)
        self.executor_runs = ExecutorRuns(
            core.local, partial(executor_of, core.settings.executor), take=self._follow, ended=self._end_at_place
        )
        self.pool = Pool(
            devices,
            on_message=self._hear,
            on_leaving=lambda worker: self._take(inputs.WorkerLeaves(worker)),
            on_lost=self._lose,
        )
        self._planned: dict[str, protocol.Proposal] = {}
        self._overtaken: dict[str, tuple[Plan, str]] = {}  # by assignment: what is run again, and why it was stopped
        self._faults = MachineFaults()

    # --- what the service decided ---

    def assign(self, effect: effects.Assign) -> None:
        """Give a worker something to do."""
        core, worker, assignment = self._core, effect.worker, effect.assignment
        folder = core.folders.worked_on(assignment.task)
        with suppress(AutoresearchError):  # the worker meets the same error and reports it
            core.folders.load(folder)
        now = core.service.status()
        order = now.order_of(assignment)
        level = self.executor_runs.levels.get(order.executor)
        overtaken, _ = self._overtaken.pop(assignment.again, (None, ""))
        work = protocol.AssignWork(
            assignment=assignment.name,
            run=new_run(assignment.name),
            task=folder,
            plan=overtaken or self._proposals.plan(assignment.name),
            recheck=self._faults.suspected,
            level=int(core.level or 0) if level is None else level,
            author=core.notebook.author,
            check=self._verifying.give(assignment),
            proposer=order.proposer,
            counted=order.runs_left is not None,
            goes_on=now.goes_on(order),
            executor=order.executor,
            executor_device=core.settings.executor.device,
        )
        self.pool.send(worker, work)
        if run := effect.run:
            about = {"worker": worker, "assignment": assignment.name, **msgspec.to_builtins(run)}
            core.events.tell("check_started", run.title, now_ms(), **about)

    def act_on_claim(
        self, effect: effects.Announce | effects.Approve | effects.WithdrawClaim | effects.LeaveToOther
    ) -> None:
        """Announce, begin, withdraw or leave to others what a worker proposed."""
        match effect:
            case effects.Announce(worker, _, key, settle_ms):
                if self._write(worker, effect.assignment, self.runs.claim):
                    settled = inputs.Settled(worker, key)
                    asyncio.get_running_loop().call_later(settle_ms / 1000, self._take, settled)
            case effects.Approve(worker, assignment):
                view = self._view(self._planned[worker].plan)
                folder = self._proposals.folder(assignment)
                if self._write(worker, assignment, partial(self.runs.begin, worker, view=view, folder=folder)):
                    self._proposals.end(assignment)
                    self.pool.send(worker, protocol.Approve(assignment=assignment))
            case effects.WithdrawClaim(assignment):
                self._core.block(self.runs.withdraw_claim(assignment))
            case effects.LeaveToOther(assignment):
                self._forget(assignment, "left to another worker or node, which runs it or has run it")

    def stop(self, effect: effects.Decline | effects.Cancel | effects.Overtake) -> None:
        """Have a worker or an executor stop, or a worker propose something else."""
        worker, assignment = effect.worker, effect.assignment
        if isinstance(effect, effects.Overtake):
            self._overtaken[assignment] = self._planned[worker].plan, effect.reason
        if isinstance(effect, effects.Decline):
            self.pool.send(worker, protocol.Decline(assignment=assignment))
        elif worker in self.executor_runs:
            self.executor_runs.cancel(worker)
        else:
            self.pool.send(worker, protocol.Cancel(assignment=assignment))

    async def close_lost(self, assignment: str, reason: str) -> None:
        """Record that nobody saw the end of a run, if one is in hand."""
        self._core.block(await self.runs.close_lost(assignment, reason))

    def _write(self, worker: str, assignment: str, write: Callable[[protocol.Proposal, int], None]) -> bool:
        """Record what a worker proposed, and its task; or stop the worker, when that is not possible now."""
        proposal, in_hand = self._planned[worker], self._core.service.workers[worker].assignment
        try:
            self._core.notebook.publish_task(self._core.folders.task_of(proposal.plan), now_ms())
            write(proposal, in_hand.order if in_hand else 0)
        except NotFound as error:
            self._take(inputs.Unworkable(worker, error.with_hint))
            return False
        except AutoresearchError as error:
            self.pool.send(worker, protocol.Cancel(assignment=assignment))
            self._core.block(error)
            return False
        return True

    # --- what workers and executors say ---

    async def _hear(self, worker: str, message: protocol.FromWorker) -> None:
        match message:
            case protocol.Ready():
                self._take(inputs.WorkerReady(worker, message.device))
            case protocol.Stage():
                self._take(inputs.WorkerStage(worker, Why(message.why)))
            case protocol.Proposal():
                self._planned[worker] = message
                if self._faults.suspected:  # then the baseline ran here before it
                    self._faults.clear()
                plan, assignment = message.plan, message.assignment
                tried, has_peers = self._is_tried(assignment, plan), self._has_peers()
                self._take(inputs.Proposed(worker, assignment, _key(plan), self._view(plan), tried, has_peers))
            case protocol.Progress():
                self._progress(worker, message)
            case protocol.Ended():
                await self._end(worker, message.assignment, Path(message.folder))
            case protocol.Written():
                self.executor_runs.carry(message.assignment, Path(message.folder), message.executor)
                self._take(inputs.Sent(worker))
            case protocol.Dropped():
                self._take(inputs.Dropped(worker))
            case protocol.Failed():
                logger.warning("assignment failed", worker=worker, reason=message.sentence)
                waits = message.cannot_run_here and self._proposals.plan(message.assignment) is not None
                if not waits:
                    self._proposals.end(message.assignment)
                    about = {"assignment": message.assignment, "worker": worker}
                    self._core.events.tell("run_failed", message.sentence, now_ms(), **about)
                await self.close_lost(message.assignment, message.sentence)
                self._take(inputs.Failed(worker, message.sentence, message.cannot_run_here))

    async def _lose(self, worker: str) -> None:
        self._take(inputs.WorkerLost(worker))

    def _follow(self, event: inputs.Located | protocol.Progress) -> None:
        """A run elsewhere is queued, runs, or went on; its place has the name of its assignment."""
        if isinstance(event, inputs.Located):
            self._take(event)
        else:
            self._progress(event.assignment, event)

    def _progress(self, worker: str, message: protocol.Progress) -> None:
        self._take(inputs.Progressed(worker, message.fraction, message.step, message.loss))
        self.progress.tell(worker, message, self._core.service.status().run_of(worker), now_ms())

    async def _end_at_place(self, place: str, folder: Path) -> None:
        await self._end(place, place, folder)

    async def _end(self, worker: str, assignment: str, folder: Path) -> None:
        """What a worker or an executor was given has an outcome in its folder: record it."""
        self.progress.forget(worker)
        try:
            reply = read_outcome(folder)
        except AutoresearchError as error:
            reply = RunReply(run=folder.name, fault=fault_of(error))
        assert reply is not None, "it is said to have an outcome"
        if plan := self.runs.plan(assignment):
            outcome = self._faults.ended(plan, outcome_of(reply))
            if outcome.status == RunStatus.CANCELLED and assignment in self._overtaken:
                outcome = msgspec.structs.replace(outcome, reason=self._overtaken[assignment][1])
            self._core.block(await self.runs.finish(assignment, outcome))
            with self._core.failures.watched(KEEPING):
                finished = self._finished(worker, plan, outcome)
                self.runs.count(assignment, lambda: self._take(finished))
            return
        await asyncio.to_thread(remove_tree, folder)
        if reply.verified is None:
            fault = reply.fault or Fault(sentence=reply.outcome.reason if reply.outcome else "")
            cannot_run = fault.cannot_run_here
            await self._hear(
                worker, protocol.Failed(assignment=assignment, sentence=fault.sentence, cannot_run_here=cannot_run)
            )
            return
        self._core.block(self._verifying.finish(assignment, reply.verified, cancelled=reply.cancelled))
        failed = reply.verified.verdict == "error" and not reply.cancelled
        self._take(inputs.Finished(worker, counted=False, failed=failed))

    # --- what an earlier daemon left ---

    async def close_left_over(self) -> None:
        """Record what a dead daemon left, and watch further what goes on elsewhere."""
        self._core.block(await self.runs.close_left_over(self._take_over, self._count_left_over))

    def _count_left_over(self, run: InHand) -> None:
        """A run ended, and the daemon with it before it was counted."""
        assert run.outcome is not None
        if run.order:
            self._take(inputs.TakenOver(run.assignment, self._view(run.plan), _key(run.plan), run.order))
            self._take(self._finished(run.assignment, run.plan, run.outcome))

    def _finished(self, worker: str, plan: Plan, outcome: RunOutcome) -> inputs.Finished:
        """The end of a run. One that somebody stopped, or that was abandoned, is none that a person ordered."""
        is_ok, order = outcome.status == RunStatus.OK, self._core.service.status().searched_for(worker)
        is_best = reaches_goal = False
        if is_ok and order and (order.goal is not None or order.patience is not None):
            with self._core.failures.watched(KEEPING):  # whatever the log says, the worker is free
                notebook = self._core.notebook
                leader, sign = notebook.leader(plan.task), notebook.log.tasks.sign(plan.task)
                is_best = bool(leader and leader.row.runs == 1 and leader.row.source_digest == plan.source_digest)
                reaches_goal = bool(leader and order.goal is not None and sign * leader.value <= sign * order.goal)
        counted = outcome.status not in UNFINISHED
        return inputs.Finished(worker, counted=counted, failed=not is_ok, is_best=is_best, reaches_goal=reaches_goal)

    def _take_over(self, run: InHand) -> bool:
        """Watch a run further that goes on elsewhere; whether there is such a run."""
        folder = Path(run.folder)
        try:
            request = read_request(folder)
        except UsageError:
            return False
        if not request.executor:
            return False
        self._core.folders.add(request.task)
        view = msgspec.structs.replace(self._view(run.plan), started_ms=run.started_ms)
        self._take(inputs.TakenOver(run.assignment, view, _key(run.plan), run.order))
        self.executor_runs.carry(run.assignment, folder, request.executor, is_started=True)
        return True

    # --- proposals ---

    def propose(self, folder: str, plan: Plan, *, shared: bool = False) -> str:
        """Queue a plan for a task folder; returns the name that its events carry."""
        assignment = self._proposals.add(folder, plan, now_ms(), shared=shared)
        self._take(inputs.RunAsked(assignment))
        return assignment.name

    def name_of(self, plan: Plan) -> str:
        """The name of a run of the same program with the same seed that waits or goes on here; empty: none does."""
        key = _key(plan)
        running = [worker.assignment for worker in self._core.service.status().workers if worker.key == key]
        waiting = (name for name, other in self._proposals.plans() if _key(other) == key)
        return next((each.name for each in running if each), "") or next(waiting, "")

    def drop(self, name: str) -> bool:
        """Take a proposal out of the queue, or stop its run; whether there was either."""
        is_in_hand = self._core.service.is_in_hand(name)
        self._take(inputs.RunDropped(name))
        return self._forget(name, "taken out of the queue before it began") or is_in_hand

    def queued(self) -> list[QueuedRun]:
        """The proposals that wait, the next first, and why."""
        return self._proposals.queued(self._core.service.status())

    def _forget(self, name: str, reason: str) -> bool:
        """End a proposal whose run has not begun; whether there was one."""
        if not self._proposals.end(name):
            return False
        status = RunStatus.CANCELLED
        self._core.events.tell("run_failed", reason, now_ms(), assignment=name, status=status, reason=reason)
        return True

    def _is_tried(self, assignment: str, plan: Plan) -> bool:
        """Whether another node does the same or has done it; of a shared proposal also whether this node has."""
        notebook = self._core.notebook
        if notebook.is_tried_elsewhere(plan, now_ms()):
            return True
        if self._proposals.is_shared(assignment):
            with suppress(NotFound):  # the task's folder changed meanwhile: where the run begins, that is said
                task, me = self._core.folders.task_of(plan), notebook.author
                return run_before(notebook.log, task, plan.source_digest, replicate=plan.replicate, me=me) is not None
        return False

    def _view(self, plan: Plan) -> RunInHand:
        """A plan as people see it."""
        headline = headline_of(self._core.notebook.log, self._core.notebook.blobs, plan)
        with suppress(NotFound):
            return run_in_hand(plan, self._core.folders.task_of(plan).name, headline)
        return run_in_hand(plan, headline=headline)


def _key(plan: Plan) -> tuple[bytes, bytes, int]:
    return plan.task, plan.source_digest, plan.replicate
