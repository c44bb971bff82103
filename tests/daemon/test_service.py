"""The node's decisions: what arrives in, what must be done comes out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from autoresearch_daemon.service import queue
from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.effects import (
    Approve,
    Assign,
    Cancel,
    CloseAbandoned,
    Decline,
    Effect,
    RecordWaiting,
    Save,
    Tell,
    WantWorkers,
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
    Outrun,
    PauseAsked,
    Proposed,
    ResumeAsked,
    RunAsked,
    Settled,
    ShareChanged,
    StopAsked,
    Tick,
    WorkAsked,
    WorkerLeaves,
    WorkerLost,
    WorkerReady,
)
from autoresearch_daemon.service.machine import NodeService
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from autoresearch.words import WHY_SENTENCES, Why, WorkKind, WorkState
from tests.daemon.service_nodes import RUN, assignment_of, key, of, started, state_of


def test_an_unasked_node_starts_nothing() -> None:
    node = NodeService(workers_wanted=2)

    assert of(WantWorkers, node.handle(Tick(), 0)) == []
    assert state_of(node) == (WorkState.IDLE, Why.NOT_ASKED)


def test_being_asked_to_work_starts_workers_and_gives_each_an_assignment() -> None:
    node = NodeService(workers_wanted=2)

    assert of(WantWorkers, node.handle(WorkAsked(Order()), 0)) == [WantWorkers(2)]
    node.handle(JobReady(None), 0)
    first = of(Assign, node.handle(WorkerReady("w1", "cpu"), 0))
    second = of(Assign, node.handle(WorkerReady("w2", "cpu"), 0))
    assert len(first) == len(second) == 1
    assert first[0].assignment.name != second[0].assignment.name


def test_two_workers_never_run_the_same_thing() -> None:
    node = started()
    first, second = assignment_of(node, "w1"), assignment_of(node, "w2")

    assert of(Approve, node.handle(Proposed("w1", first, key(1), RUN), 0))
    effects = node.handle(Proposed("w2", second, key(1), RUN), 0)
    assert of(Approve, effects) == []
    assert of(Decline, effects) == [Decline("w2", second)]


def test_more_and_fewer_runs_at_a_time_while_it_works() -> None:
    node = started(workers=1)
    assert of(WantWorkers, node.handle(ShareChanged(2), 1)) == [WantWorkers(2)]
    node.handle(WorkerReady("w2", "cpu"), 2)
    assert len(node.status().workers) == 2
    assert of(WantWorkers, node.handle(ShareChanged(0, 0.5), 3)) == [WantWorkers(0)]
    assert (state_of(node), node.status().front.verify_share) == ((WorkState.WAITING, Why.NO_WORKERS), 0.5)


def test_so_many_runs_and_no_more() -> None:
    node = started(order=Order(runs_left=3))
    done = 0
    for number in range(10):
        for worker in ("w1", "w2"):
            if node.workers[worker].assignment:
                node.handle(Proposed(worker, assignment_of(node, worker), key(10 * number + done), RUN), 0)
                node.handle(Finished(worker), 0)
                done += 1
    assert done == 3
    assert state_of(node) == (WorkState.IDLE, Why.RUNS_DONE)


def test_a_cancelled_run_does_not_count_as_done() -> None:
    node = started(1, Order(runs_left=1))
    node.handle(Proposed("w1", assignment_of(node, "w1"), key(1), RUN), 0)
    node.handle(Finished("w1", counted=False), 0)

    assert node.queue.front.runs_left == 1


def test_pausing_cancels_what_is_in_hand_and_resuming_goes_on() -> None:
    node = started(1)
    name = assignment_of(node, "w1")

    assert Cancel("w1", name) in node.handle(PauseAsked(), 0)
    assert state_of(node)[0] is WorkState.PAUSED
    node.handle(Dropped("w1"), 1)
    assert node.workers["w1"].assignment is None
    effects = node.handle(ResumeAsked(), 2)
    assert of(Assign, effects)


def test_a_pause_with_an_end_ends() -> None:
    node = started(1)
    node.handle(PauseAsked(until_ms=1000), 0)

    node.handle(Tick(), 999)
    assert node.queue.agenda.paused
    node.handle(Tick(), 1000)
    assert not node.queue.agenda.paused


def test_finish_lets_the_run_in_hand_end_and_takes_no_other() -> None:
    node = started(1)
    node.handle(Proposed("w1", assignment_of(node, "w1"), key(1), RUN), 0)
    effects = node.handle(FinishAsked(), 0)

    assert of(Cancel, effects) == []
    assert state_of(node) == (WorkState.FINISHING, Why.FINISHING_LAST)
    assert of(Assign, node.handle(Finished("w1"), 0)) == []
    assert state_of(node)[0] is WorkState.IDLE


def test_a_lost_worker_has_its_run_closed() -> None:
    node = started(1)
    name = assignment_of(node, "w1")
    node.handle(Proposed("w1", name, key(1), RUN), 0)

    assert CloseAbandoned(name) in node.handle(WorkerLost("w1"), 0)


def test_a_worker_lost_before_its_run_began_leaves_nothing_to_close() -> None:
    node = started(1)

    assert of(CloseAbandoned, node.handle(WorkerLost("w1"), 0)) == []


def test_a_worker_that_was_told_to_go_gets_nothing_more_and_what_it_did_not_hear_is_done_by_another() -> None:
    node = NodeService(workers_wanted=1)
    node.handle(WorkAsked(Order(verify_share=1.0)), 0)
    node.handle(JobReady("first", RUN), 0)
    assert assignment_in(node.handle(WorkerReady("w1", "cpu"), 0)).job == "first"
    node.handle(Finished("w1", counted=False), 1)
    node.handle(WorkerLeaves("w1"), 1)
    assert of(Assign, node.handle(JobReady("second", RUN), 1)) == []
    node.handle(WorkerLost("w1"), 2)
    assert assignment_in(node.handle(WorkerReady("w2", "cpu"), 2)).job == "second"
    node.handle(WorkerLeaves("w2"), 3)  # and the assignment crossed that on its way
    node.handle(WorkerLost("w2"), 3)
    assert assignment_in(node.handle(WorkerReady("w3", "cpu"), 3)).job == "second"


def assignment_in(effects: list[Effect]) -> Assignment:
    return next(effect.assignment for effect in effects if isinstance(effect, Assign))


def test_a_broken_task_is_a_waiting_state_with_the_sentence_until_asked_again() -> None:
    node = started(1)
    node.handle(Failed("w1", "prepare.py differs"), 0)

    assert state_of(node) == (WorkState.WAITING, Why.TASK_BROKEN)
    assert node.status().reason == "prepare.py differs"
    assert of(Assign, node.handle(WorkAsked(Order(verify_share=0)), 0))


def test_a_run_asked_for_by_hand_comes_before_the_search() -> None:
    node = started(1)
    node.handle(RunAsked(Assignment("given-1", "/task", WorkKind.PERSON)), 0)
    node.handle(Proposed("w1", assignment_of(node, "w1"), key(1), RUN), 0)

    effects = node.handle(Finished("w1"), 0)
    assert of(Assign, effects) == [Assign("w1", Assignment("given-1", "/task", WorkKind.PERSON))]


def test_work_and_pause_are_saved_at_once() -> None:
    node = NodeService(workers_wanted=1)

    assert Save() in node.handle(WorkAsked(Order()), 0)
    assert Save() in node.handle(PauseAsked(), 0)
    assert Save() in node.handle(ResumeAsked(), 0)


def test_every_reason_has_its_sentence() -> None:
    assert set(WHY_SENTENCES) == set(Why)


def ends(workers: int, failing: Callable[[int], bool], minutes: int = 10) -> tuple[list[int], list[int]]:
    """When runs of a second each failed, and when they went well; ``failing(n)`` says which of them fail."""
    node = started(workers)
    failed: list[int] = []
    well: list[int] = []
    for now in range(1000, minutes * 60_000, 1000):
        node.handle(Tick(), now)
        for name, worker in node.workers.items():
            if worker.assignment and worker.since_ms < now:
                node.handle(Proposed(name, worker.assignment.name, key(len(failed) + len(well)), RUN), now)
                fails = failing(len(failed) + len(well))
                (failed if fails else well).append(now)
                node.handle(Finished(name, failed=fails), now)
    return failed, well


def most_in_a_minute(times: list[int]) -> int:
    return max(sum(time - 60_000 < other <= time for other in times) for time in times)


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_what_always_fails_fails_a_few_times_a_minute(workers: int) -> None:
    failed, _ = ends(workers, lambda _: True)
    assert most_in_a_minute(failed) == workers + 2
    assert len(failed) >= 10 * 3, "it is tried again"


def test_what_fails_every_second_time_fails_as_seldom() -> None:
    failed, well = ends(1, lambda number: number % 2 == 0)
    assert most_in_a_minute(failed) == 3
    assert abs(len(well) - len(failed)) <= 1


@pytest.mark.slow
def test_runs_that_go_well_never_wait_nor_do_two_failures_a_minute_hold_them_up() -> None:
    failed, well = ends(2, lambda _: False)
    assert (failed, len(well)) == ([], 2 * 599)
    failed, well = ends(2, lambda number: number % 100 == 0)
    assert len(failed) + len(well) == 2 * 599


def failing(workers: int = 1) -> NodeService:
    """A node whose runs failed so often that the next one waits."""
    node = started(workers)
    for number in range(3):
        node.handle(Proposed("w1", assignment_of(node, "w1"), key(number), RUN), 1000)
        node.handle(Finished("w1", failed=True), 1000)
    return node


def test_a_node_that_waits_because_runs_fail_says_so_and_keeps_its_worker() -> None:
    node = started(1)
    for number in range(3):
        node.handle(Proposed("w1", assignment_of(node, "w1"), key(number), RUN), 1000)
        effects = node.handle(Finished("w1", failed=True), 1000)
    assert state_of(node) == (WorkState.WAITING, Why.FAILING)
    assert of(Tell, effects) == [Tell("state", "waiting")]
    assert of(Assign, node.handle(Tick(), 60_999)) == []

    effects = node.handle(Tick(), 61_000)
    assert of(Assign, effects)
    assert Tell("state", "working") in effects


@pytest.mark.parametrize("event", [WorkAsked(Order(verify_share=0)), ResumeAsked()])
def test_a_person_who_says_so_has_it_go_on_at_once(event: Input) -> None:
    node = failing()
    assert of(Assign, node.handle(event, 1001))
    assert state_of(node) == (WorkState.WORKING, Why.ASKED)


def test_what_a_person_asks_for_by_name_does_not_wait() -> None:
    node, assignment = failing(), Assignment("given-1", "/task", WorkKind.PERSON)
    assert Assign("w1", assignment) in node.handle(RunAsked(assignment), 1001)
    node.handle(Proposed("w1", "given-1", key(9), RUN), 1001)
    assert of(Assign, node.handle(Finished("w1"), 1002)) == []
    assert state_of(node) == (WorkState.WAITING, Why.FAILING)


def test_one_worker_waits_while_another_goes_on() -> None:
    node = started(2)
    node.handle(Proposed("w2", assignment_of(node, "w2"), key(9), RUN), 0)
    for number in range(3):
        node.handle(Proposed("w1", assignment_of(node, "w1"), key(number), RUN), 1000)
        node.handle(Finished("w1", failed=True), 1000)
    assert state_of(node) == (WorkState.WORKING, Why.ASKED)
    assert node.workers["w1"].why is Why.FAILING
    node.handle(PauseAsked(), 1001)
    assert node.workers["w1"].why is Why.NOT_ASKED


def test_runs_abandoned_and_verifications_that_came_to_nothing_count_as_failed() -> None:
    node = started(1)
    for number in range(3):
        node.handle(Proposed("w1", assignment_of(node, "w1"), key(number), RUN), 1000)
        node.handle(WorkerLost("w1"), 1000)
        node.handle(WorkerReady("w1", "cpu"), 1000)
    assert state_of(node) == (WorkState.WAITING, Why.FAILING)

    node = NodeService(workers_wanted=1)
    node.handle(WorkAsked(Order(verify_share=1)), 0)
    node.handle(WorkerReady("w1", "cpu"), 0)
    for number in range(3):
        node.handle(JobReady(f"job-{number}", RUN), 1000)
        node.handle(Finished("w1", counted=False, failed=True), 1000)
    assert of(Assign, node.handle(JobReady("another", RUN), 1000)) == []
    assert state_of(node) == (WorkState.WAITING, Why.FAILING)


def test_a_clock_that_is_put_back_keeps_nobody_waiting() -> None:
    node = failing()
    assert of(Assign, node.handle(Tick(), 0))


class AnyOrder(RuleBasedStateMachine):
    """Whatever happens in whatever order, the invariants hold."""

    names = st.sampled_from(["w1", "w2", "w3"])

    def __init__(self) -> None:
        super().__init__()
        self.node = NodeService(workers_wanted=3)
        self.now = 0

    def take(self, event: Input) -> None:
        self.now += 1
        for effect in self.node.handle(event, self.now):
            if isinstance(effect, Assign):
                assert self.node.workers[effect.worker].assignment == effect.assignment
                assert not self.node.queue.agenda.paused
                assert not self.node.stopping

    @rule(runs=st.none() | st.integers(0, 4), until=st.none() | st.integers(0, 50))
    def work(self, runs: int | None, until: int | None) -> None:
        self.take(WorkAsked(Order(runs_left=runs, for_ms=until)))

    @rule(until=st.none() | st.integers(0, 50))
    def pause(self, until: int | None) -> None:
        self.take(PauseAsked(until))

    @rule()
    def resume(self) -> None:
        self.take(ResumeAsked())

    @rule()
    def finish(self) -> None:
        self.take(FinishAsked())

    @rule()
    def stop(self) -> None:
        self.take(StopAsked())

    @rule(name=names)
    def ready(self, name: str) -> None:
        if name not in self.node.workers:
            self.take(WorkerReady(name, "cpu"))

    @rule(name=names, number=st.integers(0, 3), has_peers=st.booleans())
    def proposed(self, name: str, number: int, has_peers: bool) -> None:
        worker = self.node.workers.get(name)
        if worker and worker.assignment and not worker.key:
            self.take(Proposed(name, worker.assignment.name, key(number), RUN, has_peers=has_peers))

    @rule(name=names, number=st.integers(0, 3))
    def settled(self, name: str, number: int) -> None:
        self.take(Settled(name, key(number)))

    @rule(number=st.integers(0, 3))
    def outrun(self, number: int) -> None:
        self.take(Outrun(key(number)))

    @rule(name=names, counted=st.booleans(), failed=st.booleans())
    def finished(self, name: str, counted: bool, failed: bool) -> None:
        worker = self.node.workers.get(name)
        if worker and worker.run:
            self.take(Finished(name, counted, failed))

    @rule(name=names)
    def dropped(self, name: str) -> None:
        if name in self.node.workers:
            self.take(Dropped(name))

    @rule(name=names)
    def lost(self, name: str) -> None:
        self.take(WorkerLost(name))

    @rule(blocked=st.booleans())
    def disk(self, blocked: bool) -> None:
        self.take(Blocked(Why.DISK_LOW, "full" if blocked else None))

    @rule()
    def tick(self) -> None:
        self.take(Tick())

    @invariant()
    def no_two_workers_run_the_same(self) -> None:
        keys = [worker.key for worker in self.node.workers.values() if worker.key]
        assert len(keys) == len(set(keys))

    @invariant()
    def every_state_has_a_reason_in_words(self) -> None:
        assert self.node.status().reason


AnyOrder.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestAnyOrder = AnyOrder.TestCase


def test_what_could_not_be_recorded_is_tried_again_after_a_minute() -> None:
    node = started(1)
    node.handle(Blocked(Why.CANNOT_RECORD, "the disk is full"), 1000)
    assert of(RecordWaiting, node.handle(Tick(), 60_999)) == []
    assert of(RecordWaiting, node.handle(Tick(), 61_000)) == [RecordWaiting()]
    assert state_of(node)[0] is WorkState.WORKING
    assert of(RecordWaiting, node.handle(Tick(), 200_000)) == []


def test_what_is_measured_or_queued_here_has_its_jobs_named() -> None:
    node = started(1, Order(verify_share=1))
    node.handle(JobReady("first", RUN), 0)
    node.handle(RunAsked(Assignment("check-1", "/task", WorkKind.PERSON, job="second")), 0)
    assert sorted(node.status().jobs) == ["first", "second"]


def cannot_run(node: NodeService, now_ms: int) -> list[Effect]:
    return node.handle(Failed("w1", "there is no cuda:0 on this machine", cannot_run_here=True), now_ms)


def test_a_task_that_this_machine_cannot_run_waits_each_time_twice_as_long_until_a_person_asks() -> None:
    node = started(1)
    cannot_run(node, 0)
    assert state_of(node) == (WorkState.WAITING, Why.CANNOT_RUN_HERE)
    assert node.status().reason == "there is no cuda:0 on this machine"
    assert not of(Assign, node.handle(Tick(), queue.FIRST_WAIT_MS - 1))
    now_ms = queue.FIRST_WAIT_MS
    assert of(Assign, node.handle(Tick(), now_ms))
    cannot_run(node, now_ms)
    assert not of(Assign, node.handle(Tick(), now_ms + queue.FIRST_WAIT_MS))
    assert of(Assign, node.handle(ResumeAsked(), now_ms + queue.FIRST_WAIT_MS))
    for _ in range(20):
        cannot_run(node, now_ms)
        now_ms = node.queue.held[1].retry_ms
        assert of(Assign, node.handle(Tick(), now_ms))
    assert node.queue.waits_ms == {1: queue.LONGEST_WAIT_MS}
    node.handle(Finished("w1"), now_ms)
    assert not node.queue.waits_ms


def test_a_proposal_waits_in_the_queue_until_the_machine_can_run_it() -> None:
    node, assignment = NodeService(workers_wanted=1), Assignment("proposal-1", "/task", WorkKind.PERSON)
    node.handle(RunAsked(assignment), 0)
    node.handle(WorkerReady("w1", "cuda:0"), 0)
    cannot_run(node, 0)
    assert state_of(node) == (WorkState.WAITING, Why.CANNOT_RUN_HERE)
    again = node.handle(Tick(), queue.FIRST_WAIT_MS)
    again += node.handle(WorkerReady("w1", "cuda:0"), queue.FIRST_WAIT_MS)
    assert of(Assign, again) == [Assign("w1", assignment)]


def test_a_verification_that_this_machine_cannot_run_does_not_keep_it_from_its_own_task() -> None:
    node = NodeService(workers_wanted=1)
    node.handle(RunAsked(Assignment("check-1", "", WorkKind.PERSON, job="job")), 0)
    node.handle(WorkerReady("w1", "cpu"), 0)
    cannot_run(node, 0)
    assert state_of(node)[0] is WorkState.IDLE
