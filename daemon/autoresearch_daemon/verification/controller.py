"""The node's part in verification: looks for jobs while it works, takes a person's wish, publishes what came out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass
from typing import NamedTuple

import msgspec
import structlog

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.node import RunAccepted, RunInHand, WaitingStatus
from autoresearch.ask.people.claims import published_task
from autoresearch.ask.people.evidence import evidence_answer, measured_evidence
from autoresearch.ask.people.own_verification import waiting
from autoresearch.ask.people.voters import awaits_admission
from autoresearch.ask.runs.boards import resolve_reference
from autoresearch.errors import AutoresearchError, NotFound, Refused, TimedOut
from autoresearch.log.blobs import MissingBlob
from autoresearch.log.local import Choice, chosen
from autoresearch.log.standing.verification import judgement, pending
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id, parse_id, short_id
from autoresearch.record.kinds import Verification
from autoresearch.run.checking import VerificationPlan, Verified
from autoresearch.run.packages import is_installed, may_install, task_not_allowed
from autoresearch.run.sandbox.execute import permit
from autoresearch.run.sandbox.job import Level
from autoresearch.settings import load_settings
from autoresearch.task.loading import MAX_FILE_BYTES
from autoresearch.task.model import Task
from autoresearch.words import UNREVEALED, EvidenceKind, WorkKind
from autoresearch_daemon.events import Events, now_ms
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.service.effects import Verify
from autoresearch_daemon.service.inputs import Assignment, Input, JobReady, RunAsked, VerificationsChanged
from autoresearch_daemon.service.machine import NodeService
from autoresearch_daemon.verification.queue import VerificationQueue
from autoresearch_daemon.verification.reveals import Reveals, Told

logger = structlog.get_logger()

# So many other tasks are looked at for something to verify, one after the other, and those that this machine can't run
# again after this time.
TASKS_A_LOOK = 4
UNFIT_MS = 600_000
# A task has a baseline and no more files in its harness than a record holds.
TASK_FILES = 17


class Unfit(NamedTuple):
    """Why this machine can't run a task, and until when that is not looked at again."""

    until_ms: int
    sentence: str


@dataclass(eq=False)
class VerificationController:
    """Between the node's state machine and its jobs.

    ``take(event)`` gives the machine an event, ``load(folder)`` reads a task folder (empty: the configured one or the
    one that ships).

    ``level`` is how well runs are walled in here, as soon as that is known.
    """

    notebook: Notebook
    jobs: VerificationQueue
    events: Events
    machine: NodeService
    paths: Paths
    local: InitVar[LocalState]
    take: Callable[[Input], None]
    load: Callable[[str], Task]

    def __post_init__(self, local: LocalState) -> None:
        self.level = Level.NONE
        self._reveals = Reveals(self.notebook, local)
        self._wanted = Verify(tasks=None, ready=None)
        self._news = asyncio.Event()
        self._given: dict[str, str] = {}  # by assignment, the job that a worker has
        self._names = 0
        self._turn = 0
        self._unfit: dict[bytes, Unfit] = {}
        self._repeated: dict[str, bytes] = {}  # by assignment, the verification that is made once more

    def want(self, request: Verify) -> None:
        """Have this done soon; what was wanted before and is not begun yet no longer matters."""
        self._wanted = request
        self._news.set()

    async def keep(self) -> None:
        """Do what is wanted: have the next verification ready, tell what was measured. Until cancelled."""
        while True:
            await self._news.wait()
            try:
                await self.look(self._wanted)
            except AutoresearchError as error:
                logger.info("nothing can be verified now", reason=str(error))
            except Exception:  # a stranger's record must not end this loop for good
                logger.exception("looking for something to verify failed")
            self.reveal()
            self._news.clear()  # what was wanted meanwhile is out of date; the next tick says what is wanted now

    async def look(self, request: Verify) -> None:
        """Put back what is ready when something else goes before it; find the next and make it ready."""
        if (
            request.ready is not None
            and not await self.jobs.is_next(request.ready, now_ms(), in_hand=self.machine.status().jobs)
            and self.machine.status().job == request.ready  # no worker has got it meanwhile
        ):
            self.jobs.put_back(request.ready, now_ms())
            self.take(JobReady(None))
        if self.level < Level.LANDLOCK:
            self.take(JobReady(None))  # what others wrote is not run here, so it is not fetched either
            return
        if request.tasks is not None:
            root = self.notebook.identity.root.public
            is_ready = await self._make_ready(request.tasks)
            if not is_ready and not awaits_admission(self.notebook.log, root):  # once admitted there is something soon
                self.take(JobReady(None))

    async def _make_ready(self, folders: Sequence[str]) -> bool:
        """Make the cheapest verification ready, of those on the tasks worked on and on a few others."""
        log, archived = self.notebook.log, chosen(self.paths.home_local, Choice.ARCHIVED)
        own: dict[bytes, str] = {}
        for folder in folders:
            with suppress(AutoresearchError):  # whoever works on it meets the same error
                own[self.load(folder).digest] = folder
        others = sorted({row.digest for row in log.tasks.all()} - archived - own.keys())
        self._unfit = {task: unfit for task, unfit in self._unfit.items() if now_ms() < unfit.until_ms}
        turn, self._turn = self._turn, self._turn + TASKS_A_LOOK
        some = [others[(turn + number) % len(others)] for number in range(min(len(others), TASKS_A_LOOK))]
        costs: dict[bytes, int] = {}
        for task in (*own, *some):
            if task not in self._unfit:
                cost_ms = await self.jobs.cost_ms(task, now_ms(), in_hand=self.machine.status().jobs)
                costs.update({} if cost_ms is None else {task: cost_ms})
        for task in sorted(costs, key=costs.__getitem__):
            if await self._find(task, own.get(task)):
                return True
        return False

    async def _find(self, task: bytes, folder: str | None = None) -> bool:
        """Make the next verification on a task ready, if there is one and this machine can do it."""
        try:
            place = folder if folder is not None else await self._folder_of(task)
            if folder is None:
                self._check_fit(self.load(place))
        except AutoresearchError as error:  # files that are not here yet say nothing about this machine
            is_missing = isinstance(error, NotFound | TimedOut)
            self._unfit[task] = Unfit(now_ms() + UNFIT_MS, "" if is_missing else error.with_hint)
            return False
        job = await self.jobs.find(task, now_ms(), in_hand=self.machine.status().jobs)
        if job is None:
            return False
        self.take(JobReady(*job, task=place))
        return True

    def _check_fit(self, task: Task) -> None:
        """Whether the packages of a task are here, or may be installed. Raises PackagesNotAllowed."""
        notebook, paths = self.notebook, self.paths
        if task.packages and not is_installed(task, paths.environments):
            work = load_settings(paths.settings, os.environ)[0].work  # as the worker reads them
            if not may_install(task, paths, work, notebook.log, notebook.author, now_ms()):
                raise task_not_allowed(task)

    def obstacle(self) -> str:
        """Why runs that this node is drawn for are not verified here; empty where nothing is in the way."""
        return next((unfit.sentence for unfit in self._unfit.values() if unfit.sentence), "")

    async def ask(self, reference: str) -> RunAccepted:
        """Queue the verification of a run that a person names. Raises AutoresearchError."""
        self._check_working()
        log, author = self.notebook.log, self.notebook.author
        run = resolve_reference(log, reference, author=author, archived=chosen(self.paths.home_local, Choice.ARCHIVED))
        self._check_idle(run)
        request = await self.jobs.ask(run, now_ms())
        self._check_idle(run)  # its files took their time
        return RunAccepted(assignment=await self._queue("check", request.name, request.run), note=request.note)

    async def ask_again(self, reference: str, kind: EvidenceKind | None) -> str:
        """Queue what it takes to check evidence: a verification once more. Returns the assignment.

        Raises:
            NotFound: there is no such record, or a file that it takes is nowhere.
            Refused: nothing has to be measured, or nothing can be measured here now.
        """
        log, blobs = self.notebook.log, self.notebook.blobs
        evidence = evidence_answer(log, blobs, resolve_reference(log, reference, author=self.notebook.author), kind)
        if evidence.holds is not None:
            verdict = "the evidence holds" if evidence.holds else "the evidence does not hold"
            word = "no misbehaviour found" if evidence.nothing_found else verdict
            raise Refused(f"nothing has to be measured: {word}: {evidence.reason}", hint="GET /v1/evidence/{id}")
        self._check_working()
        verification = log.records.get(parse_id(evidence.id))
        name, run = await self.jobs.again(verification)
        return await self._queue("evidence", name, run, about=verification.id)

    async def _queue(self, what: str, name: str, run: RunInHand, about: bytes | None = None) -> str:
        try:
            folder = await self._folder_of(self.jobs.task(name))
            self.load(folder)  # refused where the task asks for more than this machine allows
        except AutoresearchError:
            self.jobs.drop(name)
            raise
        self._names += 1
        assignment = f"{what}-{os.getpid()}-{self._names}"
        if about is not None:
            self._repeated[assignment] = about
        self.take(RunAsked(Assignment(assignment, folder, WorkKind.PERSON, job=name, run=run)))
        return assignment

    def _check_idle(self, run: bytes) -> None:
        """Whether the run is not being measured here already. Raises Refused."""
        checks = map(self.jobs.check, self.machine.status().jobs)
        if any(check is not None and check.run == run for check in checks):
            raise Refused(f"{short_id(run)} is being measured here already.", hint="autoresearch status")

    def _check_working(self) -> None:
        """Whether a worker would take it up. Raises Refused."""
        permit(self.level, foreign=True)
        self.machine.status().check_measuring()

    def waiting(self) -> list[WaitingStatus]:
        """What is measured here and not told yet."""
        return waiting(self.notebook.log, self.notebook.author, self._reveals.waiting())

    def give(self, assignment: Assignment) -> VerificationPlan | None:
        """What a worker needs for an assignment that it gets now, if that is a verification."""
        if not assignment.job:
            return None
        self._given[assignment.name] = assignment.job
        return self.jobs.check(assignment.job)

    def finish(self, assignment: str, outcome: Verified, *, cancelled: bool = False) -> AutoresearchError | None:
        """Publish what a worker measured, and tell people. An error means that it is not recorded, and why.

        ``cancelled``: it was stopped before it came to anything.
        """
        job = self._given.pop(assignment, "")
        if self.jobs.check(job) is None:
            return None
        body = self.jobs.measured(job, outcome)
        repeated = self._repeated.pop(assignment, None)
        if repeated is not None:
            self._tell_evidence(assignment, repeated, body)
            return None
        self.take(VerificationsChanged())
        if cancelled:  # by a person, or by the end of this node: nobody has to know that for ever
            text = f"{body.stage} of {short_id(body.run)}: stopped"
            self.events.tell("run_failed", text, now_ms(), assignment=assignment, reason=body.reason)
            return None
        if body.verdict != "error":
            self._reveals.add(assignment, body)
            return self.reveal()
        try:  # nothing was measured, so there is nothing to keep from others
            record = self.notebook.publish_verification(body, now_ms())
        except AutoresearchError as error:
            return error
        self._tell(Told(assignment, record, body, revealed=True))
        return None

    def reveal(self) -> AutoresearchError | None:
        """Publish of what was measured here whatever may be published now. An error: something waits, and why."""
        reveals, error = self._reveals.work(now_ms())
        for published in reveals:
            self._tell(published)
        return error

    def _tell(self, published: Told) -> None:
        body, log = published.body, self.notebook.log
        state = judgement(log, body.run).state.value
        data: dict[str, object] = {
            "run": format_id(body.run),
            "id": format_id(published.record.id),
            "state": state,
            "stage": body.stage,
            "round": body.round,
            "verdict": body.verdict,
            "value": body.value,
            "values": list(body.values),
            "parent_values": list(body.parent_values),
            "baseline_values": list(body.baseline_values),
            "metrics": dict(body.metrics),
        }
        what = f"{body.stage} of {short_id(body.run)}: {body.verdict}"
        kind, text, reason = "verified", f"{what}, the run is {state} now", body.reason
        # Whoever tells among the first sees the word as it was: the others' words are on their way.
        if body.verdict != "error" and (others := len(pending(log, log.records.get(body.run), body.stage, body.round))):
            text = f"{text}; others who measured it tell next: {others}"
        if not published.revealed:
            kind, text, reason = "committed", f"{what}, not told to others yet", UNREVEALED
        self.events.tell(kind, text, now_ms(), assignment=published.assignment, reason=reason, **data)

    def _tell_evidence(self, assignment: str, verification: bytes, body: Verification) -> None:
        """What came out when a verification was made once more: told here, published nowhere."""
        try:
            evidence = measured_evidence(self.notebook.log, verification, body)
        except AutoresearchError as error:
            text = f"{short_id(verification)} could not be measured once more"
            self.events.tell("run_failed", text, now_ms(), assignment=assignment, reason=str(error))
            return
        text = (
            f"{short_id(verification)}: the value {'holds' if evidence.holds else 'does not hold'}: {evidence.reason}"
        )
        self.events.tell("evidence", text, now_ms(), assignment=assignment, evidence=msgspec.to_builtins(evidence))

    async def _folder_of(self, task: bytes) -> str:
        """A folder of the task with this digest: the one worked on, the configured one, or one that is written."""
        for folder in (*(order.task for order in self.machine.queue.agenda.orders), ""):
            with suppress(AutoresearchError):
                if self.load(folder).digest == task:
                    return folder
        place = self.paths.published_tasks / task.hex()
        for _ in range(TASK_FILES):
            try:
                return str(published_task(self.notebook.log, self.notebook.blobs, task, place).folder)
            except MissingBlob as missing:
                if missing.blob.size > MAX_FILE_BYTES:
                    raise Refused("The run's task has files that are larger than those of any task.") from missing
                await self.jobs.fetch(missing.blob)
        return str(published_task(self.notebook.log, self.notebook.blobs, task, place).folder)
