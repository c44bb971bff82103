"""The node as a pure state machine: what happened goes in, what must be done comes out.

Knows no sockets, no clock, no files: ``handle(event, now_ms)`` changes the state and returns
effects, in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec

from autoresearch.ask.node import RunInHand
from autoresearch.text import counted, duration, percent
from autoresearch.words import OWNER_REASONS, PASSING_REASONS, WHY_SENTENCES, WORK_RULES, Why, WorkKind, WorkState
from autoresearch_daemon.service import effects as effect
from autoresearch_daemon.service import inputs
from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.queue import FIRST_WAIT_MS, WorkQueue

# A worker that proposes duplicates this often gives its assignment back instead of trying again.
PROPOSALS_PER_ASSIGNMENT = 5
# So long a claim is out before its run begins: of nodes that claim the same at one moment all but one give way then.
SETTLE_MS = 1_000
# So long after its start a run gives way to a claim of another node; later it would waste more than it saves.
YIELD_MS = 30_000
# How long a record that could not be written waits before the next try.
RETRY_MS = 60_000
# A run of the search with more than this left is ended for what goes before it.
OVERTAKE_MS = 60_000
# A run that does not say how far it is may be as short as that.
GLIMPSE_MS = 10_000
# So long a search waits at first, and after a verification, until it is known whether there is something to verify.
LOOK_MS = 30_000


@dataclass(slots=True)
class NodeService:
    """The node's decisions. ``workers_wanted`` is how many may run at a time.

    ``queue`` is what it is to do. ``lasted_ms`` is how long the last run of a task took, by the task's digest.
    """

    workers_wanted: int
    queue: WorkQueue = field(default_factory=WorkQueue)
    since_ms: int = 0
    stopping: bool = False
    finishing: bool = False
    ended: Why = Why.NOT_ASKED
    workers: dict[str, effect.WorkerState] = field(default_factory=dict)
    blocks: dict[Why, str] = field(default_factory=dict)
    stops: set[Why] = field(default_factory=set)
    retry_ms: int = 0
    lasted_ms: dict[bytes, int] = field(default_factory=dict)
    processes: int = 0

    # --- what is ---

    def status(self, now_ms: int = 0) -> effect.ServiceStatus:
        """What is, as a value that stays as it is."""
        state, why, reason = self._state()
        return effect.ServiceStatus(
            state=state,
            why=why,
            reason=reason,
            since_ms=self.since_ms,
            agenda=self.queue.agenda,
            front=self.queue.front,
            workers_wanted=self.workers_wanted,
            workers=tuple(
                effect.WorkerNow(name, w.device, w.why, w.run, w.assignment, w.key)
                for name, w in sorted(self.workers.items())
            ),
            queue=tuple(self.queue.by_turn),
            held=dict(self.queue.held),
            blocks=tuple(self.blocks.items()),
            job=self.queue.job.job if self.queue.job else None,
            verification_wait_ms=self.queue.verification_wait_ms(now_ms),
        )

    def _state(self) -> tuple[WorkState, Why, str]:
        state, why = self._state_and_why()
        reasons = (held.sentence for held in self.queue.held.values() if held.why is why and state is WorkState.WAITING)
        # What holds up work, in its own words, or the words that all share.
        return state, why, self.blocks.get(why) or next(reasons, WHY_SENTENCES[why])

    def _state_and_why(self) -> tuple[WorkState, Why]:
        if self.stopping:
            return WorkState.STOPPING, Why.STOPPING
        if self.queue.agenda.paused:
            return WorkState.PAUSED, Why.PAUSED_BY_PERSON
        if self.finishing and self._in_hand:
            return WorkState.FINISHING, Why.FINISHING_LAST
        if not self.queue.agenda.orders and not self.queue.proposals and not self._in_hand:
            return WorkState.IDLE, self.ended
        if self.workers_wanted == 0:
            return WorkState.WAITING, Why.NO_WORKERS
        if self.blocks:
            return WorkState.WAITING, next(iter(self.blocks))
        if not self._in_hand and any(worker.why is Why.FAILING for worker in self.workers.values()):
            return WorkState.WAITING, Why.FAILING
        if not self._in_hand and (obstacle := self.queue.obstacle):
            return WorkState.WAITING, obstacle
        return WorkState.WORKING, self._why_working()

    def _why_working(self) -> Why:
        if not self.queue.agenda.orders:
            return Why.ASKED_FOR_PROPOSALS
        if self.queue.front.runs_left is not None:
            return Why.ASKED_FOR_RUNS
        if self.queue.front.for_ms is not None:
            return Why.ASKED_FOR_TIME
        return Why.ASKED if self.queue.front.kind is WorkKind.SEARCH else Why.ASKED_FOR_GOAL

    @property
    def _in_hand(self) -> list[effect.WorkerState]:
        return [w for w in self.workers.values() if w.assignment]

    @property
    def _assignments(self) -> list[inputs.Assignment]:
        return [w.assignment for w in self.workers.values() if w.assignment]

    @property
    def _is_refused(self) -> bool:
        """Whether the machine is its owner's now: nothing new is agreed to."""
        return any(why in self.blocks for why in OWNER_REASONS)

    # --- what happens ---

    def handle(self, event: inputs.Input, now_ms: int) -> list[effect.Effect]:
        """Take one event in; return what must be done, in order."""
        before = self._state()[:2]
        effects = self._apply(event, now_ms)
        effects += self._expire(now_ms)
        effects += self._dispatch(now_ms)
        after = self._state()[:2]
        if after != before:
            self.since_ms = now_ms
            effects.append(effect.Tell("state", after[0].value))
        return effects

    def _apply(self, event: inputs.Input, now_ms: int) -> list[effect.Effect]:
        match event:
            case inputs.WorkAsked() | inputs.OrderCancelled() | inputs.ShareChanged() | inputs.FinishAsked():
                return self._order(event, now_ms)
            case inputs.PauseAsked(until_ms):
                self.queue.agenda = replace(self.queue.agenda, paused=True, paused_until_ms=until_ms)
                return [effect.Save(), *self._cancel_all()]
            case inputs.ResumeAsked():
                self.queue.held.clear()
                self.queue.waits_ms.clear()
                self.queue.failures.clear()
                self.queue.agenda = replace(self.queue.agenda, paused=False, paused_until_ms=None)
                return [effect.Save()]
            case inputs.StopAsked():
                self.stopping = True
                return self._cancel_all(here_only=True)
            case inputs.RunAsked() | inputs.RunDropped():
                return self._queue(event)
            case inputs.Sent() | inputs.TakenOver() | inputs.Located():
                return self._elsewhere(event, now_ms)
            case inputs.Blocked():
                return self._block(event, now_ms)
            case inputs.JobReady(name):
                self.queue.job = event if name is not None else None
                self.queue.look_until_ms = None
                return []
            case inputs.MachineChanged():
                self.queue.release(lambda held: held.retry_ms - held.wait_ms <= now_ms - FIRST_WAIT_MS)
                return []
            case inputs.VerificationsChanged() | inputs.Tick():
                return [self._verify(), *self._retry(now_ms)]
            case _:
                return self._worker_event(event, now_ms)

    def _order(
        self, event: inputs.WorkAsked | inputs.OrderCancelled | inputs.ShareChanged | inputs.FinishAsked, now_ms: int
    ) -> list[effect.Effect]:
        match event:
            case inputs.WorkAsked(order, instead):
                before = self.queue.agenda.orders
                self.queue.agenda = self.queue.agenda.with_order(order, now_ms, instead=instead)
                self.finishing = False
                self.queue.failures.clear()
                ended = (
                    [each.number for each in before if self.queue.agenda.find(each.number) is None] if instead else []
                )
                return [effect.Save(), *self._cancel_orders(ended), *self._look_first(now_ms)]
            case inputs.OrderCancelled(number):
                self.queue.agenda = self.queue.agenda.without([number], "you cancelled it", now_ms)
                self.ended = self.ended if self.queue.agenda.orders else Why.NOT_ASKED
                return [effect.Save(), *self._cancel_orders([number])]
            case inputs.ShareChanged(workers, share):
                self.workers_wanted = workers
                if share is not None:
                    orders = tuple(replace(order, verify_share=share) for order in self.queue.agenda.orders)
                    self.queue.agenda = replace(self.queue.agenda, orders=orders)
                return [effect.Save(), *([] if self.queue.job else [self._verify()])]
            case inputs.FinishAsked():
                numbers = [order.number for order in self.queue.agenda.orders]
                self.queue.agenda = self.queue.agenda.without(numbers, "you had the node finish", now_ms)
                return self._ended(Why.NOT_ASKED)

    def _block(self, event: inputs.Blocked, now_ms: int) -> list[effect.Effect]:
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

    def _queue(self, event: inputs.RunAsked | inputs.RunDropped) -> list[effect.Effect]:
        if isinstance(event, inputs.RunAsked):
            self.queue.proposals.append(event.assignment)
            return []
        self.queue.drop_proposal(event.name)
        workers = ((name, worker.assignment) for name, worker in self.workers.items())
        return [effect.Cancel(name, of.name) for name, of in workers if of and of.is_proposal and of.name == event.name]

    def is_in_hand(self, proposal: str) -> bool:
        """Whether a worker has what a person proposed under this name."""
        assignments = (worker.assignment for worker in self.workers.values() if worker.assignment)
        return any(each.is_proposal and each.name == proposal for each in assignments)

    def _worker_event(self, event: inputs.Input, now_ms: int) -> list[effect.Effect]:
        match event:
            case inputs.WorkerReady(name, device):
                self.workers[name] = effect.WorkerState(device=device, ready=True, why=Why.NOT_ASKED)
            case inputs.WorkerStage(name, why):
                self._worker(name).why = why
            case inputs.Proposed(name):
                return self._proposed(event, self._worker(name), now_ms)
            case inputs.Settled(name, key):
                return self._settled(name, key, now_ms)
            case inputs.Outrun(key):
                return self._give_way(key, now_ms)
            case inputs.Progressed(name, fraction, step, loss):
                worker = self._worker(name)
                if worker.run:
                    worker.run = _changed(worker.run, fraction=fraction, step=step, loss=loss)
            case inputs.Dropped(name):
                return self._dropped(name, now_ms)
            case inputs.Finished():
                return self._finished(event, now_ms)
            case inputs.Failed() | inputs.Unworkable():
                return self._failed(event, now_ms)
            case inputs.WorkerLeaves() | inputs.WorkerLost():
                return self._going(event, now_ms)
        return []

    def _dropped(self, name: str, now_ms: int) -> list[effect.Effect]:
        """A worker gave back what it had not begun."""
        worker = self._worker(name)
        assignment = worker.assignment
        is_passed_over = assignment is not None and assignment.name in self.queue.held
        # What a person proposed waits until work goes on.
        waits = (self.queue.agenda.paused or self._is_refused or is_passed_over) and not worker.left
        if assignment and assignment.is_proposal and waits:
            self.queue.proposals.insert(0, assignment)
        elif assignment and worker.overtaken:
            self.queue.do_again(assignment)
        claimed = assignment.name if assignment and worker.key else None
        self._free(name, now_ms)
        return [effect.WithdrawClaim(claimed)] if claimed else []

    def _elsewhere(self, event: inputs.Sent | inputs.TakenOver | inputs.Located, now_ms: int) -> list[effect.Effect]:
        """A run goes on at a place of its own, which is gone with it."""
        match event:
            case inputs.Sent(name):
                worker = self._worker(name)
                if worker.assignment:
                    moved = replace(worker, device="", ready=False, why=Why.QUEUED, leaving=False, elsewhere=True)
                    self.workers[worker.assignment.name] = moved
                    worker.assignment = None  # its time counts where it goes on
                    self._free(name, now_ms)
            case inputs.TakenOver(name, run, key, number):
                order = self.queue.agenda.find(number)
                kind = order.kind if order else WorkKind.SEARCH if number else WorkKind.PERSON
                assignment = inputs.Assignment(name, order.task if order else "", kind, order=number)
                self.workers[name] = effect.WorkerState(
                    assignment=assignment, run=run, key=key, why=Why.QUEUED, elsewhere=True, since_ms=now_ms
                )
            case inputs.Located(name, device, why):
                if place := self.workers.get(name):
                    place.device, place.why = device, why
        return []

    def _failed(self, event: inputs.Failed | inputs.Unworkable, now_ms: int) -> list[effect.Effect]:
        """What could not be begun: an order is passed over for a while, and a proposal that this machine can't run."""
        assignment = self._worker(event.worker).assignment
        if isinstance(event, inputs.Unworkable):
            if assignment is None:
                return []
            self.queue.hold(assignment, Why.TASK_BROKEN, event.sentence, now_ms)
            return [effect.Cancel(event.worker, assignment.name), effect.Tell("worker", event.sentence)]
        self._free(event.worker, now_ms)
        if assignment and assignment.is_search:
            why = Why.CANNOT_RUN_HERE if event.cannot_run_here else Why.TASK_BROKEN
            self.queue.hold(assignment, why, event.sentence, now_ms)
        elif assignment and assignment.is_proposal and event.cannot_run_here:
            self.queue.hold(assignment, Why.CANNOT_RUN_HERE, event.sentence, now_ms)
            self.queue.proposals.append(assignment)
        return [effect.Tell("worker", event.sentence)]

    def _finished(self, event: inputs.Finished, now_ms: int) -> list[effect.Effect]:
        effects: list[effect.Effect] = [effect.Save()]
        worker = self._worker(event.worker)
        worker.yielded &= not event.counted
        assignment = worker.assignment
        if assignment is None:
            self._free(event.worker, now_ms)
            return []
        if event.failed:
            self.queue.note_failure(assignment, now_ms)
        if assignment.job:  # there may be more of them
            effects += self._look_first(now_ms)
        if event.counted:
            self.queue.count(assignment, is_best=event.is_best, reaches_goal=event.reaches_goal)
            if worker.run and worker.key and not worker.elsewhere:
                self.lasted_ms[worker.key[0]] = now_ms - worker.run.started_ms
        elif worker.overtaken:
            self.queue.do_again(assignment)
        self._free(event.worker, now_ms)
        return effects

    def _going(self, event: inputs.WorkerLeaves | inputs.WorkerLost, now_ms: int) -> list[effect.Effect]:
        """A worker goes, or is gone. What it was given after it was told to go it never heard: another one does it."""
        if isinstance(event, inputs.WorkerLeaves):
            if event.worker in self.workers:
                self.workers[event.worker].leaving = True
            return []
        lost = self.workers.pop(event.worker, None)
        if lost is None or lost.assignment is None:
            return []
        if lost.leaving and not lost.assignment.is_search:
            self.queue.proposals.insert(0, lost.assignment)
        if lost.key is None:
            return []
        self.queue.note_failure(lost.assignment, now_ms)
        return [(effect.WithdrawClaim if lost.announced else effect.CloseAbandoned)(lost.assignment.name)]

    # --- parts ---

    def _verify(self) -> effect.Verify:
        is_due = self.queue.agenda.orders and self.queue.front.verify_share > 0 and self.queue.job is None
        tasks = tuple(dict.fromkeys(order.task for order in self.queue.agenda.orders))
        return effect.Verify(tasks if is_due else None, self.queue.job.job if self.queue.job else None)

    def _look_first(self, now_ms: int) -> list[effect.Effect]:
        """Let the next search wait until it is known whether there is something to verify.

        A verification at hand may be given out at once: whether it is still the next one is then no question.
        """
        self.queue.look_until_ms = now_ms + LOOK_MS
        return [] if self.queue.job else [self._verify()]

    def _retry(self, now_ms: int) -> list[effect.Effect]:
        self.queue.release(lambda held: not held.retry_ms - held.wait_ms <= now_ms < held.retry_ms)
        if Why.CANNOT_RECORD not in self.blocks or now_ms < self.retry_ms:
            return []
        del self.blocks[Why.CANNOT_RECORD]
        return [effect.RecordWaiting()]

    def _worker(self, name: str) -> effect.WorkerState:
        return self.workers.setdefault(name, effect.WorkerState())

    def _free(self, name: str, now_ms: int) -> None:
        """Take the assignment from a worker, and note what its time went to."""
        worker = self._worker(name)
        assignment, spent_ms = worker.assignment, max(0, now_ms - worker.since_ms)
        if assignment and assignment.job:
            self.queue.agenda = self.queue.agenda.with_spent(now_ms, verification_ms=spent_ms)
        elif assignment:
            self.queue.agenda = self.queue.agenda.with_spent(now_ms, runs_ms=spent_ms)
        worker.assignment = worker.key = worker.run = worker.announced = None
        worker.why, worker.refused, worker.left, worker.overtaken = Why.NOT_ASKED, 0, False, False
        if worker.elsewhere:
            del self.workers[name]

    def _proposed(self, event: inputs.Proposed, worker: effect.WorkerState, now_ms: int) -> list[effect.Effect]:
        name, assignment = event.worker, event.assignment
        if self.stopping or self.queue.agenda.paused or self._is_refused or worker.assignment is None:
            return [effect.Cancel(name, assignment)]
        # What a person asks for by name is run whether others do it or not.
        elsewhere = event.taken and worker.assignment.gives_way
        taken = elsewhere or any(other.key == event.key for other in self.workers.values() if other is not worker)
        if taken and worker.assignment.is_proposal:
            worker.left = True
            return [effect.LeaveToOther(assignment), effect.Cancel(name, assignment)]
        if taken and worker.refused < PROPOSALS_PER_ASSIGNMENT:
            worker.refused += 1
            return [effect.Decline(name, assignment)]
        if taken:
            return [effect.Cancel(name, assignment)]
        if pressing := [kind for kind in self._pressing(now_ms) if kind < self.queue.rank(worker.assignment)]:
            return [self._overtaken(name, worker, pressing[0], now_ms)]
        worker.key = event.key
        if event.has_peers and worker.assignment.gives_way and worker.refused < PROPOSALS_PER_ASSIGNMENT:
            worker.announced = event.run
            return [effect.Announce(name, assignment, event.key, SETTLE_MS)]
        return self._approve(name, worker, event.run, assignment, now_ms)

    def _settled(self, name: str, key: tuple[bytes, bytes, int], now_ms: int) -> list[effect.Effect]:
        worker = self.workers.get(name)
        # What was stopped meanwhile is given back by the worker.
        if worker is None or worker.key != key or self.stopping or self.queue.agenda.paused or self.stops:
            return []
        if worker.announced is None or worker.assignment is None:
            return []
        return self._approve(name, worker, worker.announced, worker.assignment.name, now_ms)

    def _approve(
        self, name: str, worker: effect.WorkerState, run: RunInHand, assignment: str, now_ms: int
    ) -> list[effect.Effect]:
        worker.run, worker.announced, worker.why = _changed(run, started_ms=now_ms), None, Why.RUNNING
        return [effect.Approve(name, assignment)]

    def _give_way(self, key: tuple[bytes, bytes, int], now_ms: int) -> list[effect.Effect]:
        """Leave a search to another node whose claim wins: what is announced, and a run that has just begun.

        Only so often in a row, or a liar could keep a worker idle. A shared proposal is left while it is announced.
        """
        effects: list[effect.Effect] = []
        for name, worker in self.workers.items():
            if worker.key != key or worker.assignment is None or not worker.assignment.gives_way:
                continue
            assignment = worker.assignment.name
            if worker.assignment.shared:
                if worker.announced:
                    worker.key, worker.announced, worker.left = None, None, True
                    effects += [
                        effect.WithdrawClaim(assignment),
                        effect.LeaveToOther(assignment),
                        effect.Cancel(name, assignment),
                    ]
            elif worker.announced:
                worker.key = worker.announced = None
                worker.refused += 1
                effects += [effect.WithdrawClaim(assignment), effect.Decline(name, assignment)]
            elif worker.run and not worker.yielded and now_ms - worker.run.started_ms < YIELD_MS:
                worker.yielded = True
                effects.append(effect.Cancel(name, assignment))
        return effects

    def _cancel_all(self, *, here_only: bool = False) -> list[effect.Effect]:
        stopped = ((name, w) for name, w in self.workers.items() if not (here_only and w.elsewhere))
        return [effect.Cancel(name, w.assignment.name) for name, w in stopped if w.assignment]

    def _cancel_orders(self, numbers: list[int]) -> list[effect.Effect]:
        """End the runs in hand of orders that nobody wants any more."""
        self.queue.drop_gone()
        workers = ((name, worker.assignment) for name, worker in self.workers.items())
        return [effect.Cancel(name, of.name) for name, of in workers if of and of.is_search and of.order in numbers]

    def _ended(self, why: Why) -> list[effect.Effect]:
        """Orders have ended; with the last one the runs in hand are the last."""
        self.queue.drop_gone()
        if not self.queue.agenda.orders:
            self.finishing, self.ended = True, why
        return [effect.Save()]

    def _expire(self, now_ms: int) -> list[effect.Effect]:
        effects: list[effect.Effect] = []
        if (
            self.queue.agenda.paused
            and self.queue.agenda.paused_until_ms is not None
            and now_ms >= self.queue.agenda.paused_until_ms
        ):
            self.queue.agenda = replace(self.queue.agenda, paused=False, paused_until_ms=None)
            effects.append(effect.Save())
        for order in self.queue.agenda.orders:
            if (end := _end(order, now_ms)) is not None:
                why, sentence = end
                self.queue.agenda = self.queue.agenda.without([order.number], sentence, now_ms)
                text = f"order {order.number} has ended: {sentence} → autoresearch work --report"
                effects += [*self._ended(why), effect.Tell("order_ended", text, order.number)]
        front = self.queue.front
        if front.for_ms is not None and front.until_ms is None and not self.queue.agenda.paused:
            self.queue.agenda = self.queue.agenda.with_changed(replace(front, until_ms=now_ms + front.for_ms))
            effects.append(effect.Save())
        if self.finishing and not self._in_hand:
            self.finishing = False
        return effects

    # --- what is done next ---

    def _dispatch(self, now_ms: int) -> list[effect.Effect]:
        """Give idle workers something to do; ask for processes when there is work, let them go after."""
        for worker in self.workers.values():
            worker.why = Why.NOT_ASKED if worker.why in PASSING_REASONS else worker.why
        if self.stopping or self.queue.agenda.paused:
            return self._want(0)
        local_runs = sum(1 for w in self._in_hand if not w.elsewhere)
        if self.blocks:
            return self._want(local_runs)
        effects = self._want(min(self.workers_wanted, self._needed(local_runs, now_ms)))
        for name, worker in sorted(self.workers.items()):
            if not worker.ready or worker.leaving or worker.assignment:
                continue
            offer = self.queue.take(self._assignments, self.workers_wanted, now_ms)
            if offer is None:
                break
            if isinstance(offer, Why):
                worker.why = offer
                continue
            worker.assignment, worker.since_ms = offer, now_ms
            # What is verified is for the order whose share of the time it takes.
            order = self.queue.agenda.find(offer.order or (self.queue.front.number if offer.job else 0))
            if order and order.began_ms is None:
                self.queue.agenda = self.queue.agenda.with_changed(replace(order, began_ms=now_ms))
                effects.append(effect.Save())
            worker.run = _changed(offer.run, started_ms=now_ms) if offer.run else None
            worker.why = Why.VERIFYING if offer.job else Why.PROPOSING
            effects.append(effect.Assign(name, offer, worker.run if offer.kind is WorkKind.VERIFICATION else None))
        return effects + self._overtake(now_ms)

    def _needed(self, local_runs: int, now_ms: int) -> int:
        """How many workers have, or would get, something to do. One that only writes requests is quick.

        It is enough then, and stays while its requests are carried out.
        """
        open_orders = self.queue.open_orders(self._assignments, self.workers_wanted)
        waiting = len(self.queue.ready_proposals) + self.queue.has_due_verification(now_ms)
        if self.queue.front.executor:
            return min(1, len(self._in_hand) + waiting + len(open_orders))
        return local_runs + waiting + sum(1 if order.executor else left for order, left in open_orders)

    # --- what goes before a run in hand ---

    def _pressing(self, now_ms: int) -> list[WorkKind]:
        """The kinds of what waits for nothing but a worker, and that no worker takes which is free or will be soon."""
        if self.blocks:
            return []
        local = [worker for worker in self.workers.values() if not worker.elsewhere]
        coming = sum(1 for worker in local if worker.overtaken or worker.assignment is None)
        coming += max(0, self.processes - len(local))
        return self.queue.waiting(self._assignments, self.workers_wanted, now_ms)[coming:]

    def _overtake(self, now_ms: int) -> list[effect.Effect]:
        """End runs of the search, those with the most left first, for what goes before them and waits."""
        effects: list[effect.Effect] = []
        for kind in self._pressing(now_ms):
            left = {
                name: self._left_ms(worker, now_ms)
                for name, worker in sorted(self.workers.items())
                if worker.run and worker.assignment and kind < self.queue.rank(worker.assignment)
                if not (worker.overtaken or worker.elsewhere or worker.announced)
            }
            name = max(left, key=left.__getitem__, default=None)
            if name is None or left[name] <= OVERTAKE_MS:
                break
            effects.append(self._overtaken(name, self.workers[name], kind, now_ms))
        return effects

    def _left_ms(self, worker: effect.WorkerState, now_ms: int) -> int:
        """How long a run goes on, as far as it shows that, or else as the last one on its task did."""
        assert worker.run is not None
        if (left_ms := worker.run.time_left_ms(now_ms)) is not None:
            return left_ms
        elapsed_ms = worker.run.elapsed_ms(now_ms)
        expected_ms = self.lasted_ms.get(worker.key[0], 0) if worker.key else 0
        if elapsed_ms < expected_ms:
            return expected_ms - elapsed_ms
        return OVERTAKE_MS + 1 if elapsed_ms >= GLIMPSE_MS else 0

    def _overtaken(self, name: str, worker: effect.WorkerState, kind: WorkKind, now_ms: int) -> effect.Overtake:
        assert worker.assignment is not None
        worker.overtaken = True
        run = worker.run
        done = f"stopped at {percent(run.fraction)} after {duration(run.elapsed_ms(now_ms))}" if run else "not begun"
        later = "it is run later" if self.queue.agenda.find(worker.assignment.order) else "nobody waits for it any more"
        return effect.Overtake(name, worker.assignment.name, f"{done}: {WORK_RULES[kind].sentence} goes first; {later}")

    def _want(self, count: int) -> list[effect.Effect]:
        if count == self.processes:
            return []
        self.processes = count
        return [effect.WantWorkers(count)]


def _end(order: Order, now_ms: int) -> tuple[Why, str] | None:
    """Why an order ends now, and the sentence; None: it goes on."""
    if order.runs_left == 0:
        return Why.RUNS_DONE, f"{order.runs} of {order.runs} runs are done"
    if order.until_ms is not None and now_ms >= order.until_ms:
        return Why.TIME_OVER, "its time is over"
    if order.is_reached:
        return Why.GOAL_REACHED, f"the best is as good as {order.goal}"
    if order.patience is not None and order.idle_runs >= order.patience:
        return Why.PATIENCE_OVER, f"{counted(order.idle_runs, 'run')} in a row brought no new best"
    return None


def _changed(run: RunInHand, **values: object) -> RunInHand:
    return msgspec.structs.replace(run, **values)
