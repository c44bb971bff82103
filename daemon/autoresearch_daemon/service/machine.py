"""The node as a pure state machine: what happened goes in, what must be done comes out.

Knows no sockets, no clock, no files: ``handle(event, now_ms)`` changes the state and returns
effects, in order.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

import msgspec

from autoresearch.ask.node import RunInHand
from autoresearch.words import OWNER_REASONS, PASSING_REASONS, WHY_SENTENCES, Why, WorkState
from autoresearch_daemon.service.effects import (
    Announce,
    Approve,
    Asked,
    Assign,
    Cancel,
    CloseAbandoned,
    Decline,
    Effect,
    LeaveToOther,
    RecordWaiting,
    Save,
    ServiceStatus,
    Spent,
    Tell,
    Verify,
    WantWorkers,
    WithdrawClaim,
    Worker,
    WorkerNow,
)
from autoresearch_daemon.service.inputs import (
    Assignment,
    Blocked,
    Dropped,
    Failed,
    FinishAsked,
    Finished,
    Input,
    JobReady,
    Located,
    Order,
    Outrun,
    PauseAsked,
    Progressed,
    Proposed,
    ResumeAsked,
    RunAsked,
    RunDropped,
    Sent,
    Settled,
    ShareChanged,
    StopAsked,
    TakenOver,
    Tick,
    VerificationsChanged,
    WorkAsked,
    WorkerLeaves,
    WorkerLost,
    WorkerReady,
    WorkerStage,
)

# A worker that proposes duplicates this often gives its assignment back instead of trying again.
PROPOSALS_PER_ASSIGNMENT = 5
# So long a claim is out before its run begins: of nodes that claim the same at one moment all but one give way then.
SETTLE_MS = 1_000
# So long after its start a run gives way to a claim of another node; later it would waste more than it saves.
YIELD_MS = 30_000
# So many runs may fail within so long before the next one waits, and one more for each worker beside the first: what
# fails at once would otherwise fill everybody's log with failures.
FAILURES = 3
FAILURES_MS = 60_000
# How long a record that could not be written waits before the next try.
RETRY_MS = 60_000
# How long a task that this machine can't run waits before the first next try, and at most.
FIRST_WAIT_MS = 60_000
LONGEST_WAIT_MS = 3_600_000
# So long verification may be ahead of its share of the time: a node verifies what others wait for before it searches.
VERIFY_AHEAD_MS = 600_000
# So long a search waits at first, and after a verification, until it is known whether there is something to verify.
LOOK_MS = 30_000


@dataclass(slots=True)
class Service:
    """The node's decisions. ``workers_wanted`` is how many may run at a time.

    ``resting`` is the order while nobody asks for work: where programs are run that somebody proposes.
    """

    workers_wanted: int
    asked: Asked = field(default_factory=Asked)
    resting: Order = field(default_factory=Order)
    since_ms: int = 0
    stopping: bool = False
    finishing: bool = False
    ended: Why = Why.NOT_ASKED
    workers: dict[str, Worker] = field(default_factory=dict)
    queue: deque[Assignment] = field(default_factory=deque)
    blocks: dict[Why, str] = field(default_factory=dict)
    stops: set[Why] = field(default_factory=set)
    retry_ms: int = 0
    try_ms: int = 0
    wait_ms: int = 0
    job: JobReady | None = None
    look_until_ms: int | None = None
    failures: deque[int] = field(default_factory=deque)
    spent_ms: Spent = field(default_factory=Spent)
    counter: int = 0
    processes: int = 0

    # --- what is ---

    def status(self) -> ServiceStatus:
        """What is, as a value that stays as it is."""
        state, why = self._state()
        return ServiceStatus(
            state=state,
            why=why,
            # What blocks, in its own words, or the words that all share.
            reason=self.blocks.get(why, WHY_SENTENCES[why]),
            since_ms=self.since_ms,
            asked=self.asked,
            workers_wanted=self.workers_wanted,
            workers=tuple(
                WorkerNow(name, w.device, w.why, w.run, w.assignment, w.key) for name, w in sorted(self.workers.items())
            ),
            queue=tuple(self.queue),
            blocks=tuple(self.blocks.items()),
            job=self.job.job if self.job else None,
        )

    def _state(self) -> tuple[WorkState, Why]:
        if self.stopping:
            return WorkState.STOPPING, Why.STOPPING
        if self.asked.paused:
            return WorkState.PAUSED, Why.PAUSED_BY_PERSON
        if self.finishing and self._in_hand:
            return WorkState.FINISHING, Why.FINISHING_LAST
        if not self.asked.working and not self.queue and not self._in_hand:
            return WorkState.IDLE, self.ended
        if self.workers_wanted == 0:
            return WorkState.WAITING, Why.NO_WORKERS
        if self.blocks:
            return WorkState.WAITING, next(iter(self.blocks))
        if not self._in_hand and any(worker.why is Why.FAILING for worker in self.workers.values()):
            return WorkState.WAITING, Why.FAILING
        return WorkState.WORKING, self._asked_why()

    def _asked_why(self) -> Why:
        order = self.asked.order
        if not self.asked.working:
            return Why.ASKED_FOR_PROPOSALS
        if order.runs_left is not None:
            return Why.ASKED_FOR_RUNS
        return Why.ASKED if order.until_ms is None else Why.ASKED_FOR_TIME

    @property
    def _in_hand(self) -> list[Worker]:
        return [w for w in self.workers.values() if w.assignment]

    @property
    def _is_refused(self) -> bool:
        """Whether the machine is its owner's now: nothing new is agreed to."""
        return any(why in self.blocks for why in OWNER_REASONS)

    @property
    def _at_once(self) -> int:
        """How many may be in hand at a time."""
        return self.asked.order.at_most if self.asked.order.executor else self.workers_wanted

    # --- what happens ---

    def handle(self, event: Input, now_ms: int) -> list[Effect]:
        """Take one event in; return what must be done, in order."""
        before = self._state()
        effects = self._apply(event, now_ms)
        effects += self._expire(now_ms)
        effects += self._dispatch(now_ms)
        after = self._state()
        if after != before:
            self.since_ms = now_ms
            effects.append(Tell("state", after[0].value))
        return effects

    def _apply(self, event: Input, now_ms: int) -> list[Effect]:
        match event:
            case WorkAsked(order):
                self.asked = Asked(working=True, order=order)
                self.finishing = False
                self.failures.clear()
                self._try_again()
                return [Save(), *self._look_first(now_ms)]
            case ShareChanged(workers, share):
                self.workers_wanted = workers
                share = self.asked.order.verify_share if share is None else share
                self.asked = replace(self.asked, order=replace(self.asked.order, verify_share=share))
                return [Save(), *([] if self.job else [self._verify()])]
            case PauseAsked(until_ms):
                self.asked = replace(self.asked, paused=True, paused_until_ms=until_ms)
                return [Save(), *self._cancel_all()]
            case ResumeAsked():
                self._try_again()
                self.failures.clear()
                self.asked = replace(self.asked, paused=False, paused_until_ms=None)
                return [Save()]
            case FinishAsked():
                return self._end(Why.NOT_ASKED)
            case StopAsked():
                self.stopping = True
                return self._cancel_all(here_only=True)
            case RunAsked() | RunDropped():
                return self._queue(event)
            case Sent() | TakenOver() | Located():
                return self._elsewhere(event, now_ms)
            case Blocked():
                return self._block(event, now_ms)
            case JobReady(name):
                self.job = event if name is not None else None
                self.look_until_ms = None
                return []
            case VerificationsChanged() | Tick():
                return [self._verify(), *self._retry(now_ms)]
            case _:
                return self._worker_event(event, now_ms)

    def _block(self, event: Blocked, now_ms: int) -> list[Effect]:
        was_stopped = bool(self.stops)
        self.stops.discard(event.why)
        if event.sentence is None:
            if self.blocks.pop(event.why, None) and event.why is Why.ASKING_PEERS:
                return self._look_first(now_ms)
            return []
        self.blocks[event.why] = event.sentence
        if event.why is Why.CANNOT_RECORD:
            self.retry_ms = now_ms + RETRY_MS
        if event.stops:
            self.stops.add(event.why)
            return [] if was_stopped else self._cancel_all(here_only=True)
        return []

    def _queue(self, event: RunAsked | RunDropped) -> list[Effect]:
        if isinstance(event, RunAsked):
            self.queue.append(event.assignment)
            self._try_again()
            return []
        self.queue = deque(each for each in self.queue if each.name != event.name)
        workers = ((name, worker.assignment) for name, worker in self.workers.items())
        return [Cancel(name, of.name) for name, of in workers if of and of.given and of.name == event.name]

    def is_in_hand(self, proposal: str) -> bool:
        """Whether a worker has what a person proposed under this name."""
        given = (worker.assignment for worker in self.workers.values() if worker.assignment)
        return any(each.given and each.name == proposal for each in given)

    def _worker_event(self, event: Input, now_ms: int) -> list[Effect]:
        match event:
            case WorkerReady(name, device):
                self.workers[name] = Worker(device=device, ready=True, why=Why.NOT_ASKED)
            case WorkerStage(name, why):
                self._worker(name).why = why
            case Proposed(name):
                return self._proposed(event, self._worker(name), now_ms)
            case Settled(name, key):
                return self._settled(name, key, now_ms)
            case Outrun(key):
                return self._give_way(key, now_ms)
            case Progressed(name, fraction, step, loss):
                worker = self._worker(name)
                if worker.run:
                    worker.run = _changed(worker.run, fraction=fraction, step=step, loss=loss)
            case Dropped(name):
                worker = self._worker(name)
                # What a person proposed waits until work goes on.
                waits = (self.asked.paused or self._is_refused) and not worker.left
                if worker.assignment and worker.assignment.given and waits:
                    self.queue.appendleft(worker.assignment)
                claimed = worker.assignment.name if worker.assignment and worker.key else None
                self._free(name, now_ms)
                return [WithdrawClaim(claimed)] if claimed else []
            case Finished():
                return self._finished(event, now_ms)
            case Failed():
                return self._failed(event, now_ms)
            case WorkerLeaves() | WorkerLost():
                return self._going(event, now_ms)
        return []

    def _elsewhere(self, event: Sent | TakenOver | Located, now_ms: int) -> list[Effect]:
        """A run goes on at a place of its own, which is gone with it."""
        match event:
            case Sent(name):
                worker = self._worker(name)
                if worker.assignment:
                    moved = replace(worker, device="", ready=False, why=Why.QUEUED, leaving=False, elsewhere=True)
                    self.workers[worker.assignment.name] = moved
                    worker.assignment = None  # its time counts where it goes on
                    self._free(name, now_ms)
            case TakenOver(name, run, key, given):
                assignment = Assignment(name, "", given=given)
                self.workers[name] = Worker(
                    assignment=assignment, run=run, key=key, why=Why.QUEUED, elsewhere=True, since_ms=now_ms
                )
            case Located(name, device, why):
                if place := self.workers.get(name):
                    place.device, place.why = device, why
        return []

    def _failed(self, event: Failed, now_ms: int) -> list[Effect]:
        """What could not be begun. What this machine can't run is tried again, each time after twice as long."""
        assignment = self._worker(event.worker).assignment
        searched = self._free(event.worker, now_ms)
        if event.cannot_run_here and assignment and not assignment.job:
            self.wait_ms = min(2 * self.wait_ms, LONGEST_WAIT_MS) if self.wait_ms else FIRST_WAIT_MS
            self.try_ms = now_ms + self.wait_ms
            self.blocks[Why.CANNOT_RUN_HERE] = event.sentence
            if assignment.given:
                self.queue.append(assignment)
        elif searched:
            self.blocks[Why.TASK_BROKEN] = event.sentence
        return [Tell("worker", event.sentence)]

    def _finished(self, event: Finished, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        if event.failed:
            self.failures.append(now_ms)
        else:
            self.wait_ms = 0
        self._worker(event.worker).yielded &= not event.counted
        assignment = self._worker(event.worker).assignment
        if assignment and assignment.job:  # there may be more of them
            effects += self._look_first(now_ms)
        searched = self._free(event.worker, now_ms)
        if event.counted and searched and self.asked.order.runs_left is not None:
            left = max(0, self.asked.order.runs_left - 1)
            self.asked = replace(self.asked, order=replace(self.asked.order, runs_left=left))
            effects.append(Save())
        return effects

    def _going(self, event: WorkerLeaves | WorkerLost, now_ms: int) -> list[Effect]:
        """A worker goes, or is gone. What it was given after it was told to go it never heard: another one does it."""
        if isinstance(event, WorkerLeaves):
            if event.worker in self.workers:
                self.workers[event.worker].leaving = True
            return []
        lost = self.workers.pop(event.worker, None)
        if lost and lost.leaving and lost.assignment and not lost.assignment.is_search:
            self.queue.appendleft(lost.assignment)
        if lost is None or lost.key is None:
            return []
        self.failures.append(now_ms)
        if lost.assignment is None:
            return []
        return [(WithdrawClaim if lost.announced else CloseAbandoned)(lost.assignment.name)]

    # --- parts ---

    def _verify(self) -> Verify:
        wanted = self.asked.working and self.asked.order.verify_share > 0 and self.job is None
        return Verify(self.asked.order.task if wanted else None, self.job.job if self.job else None)

    def _look_first(self, now_ms: int) -> list[Effect]:
        """Let the next search wait until it is known whether there is something to verify.

        A verification at hand may be given out at once: whether it is still the next one is then no question.
        """
        self.look_until_ms = now_ms + LOOK_MS
        return [] if self.job else [self._verify()]

    def _try_again(self) -> None:
        """A person asks: what kept the task from being worked on may be mended."""
        self.blocks.pop(Why.TASK_BROKEN, None)
        self.blocks.pop(Why.CANNOT_RUN_HERE, None)

    def _retry(self, now_ms: int) -> list[Effect]:
        if now_ms >= self.try_ms:
            self.blocks.pop(Why.CANNOT_RUN_HERE, None)
        if Why.CANNOT_RECORD not in self.blocks or now_ms < self.retry_ms:
            return []
        del self.blocks[Why.CANNOT_RECORD]
        return [RecordWaiting()]

    def _worker(self, name: str) -> Worker:
        return self.workers.setdefault(name, Worker())

    def _free(self, name: str, now_ms: int) -> bool:
        """Take the assignment from a worker, and note what its time went to; returns whether it was a search."""
        worker = self._worker(name)
        assignment = worker.assignment
        if assignment and assignment.job:
            self.spent_ms.verification += now_ms - worker.since_ms
        elif assignment:
            self.spent_ms.search += now_ms - worker.since_ms
        worker.assignment = worker.key = worker.run = worker.announced = None
        worker.why, worker.refused, worker.left = Why.NOT_ASKED, 0, False
        if worker.elsewhere:
            del self.workers[name]
        return assignment is None or assignment.is_search

    def _proposed(self, event: Proposed, worker: Worker, now_ms: int) -> list[Effect]:
        name, assignment = event.worker, event.assignment
        if self.stopping or self.asked.paused or self._is_refused or worker.assignment is None:
            return [Cancel(name, assignment)]
        # What a person asks for by name is run whether others do it or not.
        elsewhere = event.taken and worker.assignment.gives_way
        taken = elsewhere or any(other.key == event.key for other in self.workers.values() if other is not worker)
        if taken and worker.assignment.given:
            worker.left = True
            return [LeaveToOther(assignment), Cancel(name, assignment)]
        if taken and worker.refused < PROPOSALS_PER_ASSIGNMENT:
            worker.refused += 1
            return [Decline(name, assignment)]
        if taken:
            return [Cancel(name, assignment)]
        worker.key = event.key
        if event.has_peers and worker.assignment.gives_way and worker.refused < PROPOSALS_PER_ASSIGNMENT:
            worker.announced = event.run
            return [Announce(name, assignment, event.key, SETTLE_MS)]
        return self._approve(name, worker, event.run, assignment, now_ms)

    def _settled(self, name: str, key: tuple[bytes, bytes, int], now_ms: int) -> list[Effect]:
        worker = self.workers.get(name)
        # What was stopped meanwhile is given back by the worker.
        if worker is None or worker.key != key or self.stopping or self.asked.paused or self.stops:
            return []
        if worker.announced is None or worker.assignment is None:
            return []
        return self._approve(name, worker, worker.announced, worker.assignment.name, now_ms)

    def _approve(self, name: str, worker: Worker, run: RunInHand, assignment: str, now_ms: int) -> list[Effect]:
        worker.run, worker.announced, worker.why = _changed(run, started_ms=now_ms), None, Why.RUNNING
        return [Approve(name, assignment)]

    def _give_way(self, key: tuple[bytes, bytes, int], now_ms: int) -> list[Effect]:
        """Leave a search to another node whose claim wins: what is announced, and a run that has just begun.

        Only so often in a row, or a liar could keep a worker idle. A shared proposal is left while it is announced.
        """
        effects: list[Effect] = []
        for name, worker in self.workers.items():
            if worker.key != key or worker.assignment is None or not worker.assignment.gives_way:
                continue
            assignment = worker.assignment.name
            if worker.assignment.shared:
                if worker.announced:
                    worker.key, worker.announced, worker.left = None, None, True
                    effects += [WithdrawClaim(assignment), LeaveToOther(assignment), Cancel(name, assignment)]
            elif worker.announced:
                worker.key = worker.announced = None
                worker.refused += 1
                effects += [WithdrawClaim(assignment), Decline(name, assignment)]
            elif worker.run and not worker.yielded and now_ms - worker.run.started_ms < YIELD_MS:
                worker.yielded = True
                effects.append(Cancel(name, assignment))
        return effects

    def _cancel_all(self, *, here_only: bool = False) -> list[Effect]:
        stopped = ((name, w) for name, w in self.workers.items() if not (here_only and w.elsewhere))
        return [Cancel(name, w.assignment.name) for name, w in stopped if w.assignment]

    def _end(self, why: Why) -> list[Effect]:
        self.asked = replace(self.asked, working=False, order=self.resting)
        self.finishing = True
        self.ended = why
        return [Save()]

    def _expire(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        if self.asked.paused and self.asked.paused_until_ms is not None and now_ms >= self.asked.paused_until_ms:
            self.asked = replace(self.asked, paused=False, paused_until_ms=None)
            effects.append(Save())
        order = self.asked.order
        if self.asked.working and order.until_ms is not None and now_ms >= order.until_ms:
            effects += self._end(Why.TIME_OVER)
        if self.asked.working and order.runs_left == 0:
            effects += self._end(Why.RUNS_DONE)
        if self.finishing and not self._in_hand:
            self.finishing = False
        return effects

    def _dispatch(self, now_ms: int) -> list[Effect]:
        """Give idle workers something to do; ask for processes when there is work, let them go after."""
        for worker in self.workers.values():
            worker.why = Why.NOT_ASKED if worker.why in PASSING_REASONS else worker.why
        if self.stopping or self.asked.paused:
            return self._want(0)
        order, here = self.asked.order, sum(1 for w in self._in_hand if not w.elsewhere)
        if self.blocks:
            return self._want(here)
        searching = sum(1 for w in self._in_hand if w.assignment and w.assignment.is_search)
        room = self._at_once if order.runs_left is None else min(self._at_once, order.runs_left)
        open_searches = max(0, room - searching) if self.asked.working and order.verify_share < 1 else 0
        is_looking = self.look_until_ms is not None and now_ms < self.look_until_ms and self._may_verify()
        open_work = len(self.queue) + open_searches + self._verification_is_due()
        # A worker that only writes requests is quick: one is enough, and stays while its requests are carried out.
        wanted = min(1, len(self._in_hand) + open_work) if order.executor else here + open_work
        effects = self._want(min(self.workers_wanted, wanted))
        for name, worker in sorted(self.workers.items()):
            if not worker.ready or worker.leaving or worker.assignment:
                continue
            if order.executor and len(self._in_hand) >= self._at_once:
                worker.why = Why.QUEUE_FULL
                break
            if self.queue:
                assignment = self.queue.popleft()
                worker.run = _changed(assignment.shown, started_ms=now_ms) if assignment.shown else None
            elif (open_searches > 0 or self._verification_is_due()) and not self._may_fail(now_ms):
                worker.why = Why.FAILING
                continue
            elif self.job and self._verification_is_due():
                assignment = Assignment(f"verify-{self._next_number()}", self.job.task, job=self.job.job or "")
                worker.run = _changed(self.job.run, started_ms=now_ms) if self.job.run else None
                self.job = None
            elif open_searches > 0 and is_looking:
                worker.why = Why.LOOKING
                continue
            elif open_searches > 0:
                open_searches -= 1
                assignment = Assignment(f"search-{self._next_number()}", order.task)
            else:
                break
            worker.assignment, worker.since_ms = assignment, now_ms
            worker.why = Why.VERIFYING if assignment.job else Why.PROPOSING
            effects.append(Assign(name, assignment, worker.run if assignment.job else None))
        return effects

    def _may_fail(self, now_ms: int) -> bool:
        """Whether one more may begin: with what failed within the last minute, all in hand may fail too."""
        while self.failures and not now_ms - FAILURES_MS < self.failures[0] <= now_ms:
            self.failures.popleft()
        return len(self.failures) + len(self._in_hand) < FAILURES - 1 + self._at_once

    def _verification_is_due(self) -> bool:
        """Whether the next thing to do is the verification at hand."""
        return self.job is not None and self._may_verify()

    def _may_verify(self) -> bool:
        """Whether verification has not used up its share of the time."""
        share, spent = self.asked.order.verify_share, self.spent_ms
        if not self.asked.working or share <= 0:
            return False
        return spent.verification <= share * (spent.search + spent.verification) + VERIFY_AHEAD_MS

    def _next_number(self) -> int:
        self.counter += 1
        return self.counter

    def _want(self, count: int) -> list[Effect]:
        if count == self.processes:
            return []
        self.processes = count
        return [WantWorkers(count)]


def _changed(run: RunInHand, **values: object) -> RunInHand:
    return msgspec.structs.replace(run, **values)
