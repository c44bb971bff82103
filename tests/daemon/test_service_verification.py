"""Which share of its time a node verifies, and what becomes of what it verifies."""

from __future__ import annotations

from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.effects import Assign, CloseAbandoned, Verify, WantWorkers
from autoresearch_daemon.service.inputs import (
    Finished,
    JobReady,
    Proposed,
    Tick,
    VerificationsChanged,
    WorkAsked,
    WorkerLost,
    WorkerReady,
)
from autoresearch_daemon.service.machine import NodeService

from autoresearch.words import Why
from tests.daemon.service_nodes import RUN, assignment_of, key, of, started


def spend(node: NodeService, worker: str, end_ms: int) -> str:
    """Have the worker end what it has in hand; returns what kind of assignment it was."""
    name = assignment_of(node, worker)
    if name.startswith("search"):
        node.handle(Proposed(worker, name, key(end_ms), RUN), end_ms)
    node.handle(Finished(worker), end_ms)
    return name.partition("-")[0]


def test_verification_gets_its_share_of_the_time_and_no_more() -> None:
    node = started(1, Order(verify_share=0.25))
    spent = {"search": 0, "verify": 0}
    now = 0
    for number in range(400):
        node.handle(JobReady(f"job-{number}", RUN), now)
        took = (10 + number % 7) * 60_000
        spent[spend(node, "w1", now + took)] += took
        now += took
    assert abs(spent["verify"] / sum(spent.values()) - 0.25) < 0.01


def test_what_others_wait_for_is_verified_before_the_first_search() -> None:
    node = started(1, Order(verify_share=0.2))
    node.handle(WorkAsked(Order(verify_share=0.2)), 0)
    node.handle(Finished("w1"), 1)
    assert node.workers["w1"].assignment is None
    assert node.status().workers[0].why is Why.LOOKING
    for minutes in (0, 5, 10):  # ahead of its share, for so long
        node.handle(JobReady(f"job-{minutes}", RUN), minutes * 60_000)
        assert spend(node, "w1", (minutes + 5) * 60_000) == "verify"
    node.handle(JobReady("job", RUN), 15 * 60_000)
    assert spend(node, "w1", 17 * 60_000) == "search"


def test_the_first_search_waits_only_until_nothing_is_found_or_for_half_a_minute() -> None:
    for events in ([(JobReady(None), 1)], [(Tick(), 29_000), (Tick(), 31_000)]):
        node = started(1, Order(verify_share=0.2))
        node.handle(WorkAsked(Order(verify_share=0.2)), 0)
        node.handle(Finished("w1"), 1)
        assigned = [of(Assign, node.handle(*event)) for event in events]
        assert [bool(each) for each in assigned] == [False] * (len(events) - 1) + [True]


def test_a_node_may_only_verify_or_never() -> None:
    node = started(1, Order(verify_share=0))
    node.handle(Finished("w1"), 10)
    node.handle(JobReady("job", RUN), 10)
    assert assignment_of(node, "w1").startswith("search")
    node = NodeService(workers_wanted=1)
    assert of(WantWorkers, node.handle(WorkAsked(Order(verify_share=1)), 0)) == []
    assert of(WantWorkers, node.handle(JobReady("job", RUN), 0)) == [WantWorkers(1)]
    assert of(Assign, node.handle(WorkerReady("w1", "cpu"), 7))[0].assignment.job == "job"
    assert node.queue.front.began_ms == 7, "an order that only verifies begins so, and can be reported"


def test_a_duty_is_given_to_one_worker_only_and_does_not_count_as_a_run() -> None:
    node = NodeService(workers_wanted=2)
    node.handle(WorkAsked(Order(runs_left=1)), 0)
    node.handle(JobReady("job", RUN), 0)
    effects = node.handle(WorkerReady("w1", "cpu"), 0) + node.handle(WorkerReady("w2", "cpu"), 0)
    assert sorted(effect.assignment.job for effect in of(Assign, effects)) == ["", "job"]
    verifier = next(name for name, worker in node.workers.items() if worker.assignment and worker.assignment.job)
    node.handle(Finished(verifier), 1)
    assert node.queue.front.runs_left == 1


def test_a_lost_verifier_leaves_no_abandoned_run() -> None:
    node = started(1, Order(verify_share=1))
    node.handle(JobReady("job", RUN), 0)
    assert assignment_of(node, "w1").startswith("verify")
    assert of(CloseAbandoned, node.handle(WorkerLost("w1"), 1)) == []


def test_what_is_wanted_of_verification_is_said_at_every_tick_and_change() -> None:
    node = NodeService(workers_wanted=1)
    assert Verify(tasks=None, ready=None) in node.handle(Tick(), 0)
    node.handle(WorkAsked(Order(task="/task")), 0)
    assert Verify(tasks=("/task",), ready=None) in node.handle(VerificationsChanged(), 0)
    node.handle(JobReady("job", RUN), 0)
    assert Verify(tasks=None, ready="job") in node.handle(Tick(), 0)
    node.handle(WorkAsked(Order(verify_share=0)), 0)
    node.handle(JobReady(None), 0)
    assert Verify(tasks=None, ready=None) in node.handle(Tick(), 0)
