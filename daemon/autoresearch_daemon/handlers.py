"""What the API asks of the node, and what it gets."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TypeVar

import msgspec

from autoresearch.ask.acts.edited_program import Idea, plan_of_idea
from autoresearch.ask.acts.joining import find_network, join, joined_answer
from autoresearch.ask.acts.new_tasks import make_task
from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.acts.settings import AT_NEXT_START, FROM_NOW_ON, change_setting
from autoresearch.ask.acts.trial_runs import NewTaskContext
from autoresearch.ask.asking import ask_answer
from autoresearch.ask.discussion import AskAnswer, ClaimAnswer
from autoresearch.ask.health import failed
from autoresearch.ask.lookup import find_task, services_answer, task_of, with_participants
from autoresearch.ask.node import (
    Check,
    ConfigAnswer,
    Event,
    Health,
    JoinedAnswer,
    NewTaskAnswer,
    PeersAnswer,
    ProposedAnswer,
    QueueAnswer,
    RunAccepted,
    ServicesAnswer,
    StatusAnswer,
    TrustAnswer,
    VotersAnswer,
)
from autoresearch.ask.people.claims import claims_answer
from autoresearch.ask.people.participants import (
    AllowRequest,
    AttestAnswer,
    AttestorAnswer,
    AttestRequest,
    ConfirmRequest,
    WithdrawRequest,
)
from autoresearch.ask.people.voters import named_participant, voters_answer, way_to_count, with_voter
from autoresearch.ask.registry.components import ReleaseAnswer
from autoresearch.ask.registry.releases import (
    check_new_release,
    prepared_for,
    release_answer,
)
from autoresearch.ask.requests import (
    AdmitRequest,
    AskRequest,
    BlockRequest,
    CancelRequest,
    ClaimRequest,
    DialRequest,
    DropRequest,
    FetchRequest,
    JoinRequest,
    NameRequest,
    NewTaskRequest,
    OneEvidence,
    PauseRequest,
    ProposeRequest,
    PublishRequest,
    SettingRequest,
    VerifyRequest,
    WorkRequest,
)
from autoresearch.errors import AutoresearchError, NotFound, Refused, TimedOut, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import roster_of
from autoresearch.propose.search.sharing import check_proposer
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import BlobRef
from autoresearch.record.record import Record
from autoresearch.run.bench import fault_of_program
from autoresearch.run.experiment import Plan, again
from autoresearch.run.preflight import check_card
from autoresearch.settings import Settings, load_settings, parse_setting
from autoresearch.task.loading import folder_of_task
from autoresearch.task.model import Task
from autoresearch.trust.invite import Invitations
from autoresearch.trust.keys import KeyPair
from autoresearch.version import __version__
from autoresearch.words import Part, Result
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.minds.proposing import in_sentences, proposers_status
from autoresearch_daemon.node import NO_NETWORK, Node
from autoresearch_daemon.runs.executor_runs import order_of
from autoresearch_daemon.service.inputs import FinishAsked, OrderCancelled, PauseAsked, ResumeAsked, WorkAsked
from autoresearch_daemon.status import followed_task, limits_of, order_views, status_answer, verifying_part

R = TypeVar("R")
# Whoever asks again and again whether the node is ready has the log read no more often than this.
READY_SECONDS = 1.0


class ApiHandlers:
    """A node as its API sees it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.pages = ""  # their address, while they are served
        self._turn = asyncio.Lock()
        self._ailing: list[Check] = []
        self._looks_again = 0.0

    @property
    def log(self) -> Log:
        """The open log."""
        return self._node.notebook.log

    @property
    def blobs(self) -> BlobStore:
        """The open blob store."""
        return self._node.notebook.blobs

    @property
    def choices(self) -> Path:
        """The file of what a person chose here."""
        return self._node.paths.home_local

    def now_ms(self) -> int:
        """The clock."""
        return now_ms()

    def device(self) -> KeyPair:
        """The device key that signs here."""
        return self._node.notebook.identity.device

    async def publish(self, work: Callable[[Notebook], R]) -> R:
        """What ``work`` returns, given the notebook on the thread that writes; then what leads may differ."""
        try:
            return await self._node.thread.publish(self._node.notebook, work)
        finally:
            self._node.look_at_leaders(again=True)

    def author(self) -> bytes:
        """Its public half."""
        return self._node.notebook.author

    async def work(self, request: WorkRequest) -> StatusAnswer:
        """Order work: until told otherwise, for so many runs, or for a time."""
        folder = request.task and str(folder_of_task(request.task))
        task = self._node.load(folder or self._node.settings.work.task)
        if task.digest in self._node.archived():
            raise Refused(
                f"the task {task.name} is archived on this machine", hint=f"autoresearch task restore {task.name}"
            )
        share = self._node.settings.work.verify_share if request.verify_share is None else request.verify_share
        self._check_share(share, request.runs)
        settings = self._settings_now()
        check_proposer(request.proposer or settings.work.proposer, settings)
        place = order_of(settings.executor, request.executor, request.host, request.at_most)
        if place.executor:
            try:
                await asyncio.to_thread(self._node.elsewhere.executor(place.executor).capacity)
            except TimedOut as error:  # what was begun waits for a place that is away; nothing is begun there
                kind, _, host = place.executor.partition(":")
                sentence = f"no work was begun: {kind} can't be reached: {error}"
                hint = f"autoresearch node doctor executor{f' --host {host}' if host else ''}, then the same again"
                raise TimedOut(sentence, hint=hint) from error
        elif task.limits.card:
            check_card(task, self._node.pool.devices)
        order = replace(
            place,
            task=folder,
            runs_left=request.runs,
            for_ms=request.for_ms,
            verify_share=share,
            proposer=request.proposer,
        )
        self._node.take(WorkAsked(order, instead=request.instead))
        return self.status()

    def cancel_order(self, request: CancelRequest) -> StatusAnswer:
        """Cancel an order, and end its runs in hand."""
        if self._node.service.queue.agenda.find(request.number) is None:
            raise NotFound(f"there is no order {request.number}", hint="autoresearch work --list")
        self._node.take(OrderCancelled(request.number))
        return self.status()

    def _check_share(self, share: float, runs: int | None) -> None:
        """Refuse to verify all of the time where runs are asked for, or where there is nothing to verify."""
        if share >= 1 and runs is not None:
            raise UsageError(
                "runs are experiments, and who only checks others' makes none", hint="name a time: --for 2h"
            )
        if share >= 1 and not roster_of(self.log).voter(self.author(), now_ms()).attested:
            raise Refused(
                "this participant is unattested, so there is nothing for it to verify",
                hint=way_to_count(self.log, self._node.notebook.identity.root.public, now_ms()),
            )

    async def set_setting(self, request: SettingRequest) -> ConfigAnswer:
        """Change a setting in the file, and go by it at once where that is possible."""
        if request.name == "work.verify_share":
            share = parse_setting(request.name, request.value, float)
            for order in self._node.service.queue.agenda.orders:
                self._check_share(share, order.runs_left)
        async with self._turn:  # each change reads the file and writes it again
            answer = await asyncio.to_thread(change_setting, self._node.paths.settings, os.environ, request)
        [changed] = answer.settings
        if changed.live and changed.origin != "environment":
            self._node.go_by(changed)
        note = answer.note or (FROM_NOW_ON if changed.live else AT_NEXT_START)
        return msgspec.structs.replace(answer, note=note)

    def pause(self, request: PauseRequest) -> StatusAnswer:
        """Stop the runs in hand and take none until resumed."""
        self._node.take(PauseAsked(request.until_ms))
        return self.status()

    def resume(self) -> StatusAnswer:
        """End a pause."""
        self._node.take(ResumeAsked())
        return self.status()

    async def verify(self, request: VerifyRequest) -> RunAccepted:
        """Queue the verification of a run that a person names."""
        return await self._node.verifying.ask(request.run)

    async def check_evidence(self, asked: OneEvidence) -> RunAccepted:
        """Queue the measurement that it takes to check evidence."""
        return RunAccepted(assignment=await self._node.verifying.ask_again(asked.id, asked.kind))

    def finish(self) -> StatusAnswer:
        """Make the runs in hand the last."""
        self._node.take(FinishAsked())
        return self.status()

    async def propose(self, request: ProposeRequest) -> ProposedAnswer:
        """Queue the runs of a program."""
        folder = request.task and str(folder_of_task(request.task))
        task = self._task_of(request.task)
        if (fault := fault_of_program(task, request.program)) is not None:
            raise Refused(f"it can't be run: {fault}", hint="autoresearch task show DIR lists its files and limits")
        plan = await asyncio.to_thread(self._plan, task, request)
        plans = [again(plan, request.replicate + number) for number in range(request.seeds)]
        names = [self._node.propose(folder, each, shared=request.shared) for each in plans]
        return ProposedAnswer(
            proposed=names,
            title=plan.title,
            parent=None if plan.parent is None else format_id(plan.parent),
            queue=self._node.queued(),
        )

    def _task_of(self, folder: str) -> Task:
        """The task of a folder; of the configured one where none is named."""
        return self._node.load(str(folder_of_task(folder)) if folder else self._node.settings.work.task)

    def _plan(self, task: Task, request: ProposeRequest | ClaimRequest) -> Plan:
        """The plan for a program, from connections of its own: many programs may be compared with it."""
        log = Log.open(self.log.path, self.log.network, read_only=True, trust=self.log.trust)
        with log, BlobStore(self._node.paths.blobs, read_only=True) as blobs:
            idea = Idea(task, request.program, request.parent, request.hypothesis)
            return plan_of_idea(log, blobs, idea, author=self.author())

    def proposals(self) -> QueueAnswer:
        """What was proposed here and waits."""
        return QueueAnswer(queue=self._node.queued())

    def drop_proposal(self, request: DropRequest) -> QueueAnswer:
        """Take a proposal out of the queue, or stop its run."""
        if not self._node.drop(request.name):
            raise NotFound(
                f"no proposal {request.name} waits or runs here",
                hint="autoresearch status shows the names of those that do",
            )
        return self.proposals()

    async def peers(self) -> PeersAnswer:
        """This node on the network, and its peers."""
        found = self._node.exchange.peers() if self._node.exchange else PeersAnswer(network=NO_NETWORK)
        # What the log shows of many participants takes time, which the event loop has not.
        return await asyncio.to_thread(self._with_participants, found)

    def _with_participants(self, found: PeersAnswer) -> PeersAnswer:
        """The same from a connection of its own: a question holds the one that it asks."""
        with Log.open(self.log.path, self.log.network, read_only=True, trust=self.log.trust) as reader:
            return with_participants(reader, found)

    async def dial(self, request: DialRequest) -> PeersAnswer:
        """Begin to connect to an address, and stay connected."""
        if self._node.exchange is None:
            raise Refused(NO_NETWORK.reason, hint="autoresearch node config set network.enabled true")
        self._node.exchange.dial(request.address)
        return await self.peers()

    async def block(self, request: BlockRequest) -> PeersAnswer:
        """Refuse a peer from now on, or no longer."""
        if self._node.exchange is None:
            raise Refused(NO_NETWORK.reason, hint="autoresearch node config set network.enabled true")
        await self._node.exchange.block(request.peer, blocked=request.blocked)
        return await self.peers()

    async def fetch(self, request: FetchRequest) -> Health:
        """Get a blob from other nodes, unless it is here."""
        manifest = bytes.fromhex(request.manifest) if request.manifest else None
        blob = BlobRef(sha256=bytes.fromhex(request.sha256), size=request.size, manifest=manifest)
        await self.fetch_blob(blob, request.seconds)
        return Health(status="here")

    async def fetch_blob(self, blob: BlobRef, seconds: float) -> None:
        """The same for a blob of the log. Raises NotFound, TimedOut, Refused."""
        await self._node.fetch(blob, seconds)

    def attestation(self) -> AttestAnswer:
        """How this participant stands with the attestors."""
        return self._node.attesting.standing()

    async def attest(self, request: AttestRequest) -> AttestAnswer:
        """Have attestors write to an address."""
        return await self._node.attesting.ask(request)

    async def confirm(self, request: ConfirmRequest) -> AttestAnswer:
        """Bring an attestor the answer to its code."""
        return await self._node.attesting.confirm(request)

    def attestor(self) -> AttestorAnswer:
        """What this node did as an attestor."""
        return self._node.attesting.log()

    def withdraw_attestation(self, request: WithdrawRequest) -> AttestorAnswer:
        """Withdraw this attestor's attestation of a participant."""
        return self._node.attesting.withdraw(request)

    def allow(self, request: AllowRequest) -> AttestorAnswer:
        """Attest a participant's mailbox again."""
        return self._node.attesting.allow(request)

    async def join_network(self, request: JoinRequest) -> JoinedAnswer:
        """Join a network, and begin again in it; the answer still goes out."""
        paths, where = self._node.paths, request.where.strip()
        joined = await asyncio.to_thread(lambda: join(paths, find_network(paths, where)))
        restarts = not joined.was_member or not self._node.settings.network.enabled
        if restarts:
            self._node.end(again=True)
        return joined_answer(joined, restarts=restarts)

    async def new_task(self, request: NewTaskRequest) -> NewTaskAnswer:
        """Make the program in a folder a task, and work on it where that is asked for."""
        node, told = self._node, list[str]()
        context = NewTaskContext(node.paths, self._settings_now().work, told.append, cancelled=lambda: node.is_ending)
        answer = await asyncio.to_thread(make_task, request, context)
        if request.work:
            await self.work(WorkRequest(task=answer.folder))
            told.append("this node works on it")
        return msgspec.structs.replace(answer, note=" · ".join([answer.note, *told]))

    def set_name(self, request: NameRequest) -> StatusAnswer:
        """Publish what this participant calls itself, or that it has no name any more."""
        self._node.notebook.publish_name(request.name, now_ms())
        return self.status()

    async def publish_release(self, request: PublishRequest) -> ReleaseAnswer:
        """Publish a component: it is read or fetched beside the event loop, and stored there."""
        prepared = await asyncio.to_thread(prepared_for, request)
        author = self.author()

        def publish(notebook: Notebook) -> Record:
            check_new_release(notebook.log, prepared, author)
            return notebook.publish_release(prepared, now_ms())

        record = await self._node.thread.publish(self._node.notebook, publish)
        return release_answer(self.log, record.id, me=author, notes=prepared.notes)

    async def voters(self) -> VotersAnswer:
        """Who counts in this network, why, and who could."""
        root, seen = self._node.notebook.identity.root.public, self._node.devices_seen()
        return await self._node.thread.run(lambda log: voters_answer(log, root, now_ms(), seen=seen))

    async def admit(self, request: AdmitRequest) -> VotersAnswer:
        """As a founder, count a participant from now on, or no longer."""
        participant = named_participant(self.log, request.participant, author=self.author())
        notebook = self._node.notebook
        notebook.publish_admission(participant, now_ms(), admits=request.admits, reason=request.reason)
        self._node.admitting.notice()
        return await self.voters()

    async def claim(self, request: ClaimRequest) -> ClaimAnswer:
        """Publish that this node tries a program."""
        task, notebook = self._task_of(request.task), self._node.notebook
        plan = await asyncio.to_thread(self._plan, task, request)
        if notebook.is_tried_elsewhere(plan, now_ms()):
            raise Refused("another node tries this program, or has run it", hint="autoresearch run claims")
        notebook.publish_task(task, now_ms())
        notebook.publish_claim(plan, now_ms(), seconds=request.minutes * 60)
        found = task_of(self.log, task.digest)
        assert found, "it was published"
        return ClaimAnswer(
            claim=next(
                one
                for one in claims_answer(self.log, found, now_ms=now_ms(), me=self.author()).claims
                if one.is_own and one.source_digest == plan.source_digest.hex()
            )
        )

    async def ask(self, request: AskRequest) -> AskAnswer:
        """What the log says to a question, in a model's sentences where one is set up."""
        return await asyncio.to_thread(self._ask, request)

    def _ask(self, request: AskRequest) -> AskAnswer:
        """The same from connections of its own: a question reads many records, and a model thinks for minutes."""
        log = Log.open(self.log.path, self.log.network, read_only=True, trust=self.log.trust)
        with log, BlobStore(self._node.paths.blobs, read_only=True) as blobs:
            task = find_task(log, request.task or None, author=self.author(), archived=self._node.archived())
            plain = ask_answer(log, blobs, task, request.question, now_ms=now_ms(), me=self.author())
        return in_sentences(plain, self._settings_now(), self._node.paths.home_local) if request.model else plain

    async def services(self) -> ServicesAnswer:
        """What this machine serves to other programs, and what this participant's other machines do."""
        here, elsewhere = services_answer(self._node.paths.services), await self._node.machines.services()
        return ServicesAnswer(services=[*here.services, *elsewhere])

    async def trust(self) -> TrustAnswer:
        """Trust whom the network's file trusts by now. In a log that is not large all is judged again at once."""
        answer = self._node.trusting.take()
        if answer.changed:
            await self._node.settle_some()
        return answer

    def restart(self) -> Health:
        """End the daemon and begin again; the answer still goes out."""
        self._node.end(again=True)
        return Health(status="restarting")

    def stop(self) -> Health:
        """End the daemon; the answer still goes out."""
        self._node.end()
        return Health(status="stopping")

    def health(self) -> Health:
        """That the daemon is alive."""
        return Health(status="alive")

    def events_since(self, number: int) -> list[Event] | None:
        """Kept events after that id."""
        return self._node.events.since(number)

    def subscribe(self) -> AbstractContextManager[asyncio.Queue[Event]]:
        """Events from now on."""
        return self._node.events.subscribe()

    def ready(self) -> Health:
        """Whether the node can do what it is asked, and why not. The log is read once for all who ask in a second."""
        if monotonic() >= self._looks_again:
            self.status()
        blocks = self._node.service.status().blocks
        reasons = [sentence for _, sentence in blocks]
        reasons += [one.sentence for one in self._ailing if one.result == Result.FAILED]
        status = "not ready" if reasons else "ready"
        return Health(status=status, reason=reasons[0] if reasons else "", conditions=self._ailing)

    def status(self) -> StatusAnswer:
        """What the node does, and why; where its log can't be read, what ails it."""
        answer = self._status_anyway()
        self._ailing, self._looks_again = answer.conditions, monotonic() + READY_SECONDS
        return answer

    def _status_anyway(self) -> StatusAnswer:
        conditions = self._node.conditions()
        try:
            return self._status(conditions)
        except (AutoresearchError, sqlite3.Error, ValueError) as error:  # ValueError: stored bytes are no record
            now = self._node.service.status()
            if all(one.name != Part.LOG or one.result != Result.FAILED for one in conditions):
                conditions = [failed(Part.LOG, error), *conditions]
            return StatusAnswer(
                state=now.state.value,
                why=now.why.value,
                reason=now.reason,
                since_ms=now.since_ms,
                version=__version__,
                pid=os.getpid(),
                started_ms=self._node.started_ms,
                network=self.log.network.name,
                network_id=self.log.network.id.hex(),
                conditions=conditions,
                pages=self.pages,
            )

    def _status(self, conditions: list[Check]) -> StatusAnswer:
        now, node = self._node.service.status(now_ms()), self._node
        worked_on = node.tasks.get(now.front.task or node.settings.work.task)
        # A node that is not asked to work shows what it worked on last, whatever folders it looked into meanwhile.
        task = worked_on if now.is_working else None
        status = status_answer(
            now,
            self._node.notebook,
            level=self._node.level,
            started_ms=self._node.started_ms,
            task=followed_task(self._node.notebook, task.digest if task else None, self._node.archived()),
            net=self._node.exchange.status() if self._node.exchange else NO_NETWORK,
            conditions=conditions,
            trace=self._node.progress.trace,
        )
        part = verifying_part(
            now,
            self._node.notebook,
            self._node.verifying.waiting(),
            obstacle=self._node.verifying.obstacle(),
        )
        settings = self._settings_now()
        proposers = proposers_status(self.log, self._node.paths, settings, worked_on, me=self.author(), now_ms=now_ms())
        status = msgspec.structs.replace(
            status,
            verifying=part,
            storage=self._node.keeper.status(),
            machine=self._node.owner.seen(self._node.gauges.status),
            orders=order_views(now, self._task_name),
            queue=self._node.queued(),
            proposers=proposers,
            pages=self.pages,
            limits=limits_of(self._node.settings.work, self._node.settings.storage),
        )
        root = self._node.notebook.identity.root.public
        joins = Invitations(self._node.paths.manifest, self.log.network).kept_join() is not None
        return with_voter(self.log, status, root, now_ms(), seen=self._node.devices_seen(), joins=joins)

    def _task_name(self, folder: str) -> str:
        task = self._node.tasks.get(folder or self._node.settings.work.task)
        return task.name if task else Path(folder).name

    def _settings_now(self) -> Settings:
        """The settings as workers read them, for what is set up while the node runs; a broken file is a condition."""
        try:
            return load_settings(self._node.paths.settings, os.environ)[0]
        except UsageError:
            return self._node.settings
