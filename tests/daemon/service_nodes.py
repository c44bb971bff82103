"""Nodes in a state, for the tests of their decisions."""

from __future__ import annotations

from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.effects import Effect
from autoresearch_daemon.service.inputs import JobReady, WorkAsked, WorkerReady
from autoresearch_daemon.service.machine import NodeService

from autoresearch.ask.node import RunInHand
from autoresearch.words import Why, WorkState

RUN = RunInHand(title="LR 0.001 -> 0.002")


def key(number: int) -> tuple[bytes, bytes, int]:
    return bytes(32), number.to_bytes(32, "big"), 0


def started(workers: int = 2, order: Order | None = None) -> NodeService:
    node = NodeService(workers_wanted=workers)
    node.handle(WorkAsked(order or Order()), 0)
    node.handle(JobReady(None), 0)
    for number in range(1, workers + 1):
        node.handle(WorkerReady(f"w{number}", "cpu"), 0)
    return node


def of(kind: type, effects: list[Effect]) -> list[Effect]:
    return [effect for effect in effects if isinstance(effect, kind)]


def state_of(node: NodeService) -> tuple[WorkState, Why]:
    now = node.status()
    return now.state, now.why


def assignment_of(node: NodeService, worker: str) -> str:
    assignment = node.workers[worker].assignment
    assert assignment is not None
    return assignment.name
