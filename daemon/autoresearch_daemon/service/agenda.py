"""What a person asked of the node, as it survives a restart: orders, a pause, what the time went to. Pure values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from autoresearch.record.record import DAY_MS
from autoresearch.words import WorkKind

HOUR_MS = 3_600_000
# So long verification may be ahead of its share at the begin of a day's work, and not at all at its end.
VERIFY_AHEAD_MS = 600_000
# So many orders that ended can be told of.
PAST_ORDERS = 20


@dataclass(frozen=True, slots=True)
class Order:
    """Work that a person ordered: a task folder (empty: the configured one), a number of runs, a time, a goal.

    ``runs_left`` of ``runs`` are still to do. ``for_ms``: it ends so long after its first turn, which sets
    ``until_ms``. ``verify_share`` is the share of the workers' time, 0 to 1, that goes to verification while this
    order is the first: at 0 nothing is verified, at 1 nothing else is done. ``goal``: it ends when the task's best
    value is as good. ``patience``: it ends when so many of its runs in a row were no new best; ``idle_runs`` were by
    now, of ``runs_done``; ``is_reached``: the goal is. ``proposer`` is who invents the changes (empty: whom the
    settings name). ``executor`` carries the runs out (empty: the workers), ``at_most`` so many at a time. ``number`` is
    given when it is placed, ``task_name`` is the task's name then. ``began_ms`` is its first turn, ``ended_ms`` its
    end, ``end`` why.
    """

    task: str = ""
    runs_left: int | None = None
    for_ms: int | None = None
    until_ms: int | None = None
    verify_share: float = 0.2
    proposer: str = ""
    executor: str = ""
    at_most: int = 1
    number: int = 0
    task_name: str = ""
    runs: int | None = None
    goal: float | None = None
    patience: int | None = None
    idle_runs: int = 0
    is_reached: bool = False
    runs_done: int = 0
    began_ms: int | None = None
    ended_ms: int | None = None
    end: str = ""

    @property
    def kind(self) -> WorkKind:
        """Whether it ends by itself."""
        ends = (self.runs_left, self.for_ms, self.until_ms, self.goal, self.patience)
        return WorkKind.SEARCH if all(end is None for end in ends) else WorkKind.ORDER

    @property
    def searches(self) -> bool:
        """Whether it lets runs be made."""
        return self.verify_share < 1


@dataclass(frozen=True, slots=True)
class Hour:
    """What the workers' time went to within an hour, in milliseconds."""

    start_ms: int
    runs_ms: int = 0
    verification_ms: int = 0


@dataclass(frozen=True, slots=True)
class Agenda:
    """The orders, in the order of their turns: those that end, by age, then at most one that does not.

    ``last`` is the highest number that an order had. ``hours`` are those of the last day in which there was work.
    ``past`` are the last orders that began and ended, the newest last.
    """

    orders: tuple[Order, ...] = ()
    paused: bool = False
    paused_until_ms: int | None = None
    last: int = 0
    hours: tuple[Hour, ...] = ()
    past: tuple[Order, ...] = ()

    def find(self, number: int) -> Order | None:
        """The order with this number."""
        return next((order for order in self.orders if order.number == number), None)

    def with_order(self, order: Order, now_ms: int, *, instead: bool = False) -> Agenda:
        """The agenda with one more order; ``instead``: of all others. An endless one replaces an endless one."""
        order = replace(order, number=self.last + 1, runs=order.runs_left)
        ending = [] if instead else [each for each in self.orders if each.kind is WorkKind.ORDER]
        endless = [] if instead else [each for each in self.orders if each.kind is WorkKind.SEARCH]
        orders = [*ending, order, *endless] if order.kind is WorkKind.ORDER else [*ending, order]
        ended = [each.number for each in self.orders if each not in orders]
        return replace(
            self.without(ended, "another order took its place", now_ms), orders=tuple(orders), last=order.number
        )

    def with_changed(self, order: Order) -> Agenda:
        """The agenda with another version of one of its orders."""
        return replace(self, orders=tuple(order if each.number == order.number else each for each in self.orders))

    def without(self, numbers: Collection[int], why: str, now_ms: int) -> Agenda:
        """The agenda after some orders ended, and why they did."""
        ended = [replace(each, ended_ms=now_ms, end=why) for each in self.orders if each.number in numbers]
        past = (*self.past, *(order for order in ended if order.began_ms is not None))[-PAST_ORDERS:]
        return replace(self, orders=tuple(each for each in self.orders if each.number not in numbers), past=past)

    def with_spent(self, now_ms: int, *, runs_ms: int = 0, verification_ms: int = 0) -> Agenda:
        """The agenda after that much work, in milliseconds of workers."""
        start_ms = now_ms - now_ms % HOUR_MS
        hours = {hour.start_ms: hour for hour in self.hours if 0 <= start_ms - hour.start_ms < DAY_MS}
        hour = hours.get(start_ms, Hour(start_ms))
        hours[start_ms] = Hour(start_ms, hour.runs_ms + runs_ms, hour.verification_ms + verification_ms)
        return replace(self, hours=tuple(hours.values()))

    def verification_wait_ms(self, share: float, now_ms: int) -> int | None:
        """How much time must go to runs before the next verification begins; 0: none. None: nothing is verified.

        Over 24 hours verification takes at most ``share`` of the workers' time, and by the end of its last one more.
        At the begin of a day's work it may be ten minutes ahead.
        """
        if share <= 0:
            return None
        recent = [hour for hour in self.hours if 0 <= now_ms - hour.start_ms < DAY_MS]
        verification_ms = sum(hour.verification_ms for hour in recent)
        worked_ms = verification_ms + sum(hour.runs_ms for hour in recent)
        ahead_ms = min(VERIFY_AHEAD_MS, share * DAY_MS) * max(0.0, 1 - worked_ms / DAY_MS)
        if verification_ms <= share * worked_ms + ahead_ms:
            return 0
        return round(min((verification_ms - ahead_ms) / share - worked_ms, DAY_MS))
