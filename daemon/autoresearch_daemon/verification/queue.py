"""Verifications that this node is chosen for: found, made ready (their files fetched), a record's body when done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import structlog

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.lookup import task_of
from autoresearch.ask.node import RunInHand
from autoresearch.ask.people.own_verification import check_asked, check_new, will_count
from autoresearch.errors import AutoresearchError, CannotRunHere, NotFound, Refused, TimedOut
from autoresearch.judging.states import EVALUATE, REPLICATE
from autoresearch.link import backoff
from autoresearch.log.standing.context import participant_of
from autoresearch.log.standing.jobs import VerificationJob, job_for, make_job, next_job, repeated_job
from autoresearch.log.standing.verification import bears_out, is_state_only, tolerance_of
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import BlobRef, Run, Verification
from autoresearch.record.record import Record
from autoresearch.run.checking import VerificationPlan, Verified
from autoresearch.run.sandbox.job import JobLimits
from autoresearch.task.loading import MAX_FILE_BYTES
from autoresearch.words import HIDDEN, JOB_SENTENCES, JobReason
from autoresearch_daemon.log_thread import LogExecutor

logger = structlog.get_logger()

# A job that could not be done, because a file is nowhere or the run broke here, is not tried again for so long, and
# for twice as long each further time: it costs others' runs their turn.
AGAIN_MS, AGAIN_MS_MAX = 600_000, 256 * 600_000
# No run that anybody's node recorded has more than these: a larger one fills disks and memory, and is not asked for.
SOURCE_BYTES = MAX_FILE_BYTES
CHECKPOINT_BYTES = JobLimits().checkpoint_bytes
REASON_CHARACTERS = 1000
# Of verifications the cheapest goes first, but one that waits for longer goes before all.
WAITS_MS_MAX = 3_600_000


class RequestedVerification(NamedTuple):
    """A verification that a person asked for: its name, how people see it, and what they should know of it."""

    name: str
    run: RunInHand
    note: str


@dataclass(eq=False)
class VerificationQueue:
    """Those that are ready or in hand, by name. ``fetch(blob)`` gets a blob from other nodes.

    ``connected()`` says whether there are any: else a file that is missing is nobody's fault.
    What comes next is found out in the ``thread`` of the log: it takes seconds in a large one.
    """

    notebook: Notebook
    thread: LogExecutor
    fetch: Callable[[BlobRef], Awaitable[None]]
    connected: Callable[[], bool] = lambda: True

    def __post_init__(self) -> None:
        self._checks: dict[str, VerificationPlan] = {}
        self._tried: dict[tuple[bytes, str, int], tuple[int, int]] = {}  # how often, and when it may be tried again
        self._since_ms: dict[tuple[bytes, str, int], int] = {}  # when it was seen first
        self._names = 0

    async def find(self, task: bytes, now_ms: int, *, in_hand: Collection[str] = ()) -> tuple[str, RunInHand] | None:
        """The next thing to verify on a task, with its files here; its name and how people see it.

        A second try without its files is published as “unavailable”: withholding them confirms nothing. ``in_hand``
        names those that workers have or get.
        """
        job = await self._next(task, now_ms, self._skipped(now_ms, in_hand))
        if job is None:
            return None
        times, _ = self._tried.get(_key(job), (0, 0))
        self._tried[_key(job)] = times + 1, now_ms + int(backoff(times, AGAIN_MS, AGAIN_MS_MAX))
        try:
            return await self._ready(job, JobReason.DISPUTE if job.round else JobReason.LOT)
        except AutoresearchError as error:
            logger.info("a run cannot be verified now", run=short_id(job.run), reason=str(error))
            if times and self.connected() and not isinstance(error, CannotRunHere):
                self._publish_unavailable(job, now_ms, str(error))
            return None

    async def cost_ms(self, task: bytes, now_ms: int, *, in_hand: Collection[str] = ()) -> int | None:
        """How long the next verification on a task takes by its author's word; None where there is none.

        One that waits here since an hour ago costs nothing, so that the cheap ones don't keep it waiting for ever.
        """
        job = await self._next(task, now_ms, self._skipped(now_ms, in_hand))
        if job is None:
            return None
        if now_ms - self._since_ms.setdefault(_key(job), now_ms) > WAITS_MS_MAX:
            return 0
        run = self.notebook.log.records.get(job.run).body
        assert isinstance(run, Run)
        return run.duration_ms * (2 * len(job.seeds) if job.stage == REPLICATE else 1)

    def _publish_unavailable(self, job: VerificationJob, now_ms: int, reason: str) -> None:
        """Say once that a run's files cannot be got. What is measured later replaces it."""
        own_place = (self.notebook.author, job.stage, job.round)
        if any((row.author, row.stage, row.round) == own_place for row in self.notebook.log.verifications.of(job.run)):
            return
        body = Verification(
            run=job.run,
            stage=job.stage,
            round=job.round,
            verdict="unavailable",
            seeds=list(job.seeds),
            proof=job.proof,
            reason=reason[:REASON_CHARACTERS],
        )
        try:
            self.notebook.publish_verification(body, now_ms)
        except AutoresearchError as failed:  # it is said at a later try
            logger.warning("a verification could not be recorded", run=short_id(job.run), reason=str(failed))

    async def is_next(self, name: str, now_ms: int, *, in_hand: Collection[str] = ()) -> bool:
        """Whether what was made ready is still what this node is to do next.

        While it waited others may have done it, or something came that is better by its author's word.
        """
        check = self._checks[name]
        job = await self._next(check.task, now_ms, self._skipped(now_ms, in_hand) - {_key(check)})
        return job is not None and _key(job) == _key(check)

    async def _next(self, task: bytes, now_ms: int, skip: set[tuple[bytes, str, int]]) -> VerificationJob | None:
        device = self.notebook.identity.device
        return await self.thread.run(
            lambda log: next_job(log, task, device.public, bytes(device.key), now_ms, skip=skip)
        )

    def put_back(self, name: str, now_ms: int) -> None:
        """What was made ready is not done now, and was not tried either."""
        key = _key(self._checks.pop(name))
        times, _ = self._tried.get(key, (1, 0))
        self._tried[key] = times - 1, now_ms

    async def ask(self, run: bytes, now_ms: int) -> RequestedVerification:
        """What a person wants verified: what the protocol wants of this node, or an evaluation.

        Raises:
            NotFound: there is no such run, or one of its files is nowhere.
            UsageError: it is no run.
            Refused: there is nothing to measure, or this node's word would not count.
        """
        log, device = self.notebook.log, self.notebook.identity.device
        check_asked(log, run, device.public, now_ms)
        seed = bytes(device.key)
        job = job_for(log, run, device.public, seed, now_ms)
        if job is None:
            check_new(log, run, device.public, now_ms)
            job = make_job(run, EVALUATE, 0, seed)
        try:
            name, view = await self._ready(job, JobReason.ASKED)
        except (NotFound, TimedOut) as error:
            sentence = f"{short_id(run)} can't be measured here now: {error}"
            hint = "its author's node, or one that has its files, must be connected: autoresearch network peers"
            raise type(error)(sentence, hint=hint) from error
        return RequestedVerification(name, view, will_count(log, run, job, device.public, now_ms))

    async def again(self, verification: Record) -> tuple[str, RunInHand]:
        """A verification to be made once more as its verifier made it: same draw, seeds and parent. Raises NotFound."""
        body = verification.body
        assert isinstance(body, Verification), "only a verification is made once more"
        job = repeated_job(body.run, body.stage, body.round, body.proof)
        return await self._ready(job, JobReason.EVIDENCE, beside_parent=bool(body.parent_values))

    def check(self, name: str) -> VerificationPlan | None:
        """What a worker needs for a job."""
        return self._checks.get(name)

    def task(self, name: str) -> bytes:
        """The digest of the task that a job is on."""
        return self._checks[name].task

    def drop(self, name: str) -> None:
        """A job is not done after all."""
        self._checks.pop(name, None)

    def measured(self, name: str, outcome: Verified) -> Verification:
        """What was measured, as the body of a record; the job is done."""
        check = self._checks.pop(name)
        self._since_ms.pop(_key(check), None)
        texts = {"device": outcome.device[:120], "reason": outcome.reason[:REASON_CHARACTERS]}
        body = Verification(
            run=check.run,
            stage=check.stage,
            round=check.round,
            seeds=list(check.seeds),
            proof=check.proof,
            **msgspec.structs.asdict(outcome) | texts,
        )
        run = self.notebook.log.records.get(check.run).body
        assert isinstance(run, Run)
        if body.verdict == "pass" and check.stage == EVALUATE and not bears_out(self.notebook.log, run, body):
            body = msgspec.structs.replace(body, verdict="fail")
        return body

    async def _ready(
        self, job: VerificationJob, why: JobReason, *, beside_parent: bool | None = None
    ) -> tuple[str, RunInHand]:
        """Fetch what it takes. A model is asked beside its parent's, or not, or where that is to be had."""
        log = self.notebook.log
        run = log.records.get(job.run).body
        assert isinstance(run, Run)
        parent_record = log.records.find(run.parent) if run.parent else None
        parent = parent_record.body if parent_record is not None and isinstance(parent_record.body, Run) else None
        checkpoint = parent_checkpoint = None
        if job.stage == REPLICATE:
            if parent is None:
                raise NotFound(f"the parent of {short_id(job.run)} is not here")
        elif run.checkpoint is not None and tolerance_of(log, run.task) is not None:
            checkpoint = await self._get(run.checkpoint, CHECKPOINT_BYTES)
            if beside_parent is None:
                parent_checkpoint = await self._if_to_be_had(parent)
            elif beside_parent:
                parent_checkpoint = await self._checkpoint(parent, job.run)
        compared = parent is not None and (job.stage == REPLICATE or parent_checkpoint is not None)
        check = VerificationPlan(
            run=job.run,
            task=run.task,
            stage=job.stage,
            round=job.round,
            proof=job.proof,
            seeds=list(job.seeds),
            source=await self._source(run),
            source_digest=run.source_digest,
            parent_source=await self._source(parent) if parent is not None and compared else None,
            checkpoint=checkpoint,
            parent_checkpoint=parent_checkpoint,
            replicate=run.replicate,
            claim=run.value,
            state_only=is_state_only(run),
        )
        self._names += 1
        name = f"job-{self._names}"
        self._checks[name] = check
        return name, self._shown(job, why)

    def _shown(self, job: VerificationJob, why: JobReason) -> RunInHand:
        log = self.notebook.log
        record = log.records.get(job.run)
        assert isinstance(record.body, Run)
        title = HIDDEN if log.hidden.of([job.run]) else record.body.title
        return RunInHand(
            title=f"checking {short_id(job.run)}: {title}"[:120],
            task=task.name if (task := task_of(log, record.body.task)) else "",
            kind="verification",
            replicate=record.body.replicate,
            checked=format_id(job.run),
            stage=job.stage,
            round=job.round,
            participant=participant_of(log, record.author, record.time),
            reason=JOB_SENTENCES[why],
        )

    async def _source(self, run: Run) -> str:
        await self._get(run.source, SOURCE_BYTES)
        # What is no text is no program either: the worker finds that out, and says so.
        return self.notebook.blobs.get(run.source.sha256).decode("utf-8", errors="replace")

    async def _if_to_be_had(self, parent: Run | None) -> bytes | None:
        """The parent's checkpoint, where it kept one that somebody still has: it makes the check sharper."""
        if parent is None or parent.checkpoint is None:
            return None
        try:
            return await self._get(parent.checkpoint, CHECKPOINT_BYTES)
        except AutoresearchError:
            return None

    async def _checkpoint(self, parent: Run | None, run: bytes) -> bytes:
        """The parent's checkpoint, without which the check would be another one."""
        if parent is None or parent.checkpoint is None:
            raise NotFound(f"the parent of {short_id(run)}, with its checkpoint, is not here")
        return await self._get(parent.checkpoint, CHECKPOINT_BYTES)

    async def _get(self, blob: BlobRef, most: int) -> bytes:
        """Fetch a file unless its record says that it is larger than any; its hash. Raises AutoresearchError."""
        if blob.size > most:
            raise Refused(
                f"{blob.sha256.hex()[:16]} has {blob.size} bytes by its record; {most} are the most there are"
            )
        await self.fetch(blob)
        return blob.sha256

    def _skipped(self, now_ms: int, in_hand: Collection[str]) -> set[tuple[bytes, str, int]]:
        """What was tried a short time ago, and what is in hand, however long that takes."""
        tried = {key for key, (_, again_ms) in self._tried.items() if now_ms < again_ms}
        return tried | {_key(self._checks[name]) for name in in_hand if name in self._checks}


def _key(job: VerificationJob | VerificationPlan) -> tuple[bytes, str, int]:
    return job.run, job.stage, job.round
