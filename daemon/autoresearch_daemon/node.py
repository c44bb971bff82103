"""One node: the only place where the parts meet. What arrives becomes inputs of the service; its effects, acts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from errno import EMFILE, ENFILE
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import structlog

from autoresearch.ask.acts.notebook import Notebook, outcome
from autoresearch.ask.health import conditions, examine, of_peers, open_files, warning
from autoresearch.ask.node import Check, NetworkStatus, QueuedRun, RunInHand, Setting
from autoresearch.ask.runs.headlines import headline_of
from autoresearch.ask.show import record_view
from autoresearch.errors import AutoresearchError, LogBehind, NotFound, UsageError
from autoresearch.log.derive.driver import settle
from autoresearch.log.local import Choice, chosen
from autoresearch.log.standing.context import participant_with_key
from autoresearch.log.standing.metrics import read_sources
from autoresearch.paths import Paths, typed_path
from autoresearch.propose.mind.recall import run_before
from autoresearch.record.kinds import BlobRef, Claim, Commitment, Run, RunOutcome, Verification
from autoresearch.record.record import Record
from autoresearch.run.bench import Ceiling
from autoresearch.run.executors import executor_of
from autoresearch.run.experiment import Plan
from autoresearch.run.folder import Fault, RunReply, fault_of, new_run, read_outcome, read_request
from autoresearch.run.runner import outcome_of
from autoresearch.run.sandbox.cards import PROCESSOR
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.obstacle import find_obstacle
from autoresearch.run.sandbox.probes import ProbeResult, detect_level
from autoresearch.run.sandbox.scratch import remove_tree, sweep
from autoresearch.settings import Settings
from autoresearch.task.loading import default_task, load_task
from autoresearch.task.model import Task
from autoresearch.trust.identity import standing
from autoresearch.version import __version__
from autoresearch.words import (
    BLOCKING_PARTS,
    UNFINISHED,
    WHY_SENTENCES,
    NetworkState,
    Part,
    Result,
    RunStatus,
    Why,
    network_reason,
)
from autoresearch_daemon.events import Events, MachineFaults, ProgressEvents, now_ms
from autoresearch_daemon.failures import ACCEPTING, DECIDING, GAUGING, JUDGING, KEEPING, LOOKING
from autoresearch_daemon.gauges import Gauges
from autoresearch_daemon.local_state import InHand, LocalState
from autoresearch_daemon.log_thread import LogThread
from autoresearch_daemon.mail.mailer import mail_server
from autoresearch_daemon.mail.service import AttestationService
from autoresearch_daemon.notices import Notices
from autoresearch_daemon.owner.watch import OwnerWatch
from autoresearch_daemon.peers.blob_storage import Keeper
from autoresearch_daemon.peers.own_services import OwnServices
from autoresearch_daemon.peers.record_sync import RecordSync, host_options
from autoresearch_daemon.peers.trust_watch import AdmissionWatch, ManifestWatch
from autoresearch_daemon.runs.executor_runs import ExecutorRuns, order_of
from autoresearch_daemon.runs.in_hand import Proposals, RunRecorder, highest, run_in_hand
from autoresearch_daemon.service.effects import (
    Announce,
    Approve,
    Assign,
    Cancel,
    CloseAbandoned,
    Decline,
    Effect,
    LeaveToOther,
    Overtake,
    RecordWaiting,
    Save,
    Tell,
    Verify,
    WantWorkers,
    WithdrawClaim,
)
from autoresearch_daemon.service.inputs import (
    Assignment,
    Blocked,
    Dropped,
    Failed,
    Finished,
    Input,
    Located,
    MachineChanged,
    OrderCancelled,
    Outrun,
    Progressed,
    Proposed,
    RunAsked,
    RunDropped,
    Sent,
    Settled,
    ShareChanged,
    StopAsked,
    TakenOver,
    Tick,
    Unworkable,
    VerificationsChanged,
    WorkerLeaves,
    WorkerLost,
    WorkerReady,
    WorkerStage,
)
from autoresearch_daemon.service.machine import Service
from autoresearch_daemon.service.queue import WorkQueue
from autoresearch_daemon.status import LeaderWatch, waiting_reasons
from autoresearch_daemon.verification.controller import VerificationController
from autoresearch_daemon.verification.queue import VerificationQueue
from autoresearch_daemon.workers import protocol
from autoresearch_daemon.workers.pool import Pool

logger = structlog.get_logger()

# How often the node looks at what no event tells: free disk space, ends of pauses and orders.
TICK_SECONDS = 5.0
# Records wait for no more than this while verdicts are settled.
SETTLE_SECONDS = 0.05
# How long a worker's next verification may wait for the files of the run.
FETCH_SECONDS = 60.0
# How often the node looks whether its delegation is due for renewal.
RENEW_SECONDS = 3600
# How long a start waits for a peer to tell what this device signed last; a node whose peers are all away goes on then.
ASK_PEERS_SECONDS = 10.0
# More records of others at once are catching up, not news.
NEWS_MAX = 16
NO_NETWORK = NetworkStatus(state=NetworkState.OFF.value, reason=network_reason(NetworkState.OFF))


class Node:
    """A running node. ``start``, then ``wait``, then ``stop``; ``take`` what happens in between."""

    def __init__(self, paths: Paths, settings: Settings, devices: list[str]) -> None:
        self.paths = paths
        self.settings = settings
        self.started_ms = now_ms()
        self.level: Level | None = None
        self.probes: tuple[ProbeResult, ...] = ()
        self._ended = asyncio.Event()
        self.again = False
        self.notebook = Notebook(paths)
        self.local = LocalState(paths.local)
        self.gauges = Gauges()
        self.thread = LogThread(self.notebook.log)
        self.failures = self.thread.failures
        self.events = Events(self.local, self.failures)
        self.progress = ProgressEvents(self.events)
        self.service = Service(
            workers_wanted=settings.work.workers,
            queue=WorkQueue(
                agenda=self.local.agenda(),
                resting=order_of(settings.executor),
                counter=highest([run.assignment for run in self.local.in_hand()]),
            ),
            since_ms=self.started_ms,
        )
        self.elsewhere = ExecutorRuns(
            partial(executor_of, settings.executor), take=self._heard_elsewhere, ended=self._ended_elsewhere
        )
        self.pool = Pool(
            devices,
            on_message=self._heard,
            on_leaving=lambda worker: self.take(WorkerLeaves(worker)),
            on_lost=self._lost,
        )
        self._planned: dict[str, protocol.Proposal] = {}
        self._overtaken: dict[str, tuple[Plan, str]] = {}  # by assignment: what is run again, and why it was stopped
        self._machine_signs: tuple[object, ...] = ()
        self.proposals = Proposals(self.local)
        self._faults = MachineFaults()
        self.tasks: dict[str, Task] = {}
        self._ceiling = Ceiling.of(settings.work)
        self._renew_ms = 0
        self._standing = ""
        self._no_sandbox: list[Check] = []  # set where programs of others can't be walled in
        self._ailing: set[tuple[str, str]] = set()  # the conditions at the last look, by name and result
        self.runs = RunRecorder(
            self.notebook,
            self.thread,
            self.local,
            self.events,
            paths.spool,
            keep_checkpoints=settings.storage.keep_checkpoints,
        )
        self.keeper = Keeper(
            self.notebook,
            quota_bytes=settings.storage.blobs_mib << 20,
            minimum_free_bytes=settings.storage.minimum_free_mib << 20,
        )
        server = mail_server(settings.mail, os.environ)
        self.attesting = AttestationService(self.notebook, self.local, paths, settings.attestor, server, now_ms=now_ms)
        self.machines = OwnServices(self.notebook, paths)
        self.exchange: RecordSync | None = None
        if settings.network.enabled:
            self.exchange = RecordSync(
                self.notebook,
                host_options(paths.network, settings, self.notebook.manifest),
                settings.network,
                self.keeper,
                self.thread,
                on_news=self._news,
                questions={"attest": self.attesting.reply, "services": self.machines.reply},
            )
            self.attesting.connect(self.exchange)
            self.machines.connect(self.exchange.network)
        self.verifying = VerificationController(
            self.notebook,
            VerificationQueue(
                self.notebook,
                self.thread,
                lambda blob: self.fetch(blob, FETCH_SECONDS),
                lambda: self.exchange is not None and bool(self.exchange.connected()),
            ),
            self.events,
            self.service,
            paths,
            self.local,
            take=self.take,
            load=lambda folder: self.load(folder or settings.work.task),
        )
        self.leading = LeaderWatch(self.thread, self.events, self.notebook.author)
        self.trusting = ManifestWatch(self.notebook, self.events, paths.manifest, changed=self._trust_changed)
        self.admitting = AdmissionWatch(
            self.notebook, self.thread, self.events, paths.manifest, changed=self._trust_changed
        )
        self.owner = OwnerWatch(
            lambda: self.settings,
            self.service.status,
            lambda: self.gauges.status,
            take=self.take,
            workers=lambda: self.pool.pids().values(),
            rest=lambda rest: self.exchange.rest(rest) if self.exchange else None,
            woke=self.pool.renew if any(device != PROCESSOR for device in devices) else None,
        )
        self.notices = Notices(
            lambda: self.settings.notify,
            self.events,
            lambda: participant_with_key(self.notebook.log, self.notebook.identity.root.public),
            server,
        )
        self._others_count = asyncio.Event()
        self._keepers: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        # The API answers before the sandbox is tested.
        self.take(Blocked(Why.TESTING_SANDBOX, WHY_SENTENCES[Why.TESTING_SANDBOX]))

    # --- life ---

    async def start(self) -> None:
        """Close what a dead daemon left open, test the sandbox, open the workers' link, go on with what was asked."""
        logger.info("started", version=__version__, process=os.getpid(), workers=self.settings.work.workers)
        for folder in (None, self.paths.task_data):
            await asyncio.to_thread(sweep, folder)
        await asyncio.to_thread(self.runs.sweep, self.elsewhere.forget)
        self.look_at_leaders()
        if self.exchange:
            self.take(Blocked(Why.ASKING_PEERS, WHY_SENTENCES[Why.ASKING_PEERS]))
            await self.owner.look_at_network()
            await self.exchange.start()
        level, self.probes = await asyncio.to_thread(detect_level, self._secrets())
        if level < Level.LANDLOCK:
            cause, remedy = await asyncio.to_thread(find_obstacle)
            detail = f"there is none, so only your own programs run: {cause}"
            self._no_sandbox = [Check(name=Part.SANDBOX, result=Result.WARNING, detail=detail, fix=remedy)]
        logger.info("sandbox", level=level.label, leaks=[p.name for p in self.probes if not p.blocked])
        if level < self.settings.work.minimum_sandbox:
            self.take(Blocked(Why.SANDBOX_TOO_LOW, WHY_SENTENCES[Why.SANDBOX_TOO_LOW]))
        if self.exchange:
            # An old copy of the whole data folder knows nothing of what this device signed since: peers do.
            await self.exchange.first(ASK_PEERS_SECONDS)
        try:
            await self._renew()
            self._block(await self.runs.close_left_over(self._take_over, self._count_left_over))
        except AutoresearchError as error:
            self._block(error)
        self.level = self.verifying.level = level
        self._leave_archived()
        self.take(Blocked(Why.ASKING_PEERS, None))
        self.take(Blocked(Why.TESTING_SANDBOX, None))
        for assignment in self.proposals.left_over():
            self.take(RunAsked(assignment))
        await self.owner.look()
        keepers = (
            self._tick(),
            self.owner.keep(),
            self.notices.keep(),
            self._settle(),
            self.keeper.keep(),
            self.verifying.keep(),
            self.elsewhere.keep(),
        )
        self._keepers = [asyncio.create_task(keeper) for keeper in keepers]

    async def wait(self) -> None:
        """Until somebody asks the node to stop."""
        await self._ended.wait()

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
        self.take(StopAsked())
        for keeper in self._keepers:
            keeper.cancel()
        await self.pool.stop()
        if self.exchange:
            with self.failures.watched("leaving the network"):
                await self.exchange.stop()
        await asyncio.gather(*self._tasks)
        await asyncio.to_thread(self.thread.close)
        self.attesting.close()
        self.local.close()
        self.paths.remove_sockets()
        self.notebook.close()
        logger.info("stopped")

    def _secrets(self) -> list[Path]:
        """What no run may read."""
        password = self.settings.mail.password_file
        return [*self.paths.secrets(), *([Path(password).expanduser()] if password else [])]

    async def _tick(self) -> None:
        while True:
            with self.failures.watched(LOOKING):
                await self._look()
            if open_files().result != Result.FAILED:
                self.failures.worked(ACCEPTING)
            with self.failures.watched(DECIDING):
                self.take(Tick())
            with self.failures.watched(GAUGING):
                looks_at_cards = self.owner.is_hot or any(one.run for one in self.service.status().workers)
                await asyncio.to_thread(self.gauges.look, cards=looks_at_cards)
            await asyncio.sleep(TICK_SECONDS)

    async def _look(self) -> None:
        self.look_at_health()
        self._look_at_machine()
        self.trusting.look()
        self._leave_archived()
        await self.admitting.look()
        await self.leading.look(now_ms())
        if self.exchange:
            await self.exchange.look()
            self.machines.look()
        if now_ms() >= self._renew_ms:
            try:
                await self._renew()
            except AutoresearchError as error:
                self._block(error)

    async def _settle(self) -> None:
        """Judge in pieces what was not when it was stored, so that questions and the next start find it done."""
        while True:
            self._others_count.clear()
            left = 0
            with self.failures.watched(JUDGING):
                left = await self.settle_some()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._others_count.wait(), 0.0 if left else TICK_SECONDS)

    async def settle_some(self) -> int:
        """Judge for a short time what is to be judged; returns how many runs are left. At the end look who leads."""
        before = self.notebook.log.reader.revision().settled
        await self.thread.run(partial(read_sources, blobs=self.notebook.blobs))
        left = await self.thread.run(partial(settle, seconds=SETTLE_SECONDS))
        if not left and self.notebook.log.reader.revision().settled != before:
            await self.leading.look(now_ms(), again=True)
            self.take(VerificationsChanged())
        return left

    async def _renew(self) -> None:
        """Publish who this device speaks for, and again in time; say so where only a person can."""
        self._renew_ms = now_ms() + RENEW_SECONDS * 1000
        await self.thread.publish(self.notebook, lambda notebook: notebook.publish_identity(now_ms()))
        self._standing = standing(self.notebook.device(now_ms()), now_ms())
        if self._standing:
            logger.warning("identity", reason=self._standing)

    def devices_seen(self) -> dict[bytes, int]:
        """By device key when peers were connected last, those that are connected now at this moment."""
        peers = self.exchange.peers().peers if self.exchange else []
        devices = [(bytes.fromhex(peer.device_key), peer) for peer in peers if peer.device_key]
        return {key: now_ms() if peer.connected else peer.seen_ms for key, peer in devices}

    def conditions(self) -> list[Check]:
        """What ails this node, with its remedies: what its home shows, and what only a running node knows."""
        found = examine(self.paths, os.environ, now_ms(), log=self.notebook.log)
        found += self._no_sandbox
        told = {Part.IDENTITY: self._standing, Part.NETWORK: self.trusting.problem, Part.INVITE: self.admitting.problem}
        found += [warning(part, sentence) for part, sentence in told.items() if sentence] + self.attesting.conditions()
        found += self.owner.conditions() + self.notices.conditions() + self.failures.conditions()
        found.append(open_files())
        if self.exchange:
            found += of_peers(self.exchange.peers().peers) + self.exchange.conditions()
        return conditions(found)

    def go_by(self, setting: Setting) -> None:
        """Go by another value of a live setting from now on."""
        section, _, key = setting.name.partition(".")
        changed = msgspec.structs.replace(getattr(self.settings, section), **{key: setting.value})
        self.settings = msgspec.structs.replace(self.settings, **{section: changed})
        work = self.settings.work
        self.take(ShareChanged(work.workers, work.verify_share if key == "verify_share" else None))
        if section == "notify":
            self.notices.greet(key)
        self._spawn(self.owner.look())

    def look_at_health(self) -> None:
        """Begin no runs while a condition forbids it, and tell which conditions came and which went."""
        found = self.conditions()
        failures = {one.name: one.sentence for one in found if one.result == Result.FAILED}
        for part, why in BLOCKING_PARTS.items():
            self.take(Blocked(why, failures.get(part)))
        ailing = {(one.name, one.result): one for one in found}
        for key in ailing.keys() - self._ailing:
            check = ailing[key]
            about = msgspec.to_builtins(check)
            self.events.tell("condition", f"{check.name}: {check.sentence}", now_ms(), **about)
        for name, _ in self._ailing - ailing.keys():
            if name not in {one.name for one in found}:
                self.events.tell("condition", f"{name}: mended", now_ms(), name=name, result=Result.OK.value)
        self._ailing = set(ailing)

    def archived(self) -> frozenset[bytes]:
        """The tasks that a person archived on this machine."""
        return chosen(self.paths.home_local, Choice.ARCHIVED)

    def _leave_archived(self) -> None:
        """A task that a person archives while the node works on it is worked on no longer."""
        archived = self.archived()
        for order in self.service.queue.agenda.orders if archived else ():
            folder = order.task or self.settings.work.task
            with suppress(AutoresearchError):  # whoever works on it meets the same error
                if (self.tasks.get(folder) or self.load(folder)).digest in archived:
                    self.take(OrderCancelled(order.number))

    def _look_at_machine(self) -> None:
        """What could not be begun for lack of something is tried again when more may be there than before."""
        if not self.service.queue.held:
            return
        seen = self.gauges.status
        signs = (
            *(file.stat().st_mtime_ns if file.exists() else 0 for file in (self.paths.allowed, self.paths.settings)),
            *((seen.memory_total_bytes - seen.memory_bytes >> 30, len(seen.cards)) if seen else ()),
        )
        if signs != self._machine_signs:
            self._machine_signs = signs
            self.take(MachineChanged())

    # --- the service's inputs and effects ---

    def take(self, event: Input) -> None:
        """Something happened: decide, then act."""
        for effect in self.service.handle(event, now_ms()):
            self._act(effect)

    def _act(self, effect: Effect) -> None:
        match effect:
            case WantWorkers(count):
                self.pool.want(count)
            case Assign(worker, assignment, run):
                self.pool.send(worker, self._work_message(assignment))
                if run:
                    about = msgspec.to_builtins(run)
                    self.events.tell(
                        "check_started", run.title, now_ms(), worker=worker, assignment=assignment.name, **about
                    )
            case Announce() | Approve() | WithdrawClaim() | LeaveToOther():
                self._act_on_claim(effect)
            case Decline() | Cancel() | Overtake():
                self._stop(effect)
            case CloseAbandoned(assignment):
                self._spawn(self._close_lost(assignment))
            case Verify():
                self.verifying.want(effect)
            case RecordWaiting():
                self._spawn(self._record_waiting())
            case Save():
                with self.failures.watched(KEEPING):
                    self.local.save_agenda(self.service.queue.agenda)
            case Tell(kind, text, order):
                now = self.service.status()
                state = {"state": now.state.value, "why": now.why.value, "reason": now.reason}
                self.events.tell(kind, text, now_ms(), **state, order=order or None)

    def _stop(self, effect: Decline | Cancel | Overtake) -> None:
        worker, assignment = effect.worker, effect.assignment
        if isinstance(effect, Overtake):
            self._overtaken[assignment] = self._planned[worker].plan, effect.reason
        if isinstance(effect, Decline):
            self.pool.send(worker, protocol.Decline(assignment=assignment))
        elif worker in self.elsewhere:
            self.elsewhere.cancel(worker)
        else:
            self.pool.send(worker, protocol.Cancel(assignment=assignment))

    def _work_message(self, assignment: Assignment) -> protocol.Work:
        folder = self._folder(assignment)
        with suppress(AutoresearchError):  # the worker meets the same error and reports it
            self.load(folder)
        now = self.service.status()
        order = now.order_of(assignment)
        level = self.elsewhere.levels.get(order.executor)
        overtaken, _ = self._overtaken.pop(assignment.again, (None, ""))
        return protocol.Work(
            assignment=assignment.name,
            run=new_run(assignment.name),
            task=folder,
            plan=overtaken or self.proposals.plan(assignment.name),
            recheck=self._faults.suspected,
            level=int(self.level or 0) if level is None else level,
            author=self.notebook.author,
            check=self.verifying.give(assignment),
            proposer=order.proposer,
            counted=order.runs_left is not None,
            goes_on=now.goes_on(order),
            executor=order.executor,
            executor_device=self.settings.executor.device,
        )

    def _folder(self, assignment: Assignment) -> str:
        return assignment.task or self.settings.work.task

    async def _lost(self, worker: str) -> None:
        self.take(WorkerLost(worker))

    async def _heard(self, worker: str, message: protocol.FromWorker) -> None:
        match message:
            case protocol.Ready():
                self.take(WorkerReady(worker, message.device))
            case protocol.Stage():
                self.take(WorkerStage(worker, Why(message.why)))
            case protocol.Proposal():
                self._planned[worker] = message
                if self._faults.suspected:  # then the baseline ran here before it
                    self._faults.clear()
                plan = message.plan
                key = (plan.task, plan.source_digest, plan.replicate)
                taken = self._is_tried(message.assignment, plan)
                has_peers = self.exchange is not None and bool(self.exchange.connected())
                proposed = Proposed(worker, message.assignment, key, self._shown(plan), taken, has_peers)
                self.take(proposed)
            case protocol.Progress():
                self._progressed(worker, message)
            case protocol.Ended():
                await self._record_end(worker, message.assignment, Path(message.folder))
            case protocol.Written():
                self.elsewhere.carry(message.assignment, Path(message.folder), message.executor)
                self.take(Sent(worker))
            case protocol.Dropped():
                self.take(Dropped(worker))
            case protocol.Failed():
                logger.warning("assignment failed", worker=worker, reason=message.sentence)
                waits = message.cannot_run_here and self.proposals.plan(message.assignment) is not None
                if not waits:
                    self.proposals.end(message.assignment)
                    about = {"assignment": message.assignment, "worker": worker}
                    self.events.tell("run_failed", message.sentence, now_ms(), **about)
                self._block(await self.runs.close_lost(message.assignment, message.sentence))
                self.take(Failed(worker, message.sentence, message.cannot_run_here))

    # --- runs ---

    async def _record_end(self, worker: str, assignment: str, folder: Path) -> None:
        """What a worker or an executor was given has an outcome in its folder: record it."""
        self.progress.forget(worker)
        try:
            ended = read_outcome(folder)
        except AutoresearchError as error:
            ended = RunReply(run=folder.name, fault=fault_of(error))
        assert ended is not None, "it is said to have an outcome"
        if plan := self.runs.plan(assignment):
            outcome = self._faults.ended(plan, outcome_of(ended))
            if outcome.status == RunStatus.CANCELLED and assignment in self._overtaken:
                outcome = msgspec.structs.replace(outcome, reason=self._overtaken[assignment][1])
            self._block(await self.runs.finish(assignment, outcome))
            with self.failures.watched(KEEPING):
                self.runs.count(assignment, lambda: self.take(_finished(worker, outcome)))
            return
        await asyncio.to_thread(remove_tree, folder)
        if ended.verified is None:
            fault = ended.fault or Fault(sentence=ended.outcome.reason if ended.outcome else "")
            told = protocol.Failed(
                assignment=assignment, sentence=fault.sentence, cannot_run_here=fault.cannot_run_here
            )
            await self._heard(worker, told)
            return
        self._block(self.verifying.finish(assignment, ended.verified, cancelled=ended.cancelled))
        failed = ended.verified.verdict == "error" and not ended.cancelled
        self.take(Finished(worker, counted=False, failed=failed))

    def _count_left_over(self, run: InHand) -> None:
        """A run ended, and the daemon with it before it was counted."""
        assert run.outcome is not None
        if run.order:
            key = (run.plan.task, run.plan.source_digest, run.plan.replicate)
            self.take(TakenOver(run.assignment, self._shown(run.plan), key, run.order))
            self.take(_finished(run.assignment, run.outcome))

    def _progressed(self, worker: str, message: protocol.Progress) -> None:
        self.take(Progressed(worker, message.fraction, message.step, message.loss))
        self.progress.tell(worker, message, self.service.status().run_of(worker), now_ms())

    def _heard_elsewhere(self, event: Located | protocol.Progress) -> None:
        """A run elsewhere is queued, runs, or went on; its place has the name of its assignment."""
        if isinstance(event, Located):
            self.take(event)
        else:
            self._progressed(event.assignment, event)

    async def _ended_elsewhere(self, place: str, folder: Path) -> None:
        await self._record_end(place, place, folder)

    def _take_over(self, run: InHand) -> bool:
        """Watch a run further that goes on elsewhere; whether there is such a run."""
        folder = Path(run.folder)
        try:
            request = read_request(folder)
        except UsageError:
            return False
        if not request.executor:
            return False
        self.tasks.setdefault(str(request.task.folder), request.task)
        key = (run.plan.task, run.plan.source_digest, run.plan.replicate)
        shown = msgspec.structs.replace(self._shown(run.plan), started_ms=run.started_ms)
        self.take(TakenOver(run.assignment, shown, key, run.order))
        self.elsewhere.carry(run.assignment, folder, request.executor, is_started=True)
        return True

    def _act_on_claim(self, effect: Announce | Approve | WithdrawClaim | LeaveToOther) -> None:
        match effect:
            case Announce(worker, assignment, key, settle_ms):
                if self._write(worker, assignment, self.runs.claim):
                    settled = Settled(worker, key)
                    asyncio.get_running_loop().call_later(settle_ms / 1000, self.take, settled)
            case Approve(worker, assignment):
                shown = self._shown(self._planned[worker].plan)
                begin = partial(self.runs.begin, worker, shown=shown)
                if self._write(worker, assignment, begin):
                    self.proposals.end(assignment)
                    self.pool.send(worker, protocol.Approve(assignment=assignment))
            case WithdrawClaim(assignment):
                self._block(self.runs.withdraw_claim(assignment))
            case LeaveToOther(assignment):
                self._forget(assignment, "left to another worker or node, which runs it or has run it")

    def _write(self, worker: str, assignment: str, write: Callable[[protocol.Proposal, int], None]) -> bool:
        """Record what a worker proposed, and its task; or stop the worker, when that is not possible now."""
        proposal, in_hand = self._planned[worker], self.service.workers[worker].assignment
        try:
            self.notebook.publish_task(self._task_of(proposal.plan), now_ms())
            write(proposal, in_hand.order if in_hand else 0)
        except NotFound as error:
            self.take(Unworkable(worker, error.with_hint))
            return False
        except AutoresearchError as error:
            self.pool.send(worker, protocol.Cancel(assignment=assignment))
            self._block(error)
            return False
        return True

    async def _close_lost(self, assignment: str) -> None:
        self._block(await self.runs.close_lost(assignment, "the worker process ended while it was in hand"))

    async def _record_waiting(self) -> None:
        self._block(await self.runs.record_waiting() or self.verifying.reveal())

    def _block(self, error: AutoresearchError | None) -> None:
        """Work cannot go on while nothing can be recorded."""
        match error:
            case None:
                return
            case LogBehind():
                why = Why.LOG_BEHIND
            case _:
                why = Why.CANNOT_RECORD
        self.take(Blocked(why, error.with_hint))

    def _task_of(self, plan: Plan) -> Task:
        for task in self.tasks.values():
            if task.digest == plan.task:
                return task
        raise NotFound("the task's folder changed since the worker read it", hint="autoresearch work")

    def _is_tried(self, assignment: str, plan: Plan) -> bool:
        """Whether another node does the same or has done it; of a shared proposal also whether this node has."""
        if self.notebook.is_tried_elsewhere(plan, now_ms()):
            return True
        if self.proposals.is_shared(assignment):
            log, me = self.notebook.log, self.notebook.author
            with suppress(NotFound):  # the task's folder changed meanwhile: where the run begins, that is said
                task = self._task_of(plan)
                return run_before(log, task, plan.source_digest, replicate=plan.replicate, me=me) is not None
        return False

    def _shown(self, plan: Plan) -> RunInHand:
        """A plan as people see it."""
        headline = headline_of(self.notebook.log, self.notebook.blobs, plan)
        with suppress(NotFound):
            return run_in_hand(plan, self._task_of(plan).name, headline)
        return run_in_hand(plan, headline=headline)

    def propose(self, folder: str, plan: Plan, *, shared: bool = False) -> str:
        """Queue a plan for a task folder; returns the name that its events carry."""
        assignment = self.proposals.add(folder, plan, now_ms(), shared=shared)
        self.take(RunAsked(assignment))
        return assignment.name

    def drop(self, name: str) -> bool:
        """Take a proposal out of the queue, or stop its run; whether there was either."""
        is_in_hand = self.service.is_in_hand(name)
        self.take(RunDropped(name))
        return self._forget(name, "taken out of the queue before it began") or is_in_hand

    def _forget(self, name: str, reason: str) -> bool:
        """End a proposal whose run has not begun; whether there was one."""
        was_there = self.proposals.end(name)
        if was_there:
            status = RunStatus.CANCELLED
            self.events.tell("run_failed", reason, now_ms(), assignment=name, status=status, reason=reason)
        return was_there

    def queued(self) -> list[QueuedRun]:
        """The proposals that wait, the next first, and why."""
        return self.proposals.queued(waiting_reasons(self.service.status(), now_ms()))

    def load(self, folder: str) -> Task:
        """Read a task folder (empty: the default task) and remember it.

        Raises:
            UsageError: it is no task.
            Refused: the task asks for more than this machine allows.
        """
        task = self.tasks[folder] = load_task(typed_path(folder)) if folder else default_task()
        self._ceiling.check(task)
        return task

    def look_at_leaders(self, *, again: bool = False) -> None:
        """Have it told soon when the best that others confirmed changed; ``again``: also if no verification came."""
        self._spawn(self.leading.look(now_ms(), again=again))

    def heard_by_loop(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error that nobody waits for. That no descriptor is left comes a thousand times a second: it is noted."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (EMFILE, ENFILE):
            self.failures.note(ACCEPTING, error)
        else:
            loop.default_exception_handler(context)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        async def watched() -> None:
            with self.failures.watched(LOOKING):
                await work

        task = asyncio.create_task(watched())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- other nodes ---

    def _trust_changed(self) -> None:
        """Others count than before: who asks for the network is told so, and runs are judged again."""
        if self.exchange:
            self.exchange.offer(self.notebook.manifest)
        self._others_count.set()
        self.take(VerificationsChanged())

    def _news(self, records: Sequence[Record]) -> None:
        """Records of others came in; so many at once that nobody reads them are told as one event."""
        if any(isinstance(record.body, Commitment | Verification) for record in records):
            self.take(VerificationsChanged())
        if self.admitting.heard(records):
            self._spawn(self.admitting.look())
        many = len(records) > NEWS_MAX
        if many:
            self.events.tell("records", f"{len(records)} records of others came in", now_ms(), count=len(records))
        hidden = self.notebook.log.hidden.of([record.id for record in records])
        for record in records:
            if isinstance(record.body, Run) and not many and record.id not in hidden:
                view = record_view(self.notebook.log, record)
                data = {**outcome(self.notebook.log, record), "participant": view.participant.key}
                self.events.tell("record", view.summary, now_ms(), author=view.author, **data)
            elif isinstance(record.body, Claim):
                key = (record.body.task, record.body.source_digest, record.body.replicate)
                if self.service.status().is_running(key) and self.notebook.is_outrun(record, now_ms()):
                    self.take(Outrun(key))

    async def fetch(self, blob: BlobRef, seconds: float) -> None:
        """Get a blob from other nodes, unless it is here. Raises NotFound, TimedOut, Refused."""
        if self.notebook.blobs.has(blob.sha256):
            return
        if self.exchange is None:
            raise NotFound(
                "the network is off",
                hint="autoresearch node config set network.enabled true",
            )
        await self.exchange.fetcher.fetch(blob, seconds)


def _finished(worker: str, outcome: RunOutcome) -> Finished:
    """The end of a run. One that somebody stopped, or that was abandoned, is none of those that a person ordered."""
    counted = outcome.status not in UNFINISHED
    return Finished(worker, counted=counted, failed=outcome.status != RunStatus.OK)
