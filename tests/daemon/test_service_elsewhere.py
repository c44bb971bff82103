"""The state machine with an executor: one worker writes requests, many runs are carried out at places of their own."""

from __future__ import annotations

from autoresearch_daemon.service.agenda import Agenda, Order
from autoresearch_daemon.service.effects import Approve, Assign, Cancel, Effect, WantWorkers
from autoresearch_daemon.service.inputs import (
    Assignment,
    Finished,
    Input,
    JobReady,
    Located,
    PauseAsked,
    Progressed,
    Proposed,
    RunAsked,
    Sent,
    StopAsked,
    TakenOver,
    WorkAsked,
    WorkerReady,
)
from autoresearch_daemon.service.machine import NodeService
from autoresearch_daemon.service.queue import WorkQueue

from autoresearch.ask.node import RunInHand
from autoresearch.words import Why, WorkKind

RUN = RunInHand(title="LR 0.001 -> 0.002")
SLURM = Order(executor="slurm", at_most=3)


class Node:
    """A node that was asked to work with an executor."""

    def __init__(self, order: Order = SLURM, *, workers: int = 2) -> None:
        self.service = NodeService(workers_wanted=workers)
        self.effects: list[Effect] = []
        self.keys = 0
        self.happens(WorkAsked(order), JobReady(None), WorkerReady("w1", "cpu"))

    def happens(self, *events: Input) -> list[Effect]:
        self.effects = [effect for event in events for effect in self.service.handle(event, 1000)]
        return self.effects

    def assigned(self) -> list[str]:
        return [effect.assignment.name for effect in self.effects if isinstance(effect, Assign)]

    def sends(self) -> list[str]:
        """The worker's assignment is proposed, approved and handed over; what it is given next."""
        (name,) = self.assigned()
        self.keys += 1
        approved = self.happens(Proposed("w1", name, (b"t", bytes([self.keys]), 0), RUN))
        assert Approve("w1", name) in approved
        self.happens(Sent("w1"))
        return self.assigned()


def test_one_worker_fills_the_queue_and_no_more() -> None:
    node = Node()
    assert [effect for effect in node.effects if isinstance(effect, WantWorkers)] == [WantWorkers(1)]
    assert node.sends() == ["search-2"]
    assert node.sends() == ["search-3"]
    assert node.sends() == []
    now = node.service.status()
    assert [(worker.name, worker.why) for worker in now.workers] == [
        *((f"search-{number}", Why.QUEUED) for number in (1, 2, 3)),
        ("w1", Why.QUEUE_FULL),
    ]
    assert now.is_running((b"t", b"\x01", 0))


def test_a_place_is_gone_with_its_run_and_the_next_is_made() -> None:
    node = Node()
    while node.sends():
        pass
    node.happens(Located("search-2", "slurm job 7", Why.RUNNING), Progressed("search-2", 0.5, 3, 1.5))
    (place,) = [worker for worker in node.service.status().workers if worker.name == "search-2"]
    assert (place.device, place.why, place.run and place.run.fraction) == ("slurm job 7", Why.RUNNING, 0.5)
    node.happens(Finished("search-2"))
    assert node.assigned() == ["search-4"]
    assert "search-2" not in [worker.name for worker in node.service.status().workers]


def test_a_number_of_runs_counts_those_elsewhere() -> None:
    node = Node(Order(executor="slurm", at_most=3, runs_left=2))
    assert node.sends() == ["search-2"]
    assert node.sends() == []
    node.happens(Finished("search-1"), Finished("search-2"))
    assert node.assigned() == []
    assert not node.service.status().is_working


def test_a_pause_stops_them_and_the_end_of_the_daemon_does_not() -> None:
    node = Node()
    node.sends()
    assert Cancel("search-1", "search-1") in node.happens(PauseAsked())
    node = Node()
    node.sends()
    assert Cancel("search-1", "search-1") not in node.happens(StopAsked())


def test_a_run_that_goes_on_since_before_is_counted() -> None:
    service = NodeService(
        workers_wanted=1, queue=WorkQueue(agenda=Agenda().with_order(SLURM, 0).without([1], "", 0), counter=5)
    )
    service.handle(TakenOver("search-5", RUN, (b"t", b"s", 0), order=2), 0)
    service.handle(WorkAsked(Order(executor="slurm", at_most=1, verify_share=0)), 0)
    assert not any(isinstance(effect, Assign) for effect in service.handle(WorkerReady("w1", "cpu"), 0))
    assert service.status().is_running((b"t", b"s", 0))
    (assign,) = [effect for effect in service.handle(Finished("search-5"), 0) if isinstance(effect, Assign)]
    assert assign.assignment.name == "search-6", "no name is given twice"


def test_a_proposed_program_goes_where_runs_go_by_the_settings() -> None:
    service = NodeService(workers_wanted=1, queue=WorkQueue(resting=SLURM))
    service.handle(WorkAsked(Order(executor="slurm", at_most=1, runs_left=1, verify_share=0)), 0)
    service.handle(WorkerReady("w1", "cpu"), 0)
    service.handle(Finished("w1"), 0)
    assert service.status().front == SLURM
    service.handle(RunAsked(Assignment("proposal-1", "", WorkKind.PERSON)), 0)
    assert service.status().workers[0].assignment == Assignment("proposal-1", "", WorkKind.PERSON)


def test_without_an_executor_nothing_changes() -> None:
    node = Node(Order())
    assert node.assigned() == ["search-1"]
    assert node.service.status().workers_wanted == 2


def test_a_proposed_program_waits_for_room() -> None:
    node = Node(Order(executor="slurm", at_most=1))
    assert node.sends() == []
    assert node.happens(RunAsked(Assignment("proposal-1", "", WorkKind.PERSON))) == []
    node.happens(Finished("search-1"))
    assert node.assigned() == ["proposal-1"]
