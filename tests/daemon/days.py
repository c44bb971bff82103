"""Random days of a node over its pure service: a person, an owner, verifications, crashes, tasks that can't run.

A day is drawn from a seed. The world here knows what waits by its own bookkeeping, and checks each decision with it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random

import msgspec
from autoresearch_daemon.service.agenda import Agenda, Order
from autoresearch_daemon.service.effects import Approve, Assign, Cancel, Effect, Overtake, Save, Verify, WantWorkers
from autoresearch_daemon.service.inputs import (
    Assignment,
    Blocked,
    Dropped,
    Failed,
    FinishAsked,
    Finished,
    Input,
    JobReady,
    MachineChanged,
    OrderCancelled,
    PauseAsked,
    Progressed,
    Proposed,
    RunAsked,
    Tick,
    WorkAsked,
    WorkerLost,
    WorkerReady,
)
from autoresearch_daemon.service.machine import OVERTAKE_MS, NodeService
from autoresearch_daemon.service.queue import WorkQueue

from autoresearch.ask.node import RunInHand
from autoresearch.words import Why, WorkKind

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
DAY = 24 * HOUR
TICK_MS = MINUTE
# Tasks: how long their runs take, and from when on this machine can run them.
LENGTHS = {"seconds": 50 * SECOND, "minutes": 4 * MINUTE, "long": 40 * MINUTE, "impossible": MINUTE, "later": MINUTE}


@dataclass
class Doing:
    """What a worker has: since when, and for how long from then on; ``stops``: it was told to."""

    assignment: Assignment
    task: str
    begun_ms: int = 0
    length_ms: int = 0
    stops: bool = False


@dataclass
class Bookkeeping:
    """What the person knows: how many runs each order asked for and got, and when each proposal was made and begun."""

    ordered: dict[int, int | None] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=dict)
    cancelled: set[int] = field(default_factory=set)
    proposed_ms: dict[str, int] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    waits_ms: list[int] = field(default_factory=list)
    verifying_ms: int = 0
    running_ms: int = 0


class Day:
    """One day; ``share`` goes to verification. What the service decides is checked as it happens."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.share = self.chance.choice([0.1, 0.2, 0.5])
        self.workers = self.chance.choice([1, 1, 2, 3])
        # On a short day as much is asked for: what comes meets what is not done yet.
        self.until_ms = self.chance.choice([DAY // 4, DAY // 4, DAY // 4, DAY])
        self.later_ms = self.chance.randrange(self.until_ms)
        self.book = Bookkeeping()
        self.doing: dict[str, Doing] = {}
        self.saved = Agenda()
        self.jobs: list[str] = []
        self.now_ms = 0
        self.blocked_ms = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order, self._numbers, self._keys, self._life = count(), count(1), count(1), 0
        self._blocked_since: int | None = None
        self._begin()

    def _begin(self) -> None:
        self.service = NodeService(self.workers, queue=WorkQueue(agenda=self.saved, counter=next(self._numbers) * 1000))
        for name in [name for name in self.book.proposed_ms if name not in self.book.begun]:
            self.take(RunAsked(Assignment(name, self._task_of(name), WorkKind.PERSON)))

    def _task_of(self, name: str) -> str:
        return name.partition("@")[2]

    def at(self, after_ms: int, act: Callable[[], None]) -> None:
        """Something that happens in this life of the daemon."""
        life = self._life
        event = (self.now_ms + after_ms, next(self._order), lambda: act() if life == self._life else None)
        heapq.heappush(self._events, event)

    def run(self) -> None:
        """The whole day."""
        for _ in range(self.chance.randrange(3, 25)):
            moment = self.chance.randrange(self.until_ms)
            heapq.heappush(self._events, (moment, next(self._order), self.chance.choice(self._acts())))
        for moment in range(0, self.until_ms, TICK_MS):
            heapq.heappush(self._events, (moment, next(self._order), self._tick))
        while self._events:
            self.now_ms, _, act = heapq.heappop(self._events)
            if self.now_ms >= self.until_ms:
                break
            act()

    # --- what a person and the world do ---

    def _acts(self) -> list[Callable[[], None]]:
        rare = [self._cancel, self._pause, self._owner, self._crash, self._lose_worker, self._finish]
        return [*[self._work] * 5, *[self._propose] * 4, *[self._others] * 4, *rare]

    def _work(self) -> None:
        chance = self.chance
        runs = chance.choice([None, 1, 3, 10])
        for_ms = chance.choice([None, None, HOUR]) if runs is None else None
        instead = chance.random() < 0.2
        before = {order.number for order in self.service.queue.agenda.orders}
        self.take(WorkAsked(Order(chance.choice([*LENGTHS]), runs, for_ms, verify_share=self.share), instead))
        after = {order.number for order in self.service.queue.agenda.orders}
        assert len(after - before) == 1
        assert not instead or not before & after, "instead of all others"
        self.book.ordered[max(after)] = runs
        self._cancelled(before - after, at_once=instead)

    def _cancel(self) -> None:
        if orders := self.service.queue.agenda.orders:
            number = self.chance.choice(orders).number
            self.take(OrderCancelled(number))
            self._cancelled({number}, at_once=True)

    def _finish(self) -> None:
        before = {order.number for order in self.service.queue.agenda.orders}
        self.take(FinishAsked())
        self._cancelled(before, at_once=False)

    def _cancelled(self, numbers: set[int], *, at_once: bool) -> None:
        self.book.cancelled |= numbers
        assert not numbers & {order.number for order in self.service.queue.agenda.orders}
        for doing in self.doing.values():
            if at_once and doing.assignment.order in numbers and doing.assignment.is_search:
                assert doing.stops, "a cancelled order's run goes on"

    def _propose(self) -> None:
        name = f"proposal-{next(self._numbers)}@{self.chance.choice([*LENGTHS])}"
        self.book.proposed_ms[name] = self.now_ms
        self.take(RunAsked(Assignment(name, self._task_of(name), WorkKind.PERSON)))

    def _others(self) -> None:
        self.jobs += [f"job-{next(self._numbers)}" for _ in range(self.chance.randrange(1, 12))]

    def _pause(self) -> None:
        self.take(PauseAsked(self.now_ms + self.chance.randrange(1, 60) * MINUTE))

    def _owner(self) -> None:
        self.take(Blocked(Why.IN_USE, "in use", stops=self.chance.random() < 0.5))
        self.at(self.chance.randrange(1, 90) * MINUTE, lambda: self.take(Blocked(Why.IN_USE, None)))

    def _lose_worker(self) -> None:
        if self.doing:
            name = self.chance.choice([*self.doing])
            doing = self.doing.pop(name)
            if doing.assignment.is_proposal:
                self.book.begun.add(doing.assignment.name)
            self.take(WorkerLost(name))
            self.at(2 * SECOND, lambda: self._ready(name))

    def _crash(self) -> None:
        """The daemon is killed; what it saved is there at its next start."""
        self._life += 1
        for doing in self.doing.values():
            if doing.assignment.is_proposal and doing.begun_ms:
                self.book.begun.add(doing.assignment.name)
        self.doing.clear()
        self._begin()
        assert not self.book.cancelled & {order.number for order in self.saved.orders}, "what was ended is back"

    def _tick(self) -> None:
        if self.chance.random() < 0.02:
            self.take(MachineChanged())
        self.take(Tick())
        for name, doing in self.doing.items():
            if doing.length_ms and not doing.assignment.job:
                fraction = min(1.0, (self.now_ms - doing.begun_ms) / doing.length_ms)
                self.take(Progressed(name, fraction, 1, None))
        self._check_waiting()

    # --- what the service has done ---

    def take(self, event: Input) -> None:
        """Have the service decide, check it, and do what it says."""
        effects = self.service.handle(event, self.now_ms)
        for effect in effects:
            self._act(effect)

    def _act(self, effect: Effect) -> None:
        match effect:
            case Save():
                agenda = self.service.queue.agenda
                self.saved = msgspec.json.decode(msgspec.json.encode(agenda), type=Agenda)
            case WantWorkers(workers):
                for number in range(workers):
                    self.at(2 * SECOND, lambda name=f"w{number}": self._ready(name))
            case Assign(worker, assignment):
                self._check_precedence(assignment)
                doing = self.doing[worker] = Doing(assignment, assignment.task)
                self.at(SECOND, lambda: self._proposed(worker, doing))
            case Approve(worker):
                self._run(worker, self.doing[worker])
            case Cancel(worker) | Overtake(worker):
                self._stop(worker, effect)
            case Verify(tasks):
                if tasks is not None and self.jobs:
                    self.at(0, lambda: self.take(JobReady(self.jobs[0], RunInHand(title="theirs"), "seconds")))
                elif tasks is not None:
                    self.at(0, lambda: self.take(JobReady(None)))
            case _:
                return

    def _ready(self, name: str) -> None:
        if name not in self.service.workers:
            self.take(WorkerReady(name, "cpu"))

    def _proposed(self, worker: str, doing: Doing) -> None:
        if self.doing.get(worker) is not doing:
            return
        if doing.stops:
            del self.doing[worker]
            self.take(Dropped(worker))
        elif doing.task == "impossible" or (doing.task == "later" and self.now_ms < self.later_ms):
            del self.doing[worker]
            self.take(Failed(worker, f"no card for {doing.task}", cannot_run_here=True))
        elif doing.assignment.job:
            self._run(worker, doing)
        else:
            key = bytes(32), next(self._keys).to_bytes(32, "big"), 0
            self.take(Proposed(worker, doing.assignment.name, key, RunInHand(title=doing.task)))

    def _run(self, worker: str, doing: Doing) -> None:
        doing.begun_ms, doing.length_ms = self.now_ms, round(LENGTHS[doing.task] * self.chance.uniform(0.7, 1.3))
        if doing.assignment.is_proposal:
            self.book.begun.add(doing.assignment.name)
            self.book.waits_ms.append(self.now_ms - self.book.proposed_ms[doing.assignment.name])
        self.at(doing.length_ms, lambda: self._ended(worker, doing))

    def _stop(self, worker: str, effect: Cancel | Overtake) -> None:
        doing = self.doing[worker]
        if isinstance(effect, Overtake) and doing.begun_ms:
            left_ms = doing.begun_ms + doing.length_ms - self.now_ms
            assert left_ms > OVERTAKE_MS - TICK_MS, "what is nearly done is let be"
            assert doing.assignment.is_search
            gone = self.service.queue.agenda.find(doing.assignment.order) is None
            assert not doing.assignment.again or gone, "interrupted twice"
        doing.stops = True
        if doing.begun_ms:
            self.at(SECOND, lambda: self._ended(worker, doing))

    def _ended(self, worker: str, doing: Doing) -> None:
        if self.doing.get(worker) is not doing:
            return
        del self.doing[worker]
        spent_ms = self.now_ms - doing.begun_ms
        if doing.assignment.job:
            self.book.verifying_ms += spent_ms
        else:
            self.book.running_ms += spent_ms
        number = doing.assignment.order
        if number and not doing.stops:
            self.book.counted[number] = self.book.counted.get(number, 0) + 1
        self.take(Finished(worker, counted=not doing.stops and not doing.assignment.job))

    # --- what must hold ---

    def _check_precedence(self, assignment: Assignment) -> None:
        """Nothing that could be begun goes before this; and nothing is begun that must not be."""
        service, queue = self.service, self.service.queue
        assert not service.blocks
        assert not queue.agenda.paused
        if assignment.job:
            assert assignment.job == self.jobs.pop(0)
        waiting = [each for each in queue.proposals if each.name not in queue.held]
        assert assignment.kind is WorkKind.PERSON or not waiting, "a person waits"
        if assignment.is_search:
            assert queue.job is None or queue.verification_wait_ms(self.now_ms), "a verification waits"
            assert assignment.order not in queue.held
            order = queue.agenda.find(assignment.order)
            assert order is not None, "nobody ordered this"
            in_hand = [each for each in self.doing.values() if each.assignment.order == order.number]
            assert order.runs_left is None or len(in_hand) < order.runs_left

    def _check_waiting(self) -> None:
        """Every order that waits says why; counts are exact."""
        now = self.service.status(self.now_ms)
        for order in now.agenda.orders:
            runs = self.book.ordered[order.number]
            if runs is not None:
                assert order.runs_left == runs - self.book.counted.get(order.number, 0)
        assert now.reason
        idle = not now.blocks and not now.agenda.paused and not self.doing and self.service.workers
        if idle and now.agenda.orders and not self.service.queue.held:
            assert any(worker.why in (Why.LOOKING, Why.FAILING) for worker in now.workers), "it does nothing"
        self._check_overtaking()

    def _check_overtaking(self) -> None:
        """No run of the search that could be interrupted goes on while more waits than workers are coming."""
        service, queue = self.service, self.service.queue
        waiting = len([each for each in queue.proposals if each.name not in queue.held])
        waiting += queue.job is not None and queue.verification_wait_ms(self.now_ms) == 0
        coming = max(0, service.processes - len(self.doing)) + sum(doing.stops for doing in self.doing.values())
        if service.blocks or queue.agenda.paused or waiting <= coming:
            return
        for doing in self.doing.values():
            if doing.assignment.is_search and doing.begun_ms and not doing.assignment.again:
                left_ms = doing.begun_ms + doing.length_ms - self.now_ms
                is_new = self.now_ms - doing.begun_ms < TICK_MS
                assert doing.stops or is_new or left_ms <= OVERTAKE_MS + TICK_MS, "what waits is not let through"

    def check_end(self) -> None:
        """What must hold of the whole day."""
        book, orders = self.book, {order.number: order for order in self.service.queue.agenda.orders}
        for number, runs in book.ordered.items():
            done = book.counted.get(number, 0)
            assert runs is None or done <= runs
            ended = number in book.cancelled or number not in orders
            if runs is not None and ended and number not in book.cancelled:
                assert done == runs
        worked = book.verifying_ms + book.running_ms
        longest = 1.3 * LENGTHS["seconds"] * self.workers
        assert book.verifying_ms <= self.share * worked + 10 * MINUTE + longest


def day(seed: int) -> Day:
    """A whole day, checked."""
    made = Day(seed)
    made.run()
    made.check_end()
    return made
