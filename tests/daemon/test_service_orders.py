"""Orders one after the other, what is passed over, and what goes before a run in hand."""

from __future__ import annotations

from dataclasses import replace

from autoresearch_daemon.service.agenda import HOUR_MS, VERIFY_AHEAD_MS, Agenda, Order
from autoresearch_daemon.service.effects import Assign, Cancel, Overtake, Tell
from autoresearch_daemon.service.inputs import (
    Assignment,
    Failed,
    Finished,
    JobReady,
    MachineChanged,
    OrderCancelled,
    Progressed,
    Proposed,
    RunAsked,
    Tick,
    WorkAsked,
    WorkerReady,
)
from autoresearch_daemon.service.machine import NodeService
from autoresearch_daemon.service.queue import FIRST_WAIT_MS
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.record.record import DAY_MS
from autoresearch.words import Why, WorkKind, WorkState
from tests.daemon.service_nodes import RUN, assignment_of, key, of, started, state_of

MINUTE_MS = 60_000
PERSON = Assignment("proposal-1", "/mine", WorkKind.PERSON)


def numbers(node: NodeService) -> list[int]:
    return [order.number for order in node.queue.agenda.orders]


def run(node: NodeService, number: int, now_ms: int = 0) -> None:
    """What ``w1`` has in hand begins."""
    node.handle(Proposed("w1", assignment_of(node, "w1"), key(number), RUN), now_ms)


def test_orders_that_end_go_before_the_endless_one_which_replaces_another() -> None:
    node = NodeService(workers_wanted=1)
    for order in (Order(), Order(runs_left=3), Order(for_ms=5), Order("/other")):
        node.handle(WorkAsked(order), 0)
    assert numbers(node) == [2, 3, 4]
    node.handle(WorkAsked(Order(runs_left=1), instead=True), 0)
    assert numbers(node) == [5]


def test_each_order_counts_its_own_runs() -> None:
    node = started(1, Order("/a", runs_left=2, verify_share=0))
    node.handle(WorkAsked(Order("/b", runs_left=1, verify_share=0)), 0)
    folders = []
    for number in range(3):
        folders.append(node.workers["w1"].assignment.task)
        run(node, number)
        effects = node.handle(Finished("w1"), 0)
    assert folders == ["/a", "/a", "/b"]
    assert [tell.order for tell in of(Tell, effects) if tell.kind == "order_ended"] == [2]
    assert state_of(node) == (WorkState.IDLE, Why.RUNS_DONE)


def test_an_order_ends_when_its_value_is_reached() -> None:
    node = started(1, Order("/a", goal=0.25, verify_share=0))
    run(node, 1, 5)
    assert not of(Tell, node.handle(Finished("w1", is_best=True), 6))
    run(node, 2, 7)
    [ended] = [each for each in of(Tell, node.handle(Finished("w1", reaches_goal=True), 8)) if each.order == 1]
    assert "the best is as good as 0.25" in ended.text
    assert state_of(node) == (WorkState.IDLE, Why.GOAL_REACHED)
    [past] = node.queue.agenda.past
    assert (past.began_ms, past.ended_ms, past.runs_done) == (0, 8, 2)


def test_patience_counts_the_runs_since_the_last_best_of_the_order() -> None:
    node = started(1, Order("/a", patience=3, verify_share=0))
    ended = []
    for number, is_best in enumerate([False, False, True, False, False, False]):
        assert numbers(node) == [1]
        run(node, number)
        ended = of(Tell, node.handle(Finished("w1", is_best=is_best, failed=not is_best), 120_000 * number))
    assert "3 runs in a row brought no new best" in ended[0].text
    assert state_of(node) == (WorkState.IDLE, Why.PATIENCE_OVER)


def test_only_orders_that_began_are_told_of_later_and_not_without_bound() -> None:
    agenda = Agenda()
    for number in range(1, 60):
        agenda = agenda.with_order(Order("/a", runs_left=1), number)
        if number % 2:
            agenda = agenda.with_changed(replace(agenda.orders[-1], began_ms=number))
        agenda = agenda.without([number], "done", number + 1)
    assert [order.number for order in agenda.past] == list(range(21, 60, 2))


def test_the_time_of_an_order_begins_with_its_turn() -> None:
    node = started(1, Order(runs_left=1, verify_share=0))
    node.handle(WorkAsked(Order(for_ms=1000, verify_share=0)), 0)
    run(node, 1)
    node.handle(Tick(), 5000)
    assert numbers(node) == [1, 2]
    node.handle(Finished("w1"), 6000)
    node.handle(Tick(), 6999)
    assert numbers(node) == [2]
    node.handle(Tick(), 7000)
    assert numbers(node) == []


def test_a_cancelled_order_ends_its_run_and_no_other() -> None:
    node = started(2, Order("/a", runs_left=1, verify_share=0))
    node.handle(WorkAsked(Order("/b", runs_left=5, verify_share=0)), 0)
    first = next(name for name, worker in node.workers.items() if worker.assignment and worker.assignment.order == 1)
    effects = node.handle(OrderCancelled(1), 1)
    assert of(Cancel, effects) == [Cancel(first, assignment_of(node, first))]
    assert numbers(node) == [2]


def test_a_task_that_can_not_run_holds_up_no_other_and_its_error_is_its_own() -> None:
    node = started(1, Order("/impossible", runs_left=1, verify_share=0))
    node.handle(WorkAsked(Order("/good", runs_left=1, verify_share=0)), 0)
    effects = node.handle(Failed("w1", "there is no card", cannot_run_here=True), 1)
    assert [assign.assignment.task for assign in of(Assign, effects)] == ["/good"]
    assert node.status().reason == "working until the runs asked for are done"
    assert node.status().held[1].sentence == "there is no card"
    node.handle(RunAsked(PERSON), 2)
    run(node, 1, 2)
    node.handle(Finished("w1"), 3)
    assert node.workers["w1"].assignment == PERSON


def test_what_is_passed_over_is_tried_again_when_the_machine_changed_but_not_at_once() -> None:
    node = NodeService(workers_wanted=1)
    for assignment in (PERSON, Assignment("proposal-2", "/mine", WorkKind.PERSON)):
        node.handle(RunAsked(assignment), 0)
    node.handle(WorkerReady("w1", "cpu"), 0)
    node.handle(Failed("w1", "too little memory", cannot_run_here=True), 0)
    assert assignment_of(node, "w1") == "proposal-2"
    node.handle(Failed("w1", "too little memory", cannot_run_here=True), 0)
    assert state_of(node) == (WorkState.WAITING, Why.CANNOT_RUN_HERE)
    assert not of(Assign, node.handle(MachineChanged(), FIRST_WAIT_MS - 1))
    node.handle(Tick(), FIRST_WAIT_MS)
    node.handle(Failed("w1", "too little memory", cannot_run_here=True), FIRST_WAIT_MS)
    node.handle(Failed("w1", "too little memory", cannot_run_here=True), FIRST_WAIT_MS)
    assert not of(Assign, node.handle(Tick(), 2 * FIRST_WAIT_MS))
    assert of(Assign, node.handle(MachineChanged(), 2 * FIRST_WAIT_MS))


def long_run(fraction: float = 0.1) -> NodeService:
    """A node whose only worker is ten minutes into a run of the search, which is so far then."""
    node = started(1, Order("/long", verify_share=0.2))
    run(node, 1, 1)
    node.handle(Progressed("w1", fraction, 1, None), 10 * MINUTE_MS)
    return node


def test_what_a_person_asks_for_interrupts_a_search_once_and_it_is_made_later() -> None:
    node = long_run()
    search = assignment_of(node, "w1")
    (overtake,) = of(Overtake, node.handle(RunAsked(PERSON), 10 * MINUTE_MS))
    assert overtake.assignment == search
    assert "stopped at 10% after 9 min 59 s" in overtake.reason
    node.handle(Finished("w1", counted=False), 11 * MINUTE_MS)
    assert node.workers["w1"].assignment == PERSON
    run(node, 2, 11 * MINUTE_MS)
    node.handle(Finished("w1"), 12 * MINUTE_MS)
    again = node.workers["w1"].assignment
    assert again is not None
    assert (again.again, again.task, again.kind) == (search, "/long", WorkKind.SEARCH)
    run(node, 1, 12 * MINUTE_MS)
    node.handle(Progressed("w1", 0.1, 1, None), 20 * MINUTE_MS)
    assert not of(Overtake, node.handle(RunAsked(PERSON), 20 * MINUTE_MS))


def test_a_run_with_less_than_a_minute_left_is_let_be() -> None:
    assert not of(Overtake, long_run(0.95).handle(RunAsked(PERSON), 10 * MINUTE_MS))


def test_a_verification_and_an_order_interrupt_the_endless_search_but_an_order_no_order() -> None:
    job = JobReady("job", RUN)
    for event in (job, WorkAsked(Order("/other", runs_left=1, verify_share=0.2))):
        assert of(Overtake, long_run().handle(event, 10 * MINUTE_MS))
    node = started(1, Order("/long", runs_left=9, verify_share=0))
    run(node, 1, 1)
    node.handle(Progressed("w1", 0.1, 1, None), 10 * MINUTE_MS)
    assert not of(Overtake, node.handle(WorkAsked(Order("/other", runs_left=1, verify_share=0)), 10 * MINUTE_MS))


def test_an_endless_order_interrupts_the_run_of_the_one_that_it_replaces_unless_it_is_on_the_same_task() -> None:
    assert not of(Overtake, long_run().handle(WorkAsked(Order("/long", proposer="llm")), 10 * MINUTE_MS))
    node = long_run()
    (overtake,) = of(Overtake, node.handle(WorkAsked(Order("/other", verify_share=0)), 10 * MINUTE_MS))
    assert overtake.reason.endswith("nobody waits for it any more")
    effects = node.handle(Finished("w1", counted=False), 11 * MINUTE_MS) + node.handle(JobReady(None), 11 * MINUTE_MS)
    assert [assign.assignment.task for assign in of(Assign, effects)] == ["/other"]


@given(
    st.floats(0, 1, exclude_min=True) | st.sampled_from([5e-324, 0.2, 1.0]),
    st.lists(st.integers(1, 90), min_size=1, max_size=60),
)
def test_verification_keeps_its_share_over_a_day_however_long_each_takes(share: float, minutes: list[int]) -> None:
    agenda, now_ms, verified_ms = Agenda(), 0, 0
    index = 0
    while now_ms < DAY_MS:
        length_ms = minutes[index % len(minutes)] * MINUTE_MS
        index, now_ms = index + 1, now_ms + length_ms
        if agenda.verification_wait_ms(share, now_ms - length_ms) == 0:
            agenda, verified_ms = agenda.with_spent(now_ms, verification_ms=length_ms), verified_ms + length_ms
        else:
            agenda = agenda.with_spent(now_ms, runs_ms=length_ms)
    assert verified_ms <= share * now_ms + max(minutes) * MINUTE_MS + VERIFY_AHEAD_MS * 0.1
    assert len(agenda.hours) <= DAY_MS // HOUR_MS + 1
