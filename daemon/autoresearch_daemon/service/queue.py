"""What a node is to do: the one queue of proposals, verifications, orders and search, and what comes next of it.

Pure: assignments in hand and the time in, the next assignment out.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from autoresearch.words import Why, WorkKind
from autoresearch_daemon.service.agenda import Agenda, Order
from autoresearch_daemon.service.effects import Held
from autoresearch_daemon.service.inputs import Assignment, JobReady

# So many runs may fail within so long before the next one waits, and one more for each worker beside the first: what
# fails at once would otherwise fill everybody's log with failures.
FAILURES = 3
FAILURES_MS = 60_000
# How long what could not be begun waits before the first next try, and at most.
FIRST_WAIT_MS = 60_000
LONGEST_WAIT_MS = 3_600_000


@dataclass(slots=True)
class WorkQueue:
    """What waits. ``resting`` is the order that holds while there is none; ``proposals`` wait for a worker.

    ``job`` is the verification at hand. ``again`` are the searches whose runs were ended for other work. ``held`` says
    why proposals, by name, and orders, by number, are passed over. ``failures`` are those within a minute, by the
    number of the order; verifications have 0.
    """

    agenda: Agenda = field(default_factory=Agenda)
    resting: Order = field(default_factory=Order)
    proposals: list[Assignment] = field(default_factory=list)
    job: JobReady | None = None
    look_until_ms: int | None = None
    again: list[Assignment] = field(default_factory=list)
    held: dict[str | int, Held] = field(default_factory=dict)
    waits_ms: dict[str | int, int] = field(default_factory=dict)
    failures: dict[int, deque[int]] = field(default_factory=dict)
    counter: int = 0

    # --- what waits ---

    @property
    def front(self) -> Order:
        """The first order that can be worked on; what holds while there is none."""
        orders = self.agenda.orders
        return next((order for order in orders if order.number not in self.held), orders[0] if orders else self.resting)

    @property
    def by_turn(self) -> list[Assignment]:
        """The proposals in the order of their turns: what could not be begun before comes after what was not tried."""
        return sorted(self.proposals, key=lambda each: each.name in self.waits_ms)

    @property
    def ready_proposals(self) -> list[Assignment]:
        """The proposals that are not passed over, in the order of their turns."""
        return [each for each in self.by_turn if each.name not in self.held]

    @property
    def obstacle(self) -> Why | None:
        """Why all that waits is passed over, where it is."""
        keys: list[str | int] = [order.number for order in self.agenda.orders]
        keys += [each.name for each in self.by_turn]
        return self.held[keys[0]].why if keys and all(key in self.held for key in keys) else None

    def open_orders(self, in_hand: Sequence[Assignment], workers: int) -> list[tuple[Order, int]]:
        """The orders for which more searches may begin, with how many, in the order of their turns."""
        searching = Counter(each.order for each in in_hand if each.is_search)
        opened = []
        for order in sorted(self.agenda.orders, key=lambda each: (each.kind, each.number in self.waits_ms)):
            if order.number in self.held:
                continue
            if not order.searches:
                break
            room = order.at_most if order.executor else workers
            left = (room if order.runs_left is None else min(room, order.runs_left)) - searching[order.number]
            if left > 0:
                opened.append((order, left))
        return opened

    def verification_wait_ms(self, now_ms: int) -> int | None:
        """How long runs go before the next verification; None where nothing is verified."""
        return self.agenda.verification_wait_ms(self.front.verify_share, now_ms) if self.agenda.orders else None

    def has_due_verification(self, now_ms: int) -> bool:
        """Whether the verification at hand may begin."""
        return self.job is not None and self.verification_wait_ms(now_ms) == 0

    # --- what comes next ---

    def take(self, in_hand: Sequence[Assignment], workers: int, now_ms: int) -> Assignment | Why | None:
        """The next thing to do for a worker that is free, by precedence; why there is none, where something waits."""
        if self.front.executor and len(in_hand) >= self.front.at_most:
            return Why.QUEUE_FULL
        reasons: list[Why] = []
        for kind in WorkKind:
            offer = self._take(kind, in_hand, workers, now_ms)
            if isinstance(offer, Assignment):
                return offer
            reasons += [offer] if offer else []
        return reasons[0] if reasons else None

    def _take(
        self, kind: WorkKind, in_hand: Sequence[Assignment], workers: int, now_ms: int
    ) -> Assignment | Why | None:
        match kind:
            case WorkKind.PERSON:
                for proposal in self.ready_proposals[:1]:
                    self.proposals.remove(proposal)
                    return proposal
                return None
            case WorkKind.VERIFICATION:
                return self._verification(in_hand, workers, now_ms)
            case WorkKind.ORDER | WorkKind.SEARCH:
                return self._search(kind, in_hand, workers, now_ms)

    def _verification(self, in_hand: Sequence[Assignment], workers: int, now_ms: int) -> Assignment | Why | None:
        if self.job is None or not self.has_due_verification(now_ms):
            return None
        if self._fails_too_often(0, in_hand, workers, now_ms):
            return Why.FAILING
        job, self.job = self.job, None
        name = f"verify-{self._next_number()}"
        return Assignment(name, job.task, WorkKind.VERIFICATION, job=job.job or "", run=job.run)

    def _search(
        self, kind: WorkKind, in_hand: Sequence[Assignment], workers: int, now_ms: int
    ) -> Assignment | Why | None:
        why = None
        for order, _ in self.open_orders(in_hand, workers):
            if order.kind is not kind:
                continue
            room = order.at_most if order.executor else workers
            if self._fails_too_often(order.number, in_hand, room, now_ms):
                why = Why.FAILING
                continue
            if (
                self.look_until_ms is not None
                and now_ms < self.look_until_ms
                and self.verification_wait_ms(now_ms) == 0
            ):
                return Why.LOOKING
            name = f"search-{self._next_number()}"
            for earlier in [each for each in self.again if each.order == order.number][:1]:
                self.again.remove(earlier)
                return replace(earlier, name=name, again=earlier.name)
            return Assignment(name, order.task, kind, order=order.number)
        return why

    def _fails_too_often(self, number: int, in_hand: Sequence[Assignment], at_once: int, now_ms: int) -> bool:
        """Whether no more may begin for an order: with what failed within the last minute, all in hand may fail too."""
        failures = self.failures.get(number, deque())
        while failures and not now_ms - FAILURES_MS < failures[0] <= now_ms:
            failures.popleft()
        beginning = sum(1 for each in in_hand if each.order == number)
        return bool(failures) and len(failures) + beginning >= FAILURES - 1 + at_once

    def _next_number(self) -> int:
        self.counter += 1
        return self.counter

    # --- what goes before what ---

    def waiting(self, in_hand: Sequence[Assignment], workers: int, now_ms: int) -> list[WorkKind]:
        """The kinds of what waits for nothing but a worker of this machine, the first one first."""
        if self.front.executor:
            return []
        kinds = [WorkKind.PERSON for _ in self.ready_proposals]
        kinds += [WorkKind.VERIFICATION] if self.has_due_verification(now_ms) else []
        for order, left in self.open_orders(in_hand, workers):
            kinds += [] if order.executor else [order.kind] * left
        return kinds

    def rank(self, assignment: Assignment) -> int:
        """What goes before an assignment in hand is of a kind below this number.

        Of an order that is gone all goes before it, unless another order is on the same task.
        """
        if not assignment.is_search or (assignment.again and self.agenda.find(assignment.order)):
            return 0  # a run is ended for other work once
        is_wanted = any(assignment.order == each.number or assignment.task == each.task for each in self.agenda.orders)
        return assignment.kind if is_wanted else max(WorkKind) + 1

    # --- what becomes of it ---

    def count(self, assignment: Assignment, *, is_best: bool = False, reaches_goal: bool = False) -> None:
        """A run of an order, or a proposal, came to its end, maybe as the new best, or with the goal reached."""
        self._forget(_key(assignment))
        if order := self.agenda.find(assignment.order):
            changed = replace(
                order,
                runs_left=None if order.runs_left is None else max(0, order.runs_left - 1),
                runs_done=order.runs_done + 1,
                idle_runs=0 if is_best else order.idle_runs + 1,
                is_reached=order.is_reached or reaches_goal,
            )
            self.agenda = self.agenda.with_changed(changed)

    def note_failure(self, assignment: Assignment, now_ms: int) -> None:
        """A search or a verification failed. What a person proposed may fail as often as it is proposed."""
        if not assignment.is_proposal:
            self.failures.setdefault(assignment.order, deque()).append(now_ms)

    def do_again(self, assignment: Assignment) -> None:
        """What was ended for other work is done later, unless nobody wants it any more."""
        if self.agenda.find(assignment.order):
            self.again.append(assignment)

    def hold(self, assignment: Assignment, why: Why, sentence: str, now_ms: int) -> None:
        """Pass over a proposal, or an order, and try it again, each time after twice as long."""
        key = _key(assignment)
        if not assignment.is_search or self.agenda.find(assignment.order):
            self.waits_ms[key] = wait_ms = min(2 * self.waits_ms.get(key, FIRST_WAIT_MS // 2), LONGEST_WAIT_MS)
            self.held[key] = Held(why, sentence, wait_ms, now_ms + wait_ms)

    def release(self, is_due: Callable[[Held], bool]) -> None:
        """Try again what was passed over until now."""
        self.held = {key: held for key, held in self.held.items() if not is_due(held)}

    def drop_proposal(self, name: str) -> None:
        """A person does not want a proposal any more."""
        self.proposals = [each for each in self.proposals if each.name != name]
        self._forget(name)

    def drop_gone(self) -> None:
        """Forget what belongs to orders that are gone."""
        self.again = [each for each in self.again if self.agenda.find(each.order)]
        for key in {*self.waits_ms, *self.failures}:
            if isinstance(key, int) and key and not self.agenda.find(key):
                self._forget(key)
                self.failures.pop(key, None)

    def _forget(self, key: str | int) -> None:
        self.held.pop(key, None)
        self.waits_ms.pop(key, None)


def _key(assignment: Assignment) -> str | int:
    """What is passed over when an assignment can't be begun: the proposal, or the order."""
    return assignment.order if assignment.is_search else assignment.name
