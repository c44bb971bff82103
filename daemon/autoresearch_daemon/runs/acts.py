"""Acts that order work, propose programs and claim them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from autoresearch.ask import requests
from autoresearch.ask.acts.edited_program import Idea, plan_of_idea
from autoresearch.ask.discussion import ClaimAnswer
from autoresearch.ask.lookup import task_of
from autoresearch.ask.node import ProposedAnswer, QueueAnswer, RunAccepted, StatusAnswer
from autoresearch.ask.people.claims import claims_answer
from autoresearch.ask.people.voters import way_to_count
from autoresearch.errors import NotFound, Refused, TimedOut, UsageError
from autoresearch.log.standing.cache import roster_of
from autoresearch.propose.mind.recall import run_before
from autoresearch.propose.search.sharing import check_proposer
from autoresearch.record.encoding import format_id, short_id
from autoresearch.run.bench import fault_of_program
from autoresearch.run.experiment import Plan, again
from autoresearch.run.preflight import check_card
from autoresearch.task.loading import folder_of_task
from autoresearch.task.model import Task
from autoresearch_daemon.acts import act
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.parts import NodeParts
from autoresearch_daemon.runs.executor_runs import order_of
from autoresearch_daemon.service.inputs import FinishAsked, OrderCancelled, PauseAsked, ResumeAsked, WorkAsked


class WorkActs:
    """``status`` is what the node answers to an order."""

    def __init__(self, parts: NodeParts, status: Callable[[], StatusAnswer]) -> None:
        self._parts, self._status = parts, status
        self._take, self._assignments = parts.take, parts.assignments

    @act
    async def work(self, request: requests.WorkRequest) -> StatusAnswer:
        parts = self._parts
        folder = request.task and str(folder_of_task(request.task))
        task = parts.folders.load(parts.folders.worked_on(folder))
        if task.digest in parts.folders.archived():
            raise Refused(
                f"the task {task.name} is archived on this machine", hint=f"autoresearch task restore {task.name}"
            )
        share = parts.settings.work.verify_share if request.verify_share is None else request.verify_share
        self.check_share(share, request.runs or request.patience, request.goal)
        leader = None if request.goal is None else parts.notebook.leader(task.digest)
        sign = parts.notebook.log.tasks.sign(task.digest) if leader else 1.0
        if leader and request.goal is not None and sign * leader.value <= sign * request.goal:
            best = f"the best of {task.name} is {leader.value:.6g}: as good as {request.goal:.6g} already"
            raise UsageError(best, hint="name a better value, or give none")
        settings = parts.settings_of_file()
        check_proposer(request.proposer or settings.work.proposer, settings)
        place = order_of(settings.executor, request.executor, request.host, request.at_most)
        if place.executor:
            try:
                await asyncio.to_thread(self._assignments.executor_runs.executor(place.executor).capacity)
            except TimedOut as error:  # what was begun waits for a place that is away; nothing is begun there
                kind, _, host = place.executor.partition(":")
                sentence = f"no work was begun: {kind} can't be reached: {error}"
                hint = f"autoresearch node doctor executor{f' --host {host}' if host else ''}, then the same again"
                raise TimedOut(sentence, hint=hint) from error
        elif task.limits.card:
            check_card(task, self._assignments.pool.devices)
        order = replace(
            place,
            task=folder,
            task_name=task.name,
            runs_left=request.runs,
            for_ms=request.for_ms,
            verify_share=share,
            proposer=request.proposer,
            goal=request.goal,
            patience=request.patience,
        )
        self._take(WorkAsked(order, instead=request.instead))
        return self._status()

    @act
    def cancel_order(self, request: requests.CancelRequest) -> StatusAnswer:
        if self._parts.service.queue.agenda.find(request.number) is None:
            raise NotFound(f"there is no order {request.number}", hint="autoresearch work --list")
        self._take(OrderCancelled(request.number))
        return self._status()

    def check_share(self, share: float, runs: int | None, goal: float | None = None) -> None:
        """Refuse to verify all of the time where runs are asked for, or where there is nothing to verify.

        Raises UsageError, Refused.
        """
        if share >= 1 and (runs is not None or goal is not None):
            raise UsageError(
                "runs are experiments, and who only checks others' makes none", hint="name a time: --for 2h"
            )
        notebook = self._parts.notebook
        if share >= 1 and not roster_of(notebook.log).voter(notebook.author, now_ms()).attested:
            raise Refused(
                "this participant is unattested, so there is nothing for it to verify",
                hint=way_to_count(notebook.log, notebook.identity.root.public, now_ms()),
            )

    @act
    def pause(self, request: requests.PauseRequest) -> StatusAnswer:
        self._take(PauseAsked(request.until_ms))
        return self._status()

    @act
    def resume(self) -> StatusAnswer:
        self._take(ResumeAsked())
        return self._status()

    @act
    def finish(self) -> StatusAnswer:
        self._take(FinishAsked())
        return self._status()

    @act
    async def verify(self, request: requests.VerifyRequest) -> RunAccepted:
        return await self._parts.verifying.ask(request.run)

    @act
    async def check_evidence(self, request: requests.OneEvidence) -> RunAccepted:
        return RunAccepted(assignment=await self._parts.verifying.ask_again(request.id, request.kind))

    @act
    async def propose(self, request: requests.ProposeRequest) -> ProposedAnswer:
        folder = request.task and str(folder_of_task(request.task))
        task = self._parts.folders.load(self._parts.folders.worked_on(folder))
        if (fault := fault_of_program(task, request.program)) is not None:
            raise Refused(f"it can't be run: {fault}", hint="autoresearch task show DIR lists its files and limits")
        plan = await asyncio.to_thread(self._plan, task, request)
        plans = [again(plan, request.replicate + number) for number in range(request.seeds)]
        if request.once:
            notebook, unable = self._parts.notebook, {each.name for each in self._assignments.queued() if each.obstacle}
            for each in plans:
                digest, me = each.source_digest, notebook.author
                if run := run_before(notebook.log, task, digest, replicate=each.replicate, me=me):
                    raise Refused(
                        f"this program was run with this seed before: {short_id(run)}",
                        hint=f"change it; or give another seed, as replicate={each.replicate + 1}",
                    )
                if (name := self._assignments.name_of(each)) in unable:
                    self._assignments.drop(name)  # whoever asks again has mended it: it is tried at once
                elif name:
                    raise Refused(
                        f"this program waits or runs here with this seed already: {name}",
                        hint=f"autoresearch run wait {name}, autoresearch run cancel {name}",
                    )
        names = [self._assignments.propose(folder, each, shared=request.shared) for each in plans]
        return ProposedAnswer(
            proposed=names,
            title=plan.title,
            parent=None if plan.parent is None else format_id(plan.parent),
            queue=self._assignments.queued(),
        )

    def _plan(self, task: Task, request: requests.ProposeRequest | requests.ClaimRequest) -> Plan:
        """The plan for a program: many programs may be compared with it."""
        with self._parts.reading() as (log, blobs):
            idea = Idea(task, request.program, request.parent, request.hypothesis)
            return plan_of_idea(log, blobs, idea, author=self._parts.notebook.author)

    @act
    def proposals(self) -> QueueAnswer:
        return QueueAnswer(queue=self._assignments.queued())

    @act
    def drop_proposal(self, request: requests.DropRequest) -> QueueAnswer:
        if not self._assignments.drop(request.name):
            raise NotFound(
                f"no proposal {request.name} waits or runs here",
                hint="autoresearch status shows the names of those that do",
            )
        return self.proposals()

    @act
    async def claim(self, request: requests.ClaimRequest) -> ClaimAnswer:
        notebook = self._parts.notebook
        folder = request.task and str(folder_of_task(request.task))
        task = self._parts.folders.load(self._parts.folders.worked_on(folder))
        plan = await asyncio.to_thread(self._plan, task, request)
        if notebook.is_tried_elsewhere(plan, now_ms()):
            raise Refused("another node tries this program, or has run it", hint="autoresearch run claims")
        if run := run_before(notebook.log, task, plan.source_digest, replicate=plan.replicate, me=notebook.author):
            raise Refused(
                f"this program was run here before: {short_id(run)}", hint=f"autoresearch show {short_id(run)}"
            )
        notebook.publish_task(task, now_ms())
        notebook.publish_claim(plan, now_ms(), seconds=request.minutes * 60)
        row = task_of(notebook.log, task.digest)
        assert row, "it was published"
        claims = claims_answer(notebook.log, row, now_ms=now_ms(), me=notebook.author).claims
        digest = plan.source_digest.hex()
        return ClaimAnswer(claim=next(claim for claim in claims if claim.is_own and claim.source_digest == digest))
